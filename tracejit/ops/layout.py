"""Ops that move elements without changing them: broadcast, reshape, transpose, slice, pad …"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral

from tracejit.attributes import Attribute, Kind, PaddingDimension, SliceDimension
from tracejit.errors import AttributeValueError, ElementTypeError, ShapeError
from tracejit.graph import Instruction, Trait
from tracejit.ops.base import (
    INTEGRAL,
    define,
    make,
    require_array,
    require_element_type,
    require_rank,
    require_same_element_type,
    require_unique_dimensions,
)
from tracejit.ops.constants import constant
from tracejit.shapes import AnyShape, Shape, canonical_dimension


@define(
    "BroadcastInDim",
    "broadcast",
    Attribute("dimensions", Kind.INTS),
    Attribute("shape", Kind.SHAPE),
    traits=Trait.MOVEMENT | Trait.VIEW,
)
def BROADCAST_IN_DIM(operand: AnyShape, *, dimensions: tuple[int, ...], shape: Shape) -> Shape:
    source = require_array("broadcast_in_dim", "operand", operand)
    if len(dimensions) != source.rank:
        raise ShapeError(
            f"broadcast_in_dim: broadcast_dimensions {dimensions} must name one result dimension "
            f"for each dimension of operand {source}"
        )
    if list(dimensions) != sorted(set(dimensions)):
        raise AttributeValueError(
            f"broadcast_in_dim: broadcast_dimensions {dimensions} must be strictly increasing"
        )
    for position, dimension in enumerate(dimensions):
        if not 0 <= dimension < shape.rank:
            raise AttributeValueError(
                f"broadcast_in_dim: broadcast_dimensions {dimensions} must be below the result's "
                f"rank, {shape}"
            )
        if source.dimensions[position] != shape.dimensions[dimension]:
            raise ShapeError(
                f"broadcast_in_dim: operand {source} dimension {position} is "
                f"{source.dimensions[position]}, result {shape} dimension {dimension} is "
                f"{shape.dimensions[dimension]}"
            )
    return Shape(source.element_type, shape.dimensions)


def broadcast_in_dim(
    operand: Instruction, out_dim_size: Sequence[int], broadcast_dimensions: Sequence[int]
) -> Instruction:
    """``operand`` repeated to ``out_dim_size``; its dimension i is ``broadcast_dimensions[i]``.

    Dimensions of size 1 stretch. ``broadcast_dimensions`` must be strictly increasing
    (XLA: BroadcastInDim). Raises `ShapeError` when another size differs.
    """
    source = require_array("broadcast_in_dim", "operand", operand.shape)
    sizes, dimensions = tuple(out_dim_size), tuple(broadcast_dimensions)
    if sizes == source.dimensions and dimensions == tuple(range(source.rank)):
        return operand
    stretched = [
        i
        for i, d in enumerate(dimensions[: source.rank])
        if 0 <= d < len(sizes) and source.dimensions[i] == 1 != sizes[d]
    ]
    if stretched and len(dimensions) == source.rank:
        # HLO's broadcast never stretches, so size-1 dimensions are dropped first.
        kept = [i for i in range(source.rank) if i not in stretched]
        operand = reshape(operand, [source.dimensions[i] for i in kept])
        dimensions = tuple(dimensions[i] for i in kept)
    shape = _of_sizes("broadcast_in_dim", source, sizes)
    return make(BROADCAST_IN_DIM, operand, dimensions=dimensions, shape=shape)


def broadcast(operand: Instruction, broadcast_sizes: Sequence[int]) -> Instruction:
    """``operand`` repeated along new leading dimensions (XLA: Broadcast)."""
    source = require_array("broadcast", "operand", operand.shape)
    sizes = (*broadcast_sizes, *source.dimensions)
    return broadcast_in_dim(operand, sizes, range(len(sizes) - source.rank, len(sizes)))


def full(shape: Shape, value: complex) -> Instruction:
    """An array filled with one value."""
    scalar = constant(value, shape.element_type)
    return broadcast_in_dim(scalar, shape.dimensions, ())


def full_like(operand: Instruction, value: complex) -> Instruction:
    """An array of the operand's shape and element type, filled with one value."""
    return full(operand.array_shape, value)


