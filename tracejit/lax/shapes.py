"""Operations that move elements, spelled as in `jax.lax`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.lax.elementwise import operands
from tracejit.ops import indexing, layout
from tracejit.ops.computations import scalar_computation
from tracejit.ops.constants import constant
from tracejit.ops.constants import iota as iota_op
from tracejit.ops.indexing import GatherDimensionNumbers, ScatterDimensionNumbers
from tracejit.shapes import Shape, canonical_dimension, element_type_of
from tracejit.trace.convert import operand
from tracejit.trace.index_basic import INDEX_TYPE, normalised
from tracejit.trace.public import public
from tracejit.trace.tracer import lift


@public
def broadcast(operand_: Any, sizes: Sequence[int]) -> Any:
    """Repeated along new leading dimensions."""
    return lift(layout.broadcast(operand(operand_).natural, sizes))


@public
def broadcast_in_dim(
    operand_: Any, shape: Sequence[int], broadcast_dimensions: Sequence[int]
) -> Any:
    """Stretched to ``shape``; dimension i becomes ``broadcast_dimensions[i]``."""
    return lift(
        layout.broadcast_in_dim(operand(operand_).natural, shape, broadcast_dimensions), False
    )


@public
def reshape(
    operand_: Any, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None
) -> Any:
    """The elements, the dimensions put in order first, under other sizes."""
    value = operand(operand_).natural
    if dimensions is not None:
        value = layout.transpose(value, dimensions)
    return lift(layout.reshape(value, new_sizes))


@public
def collapse(operand_: Any, start_dimension: int, stop_dimension: int) -> Any:
    """Dimensions from start up to, not with, stop made one."""
    value = operand(operand_).natural
    return lift(layout.collapse(value, range(start_dimension, stop_dimension)))


@public
def expand_dims(array: Any, dimensions: Sequence[int]) -> Any:
    """New dimensions of size 1 at these places of the result."""
    value = operand(array).natural
    rank = value.array_shape.rank + len(dimensions)
    new = {canonical_dimension(d, rank, "expand_dims") for d in dimensions}
    sizes = iter(value.array_shape.dimensions)
    return lift(layout.reshape(value, [1 if d in new else next(sizes) for d in range(rank)]))


@public
def squeeze(array: Any, dimensions: Sequence[int]) -> Any:
    """Without these dimensions, all of size 1."""
    value = operand(array).natural
    shape = value.array_shape
    dropped = {canonical_dimension(d, shape.rank, "squeeze") for d in dimensions}
    kept = [size for d, size in enumerate(shape.dimensions) if d not in dropped]
    return lift(layout.reshape(value, kept))


@public
def transpose(operand_: Any, permutation: Sequence[int]) -> Any:
    """The dimensions in another order."""
    return lift(layout.transpose(operand(operand_).natural, tuple(permutation)))


@public
def rev(operand_: Any, dimensions: Sequence[int]) -> Any:
    """The elements along ``dimensions`` in reverse order."""
    return lift(layout.rev(operand(operand_).natural, tuple(dimensions)))


@public
def pad(operand_: Any, padding_value: Any, padding_config: Sequence[tuple[int, int, int]]) -> Any:
    """A number added before, after and between the elements, (low, high, interior) each."""
    value, padding = operands(operand_, padding_value)
    return lift(layout.pad(value, padding, padding_config))


@public
def concatenate(operands_: Sequence[Any], dimension: int) -> Any:
    """The arrays one after the other along ``dimension``."""
    return lift(layout.concatenate([operand(o).natural for o in operands_], dimension))


@public
def slice(
    operand_: Any,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Any:
    """Every ``strides[i]``-th element from start up to, not with, limit."""
    value = operand(operand_).natural
    return lift(layout.slice_(value, start_indices, limit_indices, strides))


@public
def slice_in_dim(
    operand_: Any,
    start_index: int | None,
    limit_index: int | None,
    stride: int = 1,
    axis: int = 0,
) -> Any:
    """`slice` along one axis; negative limits count from the back."""
    value = operand(operand_).natural
    size = value.array_shape.dimensions[axis]
    start = 0 if start_index is None else start_index + size * (start_index < 0)
    limit = size if limit_index is None else limit_index + size * (limit_index < 0)
    return lift(layout.slice_in_dim(value, start, limit, stride, axis))


def _starts(value: Any, start_indices: Any) -> list[Any]:
    """One s64 scalar for each dimension, negative ones counted from the back."""
    sizes = value.array_shape.dimensions
    if not isinstance(start_indices, list | tuple):
        start_indices = [start_indices[i] for i in range(len(sizes))]
    return [
        normalised(operand(index).natural, size)
        for index, size in zip(start_indices, sizes, strict=True)
    ]


@public
def dynamic_slice(operand_: Any, start_indices: Any, slice_sizes: Sequence[int]) -> Any:
    """A part of known size from a place that may be unknown, clamped to the array."""
    value = operand(operand_).natural
    return lift(layout.dynamic_slice(value, _starts(value, start_indices), slice_sizes))


@public
def dynamic_update_slice(operand_: Any, update: Any, start_indices: Any) -> Any:
    """The array with ``update`` written at a place that may be unknown, clamped to the array."""
    value, part = operands(operand_, update)
    return lift(layout.dynamic_update_slice(value, part, _starts(value, start_indices)))


def _starts_in_dim(value: Any, index: Any, axis: int) -> list[Any]:
    starts = [constant(0, INDEX_TYPE)] * value.array_shape.rank
    starts[axis] = normalised(operand(index).natural, value.array_shape.dimensions[axis])
    return starts


@public
def dynamic_slice_in_dim(operand_: Any, start_index: Any, slice_size: int, axis: int = 0) -> Any:
    """`dynamic_slice` along one axis."""
    value = operand(operand_).natural
    sizes = list(value.array_shape.dimensions)
    axis = canonical_dimension(axis, len(sizes), "dynamic_slice_in_dim")
    sizes[axis] = slice_size
    return lift(layout.dynamic_slice(value, _starts_in_dim(value, start_index, axis), sizes))


@public
def dynamic_update_slice_in_dim(operand_: Any, update: Any, start_index: Any, axis: int) -> Any:
    """`dynamic_update_slice` along one axis."""
    value, part = operands(operand_, update)
    axis = canonical_dimension(axis, value.array_shape.rank, "dynamic_update_slice_in_dim")
    starts = _starts_in_dim(value, start_index, axis)
    return lift(layout.dynamic_update_slice(value, part, starts))


@public
def dynamic_index_in_dim(operand_: Any, index: Any, axis: int = 0, keepdims: bool = True) -> Any:
    """One slice along ``axis``, whose place may be unknown."""
    value = operand(operand_).natural
    sizes = list(value.array_shape.dimensions)
    axis = canonical_dimension(axis, len(sizes), "dynamic_index_in_dim")
    sizes[axis] = 1
    made = layout.dynamic_slice(value, _starts_in_dim(value, index, axis), sizes)
    return lift(made if keepdims else layout.reshape(made, sizes[:axis] + sizes[axis + 1 :]))


@public
def dynamic_update_index_in_dim(operand_: Any, update: Any, index: Any, axis: int) -> Any:
    """The array with one slice along ``axis``, whose place may be unknown, written."""
    value, part = operands(operand_, update)
    sizes = list(value.array_shape.dimensions)
    axis = canonical_dimension(axis, len(sizes), "dynamic_update_index_in_dim")
    sizes[axis] = 1
    starts = _starts_in_dim(value, index, axis)
    return lift(layout.dynamic_update_slice(value, layout.reshape(part, sizes), starts))


@public
def full(shape: Sequence[int], fill_value: Any, dtype: Any = None) -> Any:
    """Filled with one value."""
    value = operand(fill_value)
    made = value.natural if dtype is None else value.to(element_type_of(dtype))
    return lift(layout.broadcast(made, tuple(shape)), False)


@public
def iota(dtype: Any, size: int) -> Any:
    """Numbers counting up from 0."""
    return lift(iota_op(Shape(element_type_of(dtype), (size,))))


@public
def broadcasted_iota(dtype: Any, shape: Sequence[int], dimension: int) -> Any:
    """Numbers counting up from 0 along one dimension."""
    return lift(iota_op(Shape(element_type_of(dtype), tuple(shape)), dimension))


@public
def gather(
    operand_: Any,
    start_indices: Any,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    indices_are_sorted: bool = False,
) -> Any:
    """Slices from places that ``start_indices`` names, each clamped to the array."""
    value, indices = operand(operand_).natural, operand(start_indices).natural
    return lift(indexing.gather(value, indices, dimension_numbers, slice_sizes, indices_are_sorted))


def _scattered(
    name: str,
    operand_: Any,
    scatter_indices: Any,
    updates: Any,
    dimension_numbers: ScatterDimensionNumbers,
    indices_are_sorted: bool,
    unique_indices: bool,
) -> Any:
    value, update = operands(operand_, updates)
    element_type = value.array_shape.element_type
    if name == "replace":
        computation = indexing.replace_computation(element_type)
    else:
        computation = scalar_computation(name, element_type)
    indices = operand(scatter_indices).natural
    return lift(
        indexing.scatter(
            value,
            indices,
            update,
            computation,
            dimension_numbers,
            indices_are_sorted,
            unique_indices,
        )
    )


def _scatter(title: str, name: str, doc: str) -> Any:
    def record(
        operand_: Any,
        scatter_indices: Any,
        updates: Any,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
    ) -> Any:
        return _scattered(
            name,
            operand_,
            scatter_indices,
            updates,
            dimension_numbers,
            indices_are_sorted,
            unique_indices,
        )

    record.__name__ = record.__qualname__ = title
    record.__doc__ = f"{doc} at places that ``scatter_indices`` names; what is outside is dropped."
    return public(record)


scatter = _scatter("scatter", "replace", "``updates`` written")
scatter_add = _scatter("scatter_add", "add", "``updates`` added")
scatter_mul = _scatter("scatter_mul", "mul", "``updates`` multiplied in")
scatter_max = _scatter("scatter_max", "max", "The greater of element and update")
scatter_min = _scatter("scatter_min", "min", "The lesser of element and update")
