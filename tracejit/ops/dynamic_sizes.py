"""Ops on dynamic dimensions: GetDimensionSize, SetDimensionSize, DynamicReshape.

x = set_dimension_size(x, n, 0) f32[<=5], with the first n elements valid get_dimension_size(x, 0)
n
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.attributes import Attribute, Kind
from tracejit.errors import AttributeValueError, ElementTypeError, ShapeError
from tracejit.graph import Instruction
from tracejit.ops.base import define, make, require_array
from tracejit.ops.bounds import flags_of
from tracejit.ops.constants import CONSTANT
from tracejit.shapes import AnyShape, ElementType, Shape, canonical_dimension


def _require_dimension(function: str, dimensions: tuple[int, ...], operand: Shape) -> int:
    if len(dimensions) != 1 or not 0 <= dimensions[0] < operand.rank:
        raise AttributeValueError(
            f"{function}: dimensions must be one dimension of operand {operand}, not {dimensions}"
        )
    return dimensions[0]


def _require_size(function: str, argument: str, shape: AnyShape) -> None:
    size = require_array(function, argument, shape)
    if size.rank or size.element_type is not ElementType.S32:
        raise ElementTypeError(f"{function}: {argument} must be s32[], not {size}")


@define("GetDimensionSize", "get-dimension-size", Attribute("dimensions", Kind.INTS))
def GET_DIMENSION_SIZE(operand: AnyShape, *, dimensions: tuple[int, ...]) -> Shape:
    array = require_array("get_dimension_size", "operand", operand)
    _require_dimension("get_dimension_size", dimensions, array)
    return Shape(ElementType.S32)


def get_dimension_size(operand: Instruction, dimension: int) -> Instruction:
    """The size of a dimension while the program runs, as s32[] (XLA: GetDimensionSize).

    Negative dimensions count from the back. Raises `DimensionError` out of range.
    """
    rank = require_array("get_dimension_size", "operand", operand.shape).rank
    at = canonical_dimension(dimension, rank, "get_dimension_size")
    return make(GET_DIMENSION_SIZE, operand, dimensions=(at,))


@define(
    "SetDimensionSize",
    "set-dimension-size",
    Attribute("dimensions", Kind.INTS),
    Attribute("shape", Kind.SHAPE),
)
def SET_DIMENSION_SIZE(
    operand: AnyShape, size: AnyShape, *, dimensions: tuple[int, ...], shape: AnyShape
) -> Shape:
    array = require_array("set_dimension_size", "operand", operand)
    wanted = require_array("set_dimension_size", "result", shape)
    _require_size("set_dimension_size", "val", size)
    dimension = _require_dimension("set_dimension_size", dimensions, array)
    flags = list(flags_of(array))
    flags[dimension] = flags_of(wanted)[dimension] if wanted.rank == array.rank else True
    expected = array.with_dynamic(flags)
    if wanted != expected:
        raise ShapeError(f"set_dimension_size: makes {expected} of operand {array}, not {wanted}")
    return wanted


def set_dimension_size(operand: Instruction, val: Instruction, dimension: int) -> Instruction:
    """``operand`` with only the first ``val`` elements along a dimension valid from here on.

    (XLA: SetDimensionSize.) ``val`` is s32[]; a size outside [0, bound] is clamped. The dimension
    becomes dynamic, with its size for a bound, unless ``val`` is a Constant of that size: then it
    is static again, with whatever lies there. Negative dimensions count from the back. Raises
    `DimensionError` out of range, `ElementTypeError` for another type of ``val``.
    """
    array = require_array("set_dimension_size", "operand", operand.shape)
    at = canonical_dimension(dimension, array.rank, "set_dimension_size")
    flags = list(flags_of(array))
    whole = val.op is CONSTANT and val.attributes["literal"].tolist() == array.dimensions[at]
    flags[at] = not whole
    shape = array.with_dynamic(flags)
    return make(SET_DIMENSION_SIZE, operand, val, dimensions=(at,), shape=shape)


@define("DynamicReshape", "dynamic-reshape", Attribute("shape", Kind.SHAPE))
def DYNAMIC_RESHAPE(operand: AnyShape, *dim_sizes: AnyShape, shape: AnyShape) -> Shape:
    array = require_array("dynamic_reshape", "operand", operand)
    wanted = require_array("dynamic_reshape", "result", shape)
    for position, size in enumerate(dim_sizes):
        _require_size("dynamic_reshape", f"dim_sizes {position}", size)
    if len(dim_sizes) != wanted.rank:
        raise ShapeError(
            f"dynamic_reshape: needs a size for each dimension of {wanted}, not {len(dim_sizes)}"
        )
    if wanted.element_type is not array.element_type or wanted.size != array.size:
        raise ShapeError(
            f"dynamic_reshape: operand {array} cannot become {wanted}; element types and the "
            "products of bounds must be equal"
        )
    return wanted


def dynamic_reshape(
    operand: Instruction,
    dim_sizes: Sequence[Instruction],
    new_size_bounds: Sequence[int],
    dims_are_dynamic: Sequence[bool],
) -> Instruction:
    """``operand``'s elements with the sizes ``dim_sizes``, s32[] each (XLA: DynamicReshape).

    ``new_size_bounds`` are the most that they may be, and ``dims_are_dynamic`` says which of them
    are known only when the program runs. Raises `ShapeError` when numbers or bounds do not fit.
    """
    array = require_array("dynamic_reshape", "operand", operand.shape)
    if not len(dim_sizes) == len(new_size_bounds) == len(dims_are_dynamic):
        raise ShapeError(
            f"dynamic_reshape: {len(dim_sizes)} dim_sizes, {len(new_size_bounds)} new_size_bounds "
            f"and {len(dims_are_dynamic)} dims_are_dynamic; there must be as many of each"
        )
    shape = Shape(array.element_type, tuple(new_size_bounds)).with_dynamic(dims_are_dynamic)
    return make(DYNAMIC_RESHAPE, operand, *dim_sizes, shape=shape)