def scalar_like(operand: Instruction, value: complex) -> Instruction:
    """A rank-0 constant of the operand's element type."""
    return constant(value, operand.array_shape.element_type)


@define("Reshape", "reshape", Attribute("shape", Kind.SHAPE), traits=Trait.MOVEMENT | Trait.VIEW)
def RESHAPE(operand: AnyShape, *, shape: Shape) -> Shape:
    source = require_array("reshape", "operand", operand)
    require_same_element_type("reshape", operand=source, result=shape)
    if shape.size != source.size:
        raise ShapeError(
            f"reshape: operand {source} has {source.size} elements, "
            f"{list(shape.dimensions)} has {shape.size}"
        )
    return Shape(source.element_type, shape.dimensions)


def reshape(operand: Instruction, dimensions: Sequence[int] | Shape) -> Instruction:
    """The same elements in row-major order under other dimensions (XLA: Reshape).

    ``dimensions`` may be a whole `Shape`, whose element type must be the operand's. Raises
    `ShapeError` when the number of elements differs.
    """
    source = require_array("reshape", "operand", operand.shape)
    if not isinstance(dimensions, Shape):
        dimensions = _of_sizes("reshape", source, tuple(dimensions))
    if dimensions == source:
        return operand
    return make(RESHAPE, operand, shape=dimensions)


def collapse(operand: Instruction, dimensions: Sequence[int]) -> Instruction:
    """Consecutive ``dimensions`` merged into one, in row-major order (XLA: Collapse).

    No dimension, or one, changes nothing. Raises `AttributeValueError` unless the dimensions
    are consecutive and increasing.
    """
    source = require_array("collapse", "operand", operand.shape)
    require_unique_dimensions("collapse", "dimensions", dimensions, source.rank)
    if len(dimensions) < 2:
        return operand
    first, end = dimensions[0], dimensions[0] + len(dimensions)
    if list(dimensions) != list(range(first, end)):
        raise AttributeValueError(
            f"collapse: dimensions {tuple(dimensions)} must be consecutive and increasing"
        )
    sizes = source.dimensions
    return reshape(operand, (*sizes[:first], math.prod(sizes[first:end]), *sizes[end:]))


@define(
    "Transpose", "transpose", Attribute("dimensions", Kind.INTS), traits=Trait.MOVEMENT | Trait.VIEW
)
def TRANSPOSE(operand: AnyShape, *, dimensions: tuple[int, ...]) -> Shape:
    source = require_array("transpose", "operand", operand)
    if sorted(dimensions) != list(range(source.rank)):
        raise AttributeValueError(
            f"transpose: permutation {dimensions} must hold each dimension of operand {source} once"
        )
    return source.with_dimensions([source.dimensions[d] for d in dimensions])


def transpose(operand: Instruction, permutation: Sequence[int]) -> Instruction:
    """Dimensions in another order: the result's i is ``permutation[i]`` (XLA: Transpose)."""
    return make(TRANSPOSE, operand, dimensions=tuple(permutation))


@define("Rev", "reverse", Attribute("dimensions", Kind.INTS), traits=Trait.MOVEMENT | Trait.VIEW)
def REV(operand: AnyShape, *, dimensions: tuple[int, ...]) -> Shape:
    source = require_array("rev", "operand", operand)
    require_unique_dimensions("rev", "dimensions", dimensions, source.rank)
    return source.with_dimensions(source.dimensions)


def rev(operand: Instruction, dimensions: Sequence[int]) -> Instruction:
    """The order of the elements turned round along ``dimensions`` (XLA: Rev)."""
    return make(REV, operand, dimensions=tuple(dimensions))


