"""Ops that change the element type, or how much of it is used.

convert_element_type(x, ElementType.S32)     by value: 2.7 becomes 2
bitcast_convert_type(x, ElementType.U8)      by bits: u32[3] becomes u8[3,4]
reduce_precision(x, 5, 10)                   f32 rounded to what f16 can hold
"""

from __future__ import annotations

from tracejit.attributes import Attribute, Kind
from tracejit.errors import AttributeValueError, ElementTypeError, ShapeError
from tracejit.graph import Instruction
from tracejit.ops.base import FLOATING, define, make, require_array, require_element_type
from tracejit.shapes import AnyShape, ElementType, Shape, element_type_of


@define("ConvertElementType", "convert", Attribute("shape", Kind.SHAPE))
def CONVERT_ELEMENT_TYPE(operand: AnyShape, *, shape: Shape) -> Shape:
    source = require_array("convert_element_type", "operand", operand)
    if source.dimensions != shape.dimensions:
        raise ShapeError(
            f"convert_element_type: dimensions must be equal; operand {source}, result {shape}"
        )
    if source.element_type.is_complex and not shape.element_type.is_complex:
        raise ElementTypeError(
            f"convert_element_type: a complex operand has no {shape.element_type} value, take its "
            f"real part first; operand {source}"
        )
    return Shape(shape.element_type, shape.dimensions)


def convert_element_type(operand: Instruction, new_element_type: ElementType) -> Instruction:
    """Each element as the nearest value of another type (XLA: ConvertElementType).

    To a floating type: rounded to nearest, ties to even. From a floating type to an integer:
    towards zero, out-of-range values become the nearest integer there is and NaN becomes 0.
    Between integers: the low bits. To pred: whether the element is not zero.
    Raises `ElementTypeError` from a complex to a real type.
    """
    source = require_array("convert_element_type", "operand", operand.shape)
    new_element_type = element_type_of(new_element_type)
    if source.element_type is new_element_type:
        return operand
    return make(CONVERT_ELEMENT_TYPE, operand, shape=Shape(new_element_type, source.dimensions))


def bitcast_shape(source: Shape, new_element_type: ElementType) -> Shape:
    """The shape of ``source``'s bits read as another element type.

    To a narrower type a last dimension appears, to a wider one it goes away.
    Raises `ShapeError` when the last dimension does not hold exactly one wider element.
    """
    function = "bitcast_convert_type"
    old, new = source.element_type, new_element_type
    if old is not new and (old.is_complex or new.is_complex):
        raise ElementTypeError(f"{function}: complex bits cannot be read as another type; {source}")
    if old is not new and ElementType.PRED in (old, new):
        raise ElementTypeError(f"{function}: pred has no bits to read as another type; {source}")
    if old.bits == new.bits:
        return Shape(new, source.dimensions)
    if old.bits > new.bits:
        return Shape(new, (*source.dimensions, old.bits // new.bits))
    parts = new.bits // old.bits
    if source.dimensions[-1:] != (parts,):
        raise ShapeError(
            f"{function}: from {old} to {new} the last dimension must be {parts}; operand {source}"
        )
    return Shape(new, source.dimensions[:-1])


@define("BitcastConvertType", "bitcast-convert", Attribute("shape", Kind.SHAPE))
def BITCAST_CONVERT_TYPE(operand: AnyShape, *, shape: Shape) -> Shape:
    source = require_array("bitcast_convert_type", "operand", operand)
    expected = bitcast_shape(source, shape.element_type)
    if expected.dimensions != shape.dimensions:
        raise ShapeError(
            f"bitcast_convert_type: operand {source} makes {expected}, result is {shape}"
        )
    return expected


def bitcast_convert_type(operand: Instruction, new_element_type: ElementType) -> Instruction:
    """The operand's bits read as another element type (XLA: BitcastConvertType).

    To a type half as wide f32[10] becomes f16[10,2], the low bits first; to one twice as wide
    f16[10,2] becomes f32[10]. Raises `ShapeError` when the last dimension does not fit.
    """
    source = require_array("bitcast_convert_type", "operand", operand.shape)
    new_element_type = element_type_of(new_element_type)
    if source.element_type is new_element_type:
        return operand
    shape = bitcast_shape(source, new_element_type)
    return make(BITCAST_CONVERT_TYPE, operand, shape=shape)


@define(
    "ReducePrecision",
    "reduce-precision",
    Attribute("exponent_bits", Kind.INT),
    Attribute("mantissa_bits", Kind.INT),
)
def REDUCE_PRECISION(operand: AnyShape, *, exponent_bits: int, mantissa_bits: int) -> Shape:
    shape = require_array("reduce_precision", "operand", operand)
    require_element_type("reduce_precision", "operand", shape, FLOATING)
    if exponent_bits < 1:
        raise AttributeValueError(
            f"reduce_precision: exponent_bits must be at least 1, not {exponent_bits}"
        )
    if mantissa_bits < 0:
        raise AttributeValueError(
            f"reduce_precision: mantissa_bits must not be negative, not {mantissa_bits}"
        )
    return Shape(shape.element_type, shape.dimensions)


def reduce_precision(operand: Instruction, exponent_bits: int, mantissa_bits: int) -> Instruction:
    """The operand rounded to a format of fewer bits, in its own type (XLA: ReducePrecision).

    Rounds to nearest, ties to even; what the exponent cannot reach becomes ±inf or ±0, NaN
    stays NaN. Widths beyond the operand's own change nothing.
    """
    return make(REDUCE_PRECISION, operand, exponent_bits=exponent_bits, mantissa_bits=mantissa_bits)
