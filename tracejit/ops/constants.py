"""Constants and structure: Parameter, Constant, Iota, Tuple, GetTupleElement."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.attributes import Attribute, Kind
from tracejit.errors import AttributeValueError, ShapeError, ValueRangeError
from tracejit.graph import Instruction
from tracejit.ops.base import NUMERIC, define, make, require_array, require_element_type
from tracejit.shapes import (
    AnyShape,
    ElementType,
    Shape,
    TupleShape,
    canonical_dimension,
    element_type_of,
    shape_of,
)


@define(
    "Parameter",
    "parameter",
    Attribute("parameter_number", Kind.PARAMETER_NUMBER),
    Attribute("shape", Kind.SHAPE),
)
def PARAMETER(*, parameter_number: int, shape: AnyShape) -> AnyShape:
    if parameter_number < 0:
        raise AttributeValueError(f"parameter: number {parameter_number} is negative")
    return shape


def parameter(parameter_number: int, shape: AnyShape) -> Instruction:
    """The argument number ``parameter_number`` of a computation (XLA: Parameter)."""
    return make(PARAMETER, parameter_number=parameter_number, shape=shape)


@define("Constant", "constant", Attribute("literal", Kind.LITERAL))
def CONSTANT(*, literal: np.ndarray) -> Shape:
    return shape_of(literal)


def constant(value: Any, element_type: ElementType | None = None) -> Instruction:
    """A literal array; the value is copied and never changes (XLA: Constant).

    ``element_type`` defaults to that of ``np.asarray(value)``. Raises `ArgumentError` for dtypes
    XLA lacks, `ValueRangeError` for numbers that an integral element type does not hold, and for
    complex numbers of a real one. Other numbers are rounded, or infinite where they overflow.

    ``constant(3, ElementType.S8)`` is 3; of 300 and of 1.5 it raises.
    """
    array = np.asarray(value)
    wanted = element_type_of(array.dtype) if element_type is None else element_type
    if array.dtype == wanted.dtype:
        literal = np.array(array, order="C")
    else:
        if array.dtype != object:
            element_type_of(array.dtype)
        literal = _converted(array, wanted)
    literal.flags.writeable = False
    return make(CONSTANT, literal=literal)


def _converted(array: np.ndarray, element_type: ElementType) -> np.ndarray:
    """A C-ordered copy of another element type. Raises `ValueRangeError`."""
    is_exact = element_type.is_integral or element_type is ElementType.PRED
    if not is_exact and (element_type.is_complex or array.dtype.kind != "c"):
        return np.array(array, dtype=element_type.dtype, order="C")
    try:
        with np.errstate(invalid="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
            literal = np.array(array, dtype=element_type.dtype, order="C")
    except OverflowError as error:
        raise ValueRangeError(f"constant: {element_type} does not hold {array.flat[0]}") from error
    held = literal.astype(np.int64) if element_type.bits < 8 else literal
    wrong = array[array != held] if is_exact else array[array.imag != 0]
    if wrong.size:
        raise ValueRangeError(f"constant: {element_type} does not hold {wrong.flat[0]}")
    return literal


@define("Iota", "iota", Attribute("iota_dimension", Kind.INT), Attribute("shape", Kind.SHAPE))
def IOTA(*, iota_dimension: int, shape: Shape) -> Shape:
    require_array("iota", "shape", shape)
    require_element_type("iota", "shape", shape, NUMERIC)
    if shape.is_dynamic:
        raise ShapeError(f"iota: shape must be static, not {shape}")
    canonical_dimension(iota_dimension, shape.rank, "iota")
    return shape


def iota(shape: Shape, iota_dimension: int = 0) -> Instruction:
    """An array whose elements count up from 0 along ``iota_dimension`` (XLA: Iota)."""
    rank = require_array("iota", "shape", shape).rank
    dimension = canonical_dimension(iota_dimension, rank, "iota")
    return make(IOTA, iota_dimension=dimension, shape=shape)


@define("Tuple", "tuple")
def TUPLE(*elements: AnyShape) -> TupleShape:
    return TupleShape(elements)


def tuple_(elements: Sequence[Instruction]) -> Instruction:
    """Several values as one (XLA: Tuple)."""
    return make(TUPLE, *elements)


@define("GetTupleElement", "get-tuple-element", Attribute("index", Kind.INT))
def GET_TUPLE_ELEMENT(operand: AnyShape, *, index: int) -> AnyShape:
    if not isinstance(operand, TupleShape):
        raise ShapeError(f"get_tuple_element: operand must be a tuple, not {operand}")
    if not 0 <= index < len(operand.elements):
        raise AttributeValueError(f"get_tuple_element: index {index} is out of range for {operand}")
    return operand.elements[index]


def get_tuple_element(operand: Instruction, index: int) -> Instruction:
    """Element ``index`` of a tuple, taken directly from a Tuple (XLA: GetTupleElement)."""
    if operand.op is TUPLE and 0 <= index < len(operand.operands):
        return operand.operands[index]
    return make(GET_TUPLE_ELEMENT, operand, index=index)


def elements_of(operand: Instruction) -> tuple[Instruction, ...]:
    """Every element of a tuple, or the one array as a tuple of one."""
    if not isinstance(operand.shape, TupleShape):
        return (operand,)
    return tuple(get_tuple_element(operand, i) for i in range(len(operand.shape.elements)))