@define("Pad", "pad", Attribute("padding", Kind.PADDING), traits=Trait.MOVEMENT)
def PAD(
    operand: AnyShape, padding_value: AnyShape, *, padding: tuple[PaddingDimension, ...]
) -> Shape:
    source = _require_padding_value(operand, padding_value)
    if source.rank == 0:
        raise ShapeError(f"pad: operand {source} has no dimension, and HLO text no form for it")
    if len(padding) != source.rank:
        raise AttributeValueError(
            f"pad: padding_config has {len(padding)} dimensions, operand {source} has {source.rank}"
        )
    sizes = []
    for dimension, (size, pad) in enumerate(zip(source.dimensions, padding, strict=True)):
        if pad.interior < 0:
            raise AttributeValueError(
                f"pad: interior padding of dimension {dimension} is {pad.interior}; "
                "it must not be negative"
            )
        sizes.append(pad.padded(size))
        if sizes[-1] < 0:
            raise ShapeError(
                f"pad: low {pad.low} and high {pad.high} crop more than operand {source} has in "
                f"dimension {dimension}, {size}"
            )
    return source.with_dimensions(sizes)


def pad(
    operand: Instruction,
    padding_value: Instruction,
    padding_config: Sequence[PaddingDimension | tuple[int, int, int]],
) -> Instruction:
    """``operand`` with a scalar added before, after and between its elements (XLA: Pad).

    ``padding_config`` has (low, high, interior) for each dimension; negative low or high crop,
    after the interior padding. A scalar is returned as it is.
    """
    padding = tuple(
        p if isinstance(p, PaddingDimension) else PaddingDimension(*p) for p in padding_config
    )
    if not padding and _require_padding_value(operand.shape, padding_value.shape).rank == 0:
        return operand
    return make(PAD, operand, padding_value, padding=padding)


def pad_in_dim(
    operand: Instruction, padding_value: Instruction, dimno: int, pad_lo: int, pad_hi: int
) -> Instruction:
    """`pad` in one dimension (XLA: PadInDim). Negative ``dimno`` counts from the back."""
    source = require_array("pad_in_dim", "operand", operand.shape)
    dimension = canonical_dimension(dimno, source.rank, "pad_in_dim")
    padding = [PaddingDimension()] * source.rank
    padding[dimension] = PaddingDimension(pad_lo, pad_hi)
    return pad(operand, padding_value, padding)


@define("Concatenate", "concatenate", Attribute("dimensions", Kind.INTS), traits=Trait.MOVEMENT)
def CONCATENATE(*operands: AnyShape, dimensions: tuple[int, ...]) -> Shape:
    if not operands:
        raise ShapeError("concatenate: needs at least one operand")
    sources = [require_array("concatenate", f"operand {i}", o) for i, o in enumerate(operands)]
    first = sources[0]
    if len(dimensions) != 1 or not 0 <= dimensions[0] < first.rank:
        raise AttributeValueError(
            f"concatenate: dimension {', '.join(map(str, dimensions))} must be one dimension "
            f"number below the rank of operand 0 {first}"
        )
    dimension = dimensions[0]
    for position, source in enumerate(sources[1:], start=1):
        require_same_element_type(
            "concatenate", **{"operand 0": first, f"operand {position}": source}
        )
        rest, wanted = list(source.dimensions), list(first.dimensions)
        if source.rank == first.rank:
            rest[dimension] = wanted[dimension] = 0
        if rest != wanted:
            raise ShapeError(
                f"concatenate: operands must agree in every dimension but {dimension}; "
                f"operand 0 {first}, operand {position} {source}"
            )
    sizes = list(first.dimensions)
    sizes[dimension] = sum(source.dimensions[dimension] for source in sources)
    return first.with_dimensions(sizes)


def concatenate(operands: Sequence[Instruction], dimension: int) -> Instruction:
    """The operands one after the other along ``dimension`` (XLA: ConcatInDim).

    Negative ``dimension`` counts from the back.
    """
    if operands:
        source = require_array("concatenate", "operand 0", operands[0].shape)
        dimension = canonical_dimension(dimension, source.rank, "concatenate")
    return make(CONCATENATE, *operands, dimensions=(dimension,))


concat_in_dim = concatenate


@define("Slice", "slice", Attribute("slice", Kind.SLICE), traits=Trait.MOVEMENT | Trait.VIEW)
def SLICE(operand: AnyShape, *, slice: tuple[SliceDimension, ...]) -> Shape:
    source = require_array("slice", "operand", operand)
    if len(slice) != source.rank:
        raise AttributeValueError(
            f"slice: start, limit and stride are for {len(slice)} dimensions, "
            f"operand {source} has {source.rank}"
        )
    for dimension, part in enumerate(slice):
        size = source.dimensions[dimension]
        if not 0 <= part.start <= part.limit <= size:
            raise AttributeValueError(
                f"slice: start {part.start} and limit {part.limit} must satisfy "
                f"0 <= start <= limit <= {size} in dimension {dimension} of operand {source}"
            )
        if part.stride < 1:
            raise AttributeValueError(
                f"slice: stride {part.stride} of dimension {dimension} must be positive"
            )
    return source.with_dimensions([part.size for part in slice])


def slice_(
    operand: Instruction,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Instruction:
    """Every ``strides[i]``-th element from start up to, not with, limit (XLA: Slice)."""
    steps = [1] * len(start_indices) if strides is None else strides
    if not len(start_indices) == len(limit_indices) == len(steps):
        raise AttributeValueError(
            f"slice: start_indices {tuple(start_indices)}, limit_indices {tuple(limit_indices)} "
            f"and strides {tuple(steps)} must be equally long"
        )
    parts = zip(start_indices, limit_indices, steps, strict=True)
    return make(SLICE, operand, slice=tuple(SliceDimension(*part) for part in parts))


def slice_in_dim(
    operand: Instruction, start_index: int, limit_index: int, stride: int, dimno: int
) -> Instruction:
    """`slice_` in one dimension (XLA: SliceInDim). Negative ``dimno`` counts from the back."""
    source = require_array("slice_in_dim", "operand", operand.shape)
    dimension = canonical_dimension(dimno, source.rank, "slice_in_dim")
    parts = [SliceDimension(0, size) for size in source.dimensions]
    parts[dimension] = SliceDimension(start_index, limit_index, stride)
    return make(SLICE, operand, slice=tuple(parts))


@define("DynamicSlice", "dynamic-slice", Attribute("dynamic_slice_sizes", Kind.INTS))
def DYNAMIC_SLICE(
    operand: AnyShape, *start_indices: AnyShape, dynamic_slice_sizes: tuple[int, ...]
) -> Shape:
    source = require_array("dynamic_slice", "operand", operand)
    _require_start_indices("dynamic_slice", start_indices, source)
    if len(dynamic_slice_sizes) != source.rank:
        raise AttributeValueError(
            f"dynamic_slice: slice_sizes {dynamic_slice_sizes} must have one size for each "
            f"dimension of operand {source}"
        )
    for dimension, size in enumerate(dynamic_slice_sizes):
        if not 0 <= size <= source.dimensions[dimension]:
            raise AttributeValueError(
                f"dynamic_slice: slice size {size} of dimension {dimension} must be between 0 and "
                f"{source.dimensions[dimension]}, operand is {source}"
            )
    return source.with_dimensions(dynamic_slice_sizes)


def dynamic_slice(
    operand: Instruction,
    start_indices: Sequence[Instruction] | Instruction,
    slice_sizes: Sequence[int],
) -> Instruction:
    """A part of fixed size from a place known at run time (XLA: DynamicSlice).

    ``start_indices`` are integer scalars, one for each dimension, or one vector of them. Each is
    clamped to [0, size - slice size].
    """
    starts = _scalars("dynamic_slice", start_indices)
    return make(DYNAMIC_SLICE, operand, *starts, dynamic_slice_sizes=tuple(slice_sizes))


@define("DynamicUpdateSlice", "dynamic-update-slice")
def DYNAMIC_UPDATE_SLICE(operand: AnyShape, update: AnyShape, *start_indices: AnyShape) -> Shape:
    source = require_array("dynamic_update_slice", "operand", operand)
    part = require_array("dynamic_update_slice", "update", update)
    require_same_element_type("dynamic_update_slice", operand=source, update=part)
    _require_start_indices("dynamic_update_slice", start_indices, source)
    if part.rank != source.rank:
        raise ShapeError(
            f"dynamic_update_slice: ranks must be equal; operand {source}, update {part}"
        )
    for dimension, size in enumerate(part.dimensions):
        if size > source.dimensions[dimension]:
            raise ShapeError(
                f"dynamic_update_slice: update must fit into operand; operand {source} dimension "
                f"{dimension} is {source.dimensions[dimension]}, update {part} dimension "
                f"{dimension} is {size}"
            )
    return source.with_dimensions(source.dimensions)


def dynamic_update_slice(
    operand: Instruction,
    update: Instruction,
    start_indices: Sequence[Instruction] | Instruction,
) -> Instruction:
    """``operand`` with ``update`` written at a place known at run time (XLA: DynamicUpdateSlice).

    ``start_indices`` are integer scalars, one for each dimension, or one vector of them. Each is
    clamped to [0, size - update size].
    """
    starts = _scalars("dynamic_update_slice", start_indices)
    return make(DYNAMIC_UPDATE_SLICE, operand, update, *starts)


def _require_padding_value(operand: AnyShape, padding_value: AnyShape) -> Shape:
    """The operand's shape; its padding must be a scalar of its element type."""
    source = require_array("pad", "operand", operand)
    fill = require_array("pad", "padding_value", padding_value)
    require_rank("pad", "padding_value", fill, 0)
    require_same_element_type("pad", operand=source, padding_value=fill)
    return source


def _of_sizes(function: str, source: Shape, sizes: tuple[int, ...]) -> Shape:
    """A shape of these sizes; a negative one is refused by the function's name, not `Shape`'s."""
    if any(isinstance(size, Integral) and size < 0 for size in sizes):
        raise AttributeValueError(f"{function}: dimensions {sizes} must not be negative")
    return source.with_dimensions(sizes)


def _require_start_indices(function: str, indices: Sequence[AnyShape], operand: Shape) -> None:
    if len(indices) != operand.rank:
        raise ShapeError(
            f"{function}: needs one start index for each dimension of operand {operand}, "
            f"not {len(indices)}"
        )
    shapes = [require_array(function, f"start index {i}", s) for i, s in enumerate(indices)]
    for position, shape in enumerate(shapes):
        require_rank(function, f"start index {position}", shape, 0)
        require_element_type(function, f"start index {position}", shape, INTEGRAL)
        if shape.element_type is not shapes[0].element_type:
            raise ElementTypeError(
                f"{function}: start indices must have one element type; "
                f"index 0 is {shapes[0]}, index {position} is {shape}"
            )


def _scalars(
    function: str, start_indices: Sequence[Instruction] | Instruction
) -> tuple[Instruction, ...]:
    """The start indices one by one, taken out of a vector if that is what was given."""
    if not isinstance(start_indices, Instruction):
        return tuple(start_indices)
    vector = require_array(function, "start_indices", start_indices.shape)
    require_rank(function, "start_indices", vector, 1)
    return tuple(
        reshape(slice_(start_indices, [i], [i + 1]), ()) for i in range(vector.dimensions[0])
    )
