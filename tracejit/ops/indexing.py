"""Gather and Scatter, with every dimension number XLA has."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, fields

from tracejit.attributes import Attribute, Kind, Numbers
from tracejit.errors import AttributeValueError, ElementTypeError, ShapeError
from tracejit.graph import Computation, Instruction
from tracejit.ops.base import (
    INTEGRAL,
    define,
    make,
    require_array,
    require_element_type,
    require_unique_dimensions,
)
from tracejit.ops.computations import collate, operand_list, require_reducer
from tracejit.ops.constants import parameter
from tracejit.shapes import AnyShape, ElementType, Shape


@dataclass(frozen=True, slots=True)
class GatherDimensionNumbers(Numbers):
    """Which dimension of a Gather's operand, indices and result means what.

    ``offset_dims``: the result's dimensions that run inside a slice; the others follow the indices.
    ``collapsed_slice_dims``: operand dimensions of slice size 1 that the result drops.
    ``start_index_map``: the operand dimension that each number of an index vector is for.
    ``index_vector_dim``: where the index vectors lie in start_indices; its rank means that
    every index is one number.
    ``operand_batching_dims`` and ``start_indices_batching_dims`` run together.
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    index_vector_dim: int
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ScatterDimensionNumbers(Numbers):
    """Which dimension of a Scatter's operands, indices and updates means what.

    ``update_window_dims``: the updates' dimensions that run inside a window; the others follow the
    indices. ``inserted_window_dims``: operand dimensions of window size 1 that the updates lack.
    ``scatter_dims_to_operand_dims``: the operand dimension that each number of an index vector is
    for. ``index_vector_dim``: where the index vectors lie in scatter_indices; its rank means that
    every index is one number. ``input_batching_dims`` and ``scatter_indices_batching_dims``
    run together.
    """

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    index_vector_dim: int
    input_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()


@define(
    "Gather",
    "gather",
    Attribute("offset_dims", Kind.INTS),
    Attribute("collapsed_slice_dims", Kind.INTS),
    Attribute("start_index_map", Kind.INTS),
    Attribute("operand_batching_dims", Kind.INTS, ()),
    Attribute("start_indices_batching_dims", Kind.INTS, ()),
    Attribute("index_vector_dim", Kind.INT),
    Attribute("slice_sizes", Kind.INTS),
    Attribute("indices_are_sorted", Kind.BOOL, False),
)
def GATHER(
    operand: AnyShape,
    start_indices: AnyShape,
    *,
    offset_dims: tuple[int, ...],
    collapsed_slice_dims: tuple[int, ...],
    start_index_map: tuple[int, ...],
    operand_batching_dims: tuple[int, ...],
    start_indices_batching_dims: tuple[int, ...],
    index_vector_dim: int,
    slice_sizes: tuple[int, ...],
    indices_are_sorted: bool,
) -> Shape:
    source = require_array("gather", "operand", operand)
    indices = require_array("gather", "start_indices", start_indices)
    batch = _index_batch("gather", "start_indices", indices, index_vector_dim)
    _require_index_map(
        "gather", "start_index_map", start_index_map, indices, index_vector_dim, source.rank
    )
    _require_batching(
        "gather",
        ("operand_batching_dims", operand_batching_dims, source),
        ("start_indices_batching_dims", start_indices_batching_dims, indices),
        index_vector_dim,
        start_index_map,
    )
    removed = _removed_dimensions(
        "gather",
        ("collapsed_slice_dims", collapsed_slice_dims),
        ("operand_batching_dims", operand_batching_dims),
        source.rank,
    )
    if len(slice_sizes) != source.rank:
        raise AttributeValueError(
            f"gather: slice_sizes {slice_sizes} must have one size for each dimension of "
            f"operand {source}"
        )
    for dimension, size in enumerate(slice_sizes):
        limit = source.dimensions[dimension]
        if not 0 <= size <= limit:
            raise AttributeValueError(
                f"gather: slice size {size} of dimension {dimension} must be between 0 and "
                f"{limit}, operand is {source}"
            )
        # A batching dimension may be empty; what is collapsed must hold an element.
        fewest = 1 if dimension in collapsed_slice_dims else min(1, limit)
        if dimension in removed and size != fewest:
            raise AttributeValueError(
                f"gather: slice size {size} of dimension {dimension} must be 1, because it is "
                f"collapsed or batching; operand is {source}"
            )
    kept = [d for d in range(source.rank) if d not in removed]
    _require_sorted("gather", "offset_dims", offset_dims, len(batch) + len(offset_dims))
    if len(offset_dims) != len(kept):
        raise AttributeValueError(
            f"gather: offset_dims {offset_dims} must name one result dimension for each of "
            f"{len(kept)} slice dimensions that are neither collapsed nor batching; "
            f"operand is {source}"
        )
    inner = iter(slice_sizes[d] for d in kept)
    outer = iter(batch)
    rank = len(batch) + len(offset_dims)
    return source.with_dimensions(
        [next(inner) if d in offset_dims else next(outer) for d in range(rank)]
    )


def gather(
    operand: Instruction,
    start_indices: Instruction,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    indices_are_sorted: bool = False,
) -> Instruction:
    """Slices of ``operand`` from places that ``start_indices`` names (XLA: Gather).

    Every start is clamped so that its slice lies inside the operand. ``indices_are_sorted`` is
    the caller's promise that the indices rise.
    """
    return make(
        GATHER,
        operand,
        start_indices,
        **{f.name: getattr(dimension_numbers, f.name) for f in fields(dimension_numbers)},
        slice_sizes=tuple(slice_sizes),
        indices_are_sorted=indices_are_sorted,
    )


@define(
    "Scatter",
    "scatter",
    Attribute("update_window_dims", Kind.INTS),
    Attribute("inserted_window_dims", Kind.INTS),
    Attribute("scatter_dims_to_operand_dims", Kind.INTS),
    Attribute("input_batching_dims", Kind.INTS, ()),
    Attribute("scatter_indices_batching_dims", Kind.INTS, ()),
    Attribute("index_vector_dim", Kind.INT),
    Attribute("indices_are_sorted", Kind.BOOL, False),
    Attribute("unique_indices", Kind.BOOL, False),
    Attribute("to_apply", Kind.COMPUTATION),
)
def SCATTER(
    *operands: AnyShape,
    update_window_dims: tuple[int, ...],
    inserted_window_dims: tuple[int, ...],
    scatter_dims_to_operand_dims: tuple[int, ...],
    input_batching_dims: tuple[int, ...],
    scatter_indices_batching_dims: tuple[int, ...],
    index_vector_dim: int,
    indices_are_sorted: bool,
    unique_indices: bool,
    to_apply: Computation,
) -> AnyShape:
    count = len(operands) // 2
    if len(operands) != 2 * count + 1 or count == 0:
        raise ShapeError(
            f"scatter: needs N operands, the indices and N updates, not {len(operands)} arrays"
        )
    arrays = [require_array("scatter", f"operand {i}", shape) for i, shape in enumerate(operands)]
    inputs, indices, updates = arrays[:count], arrays[count], arrays[count + 1 :]
    for index in range(count):
        _require_pair(inputs, updates, index)
    require_reducer("scatter", to_apply, inputs)

    source, update = inputs[0], updates[0]
    batch = _index_batch("scatter", "scatter_indices", indices, index_vector_dim)
    _require_index_map(
        "scatter",
        "scatter_dims_to_operand_dims",
        scatter_dims_to_operand_dims,
        indices,
        index_vector_dim,
        source.rank,
    )
    _require_batching(
        "scatter",
        ("input_batching_dims", input_batching_dims, source),
        ("scatter_indices_batching_dims", scatter_indices_batching_dims, indices),
        index_vector_dim,
        scatter_dims_to_operand_dims,
    )
    removed = _removed_dimensions(
        "scatter",
        ("inserted_window_dims", inserted_window_dims),
        ("input_batching_dims", input_batching_dims),
        source.rank,
    )
    kept = [size for d, size in enumerate(source.dimensions) if d not in removed]
    _require_sorted("scatter", "update_window_dims", update_window_dims, update.rank)
    if len(update_window_dims) != len(kept):
        raise AttributeValueError(
            f"scatter: update_window_dims {update_window_dims} must name one update dimension for "
            f"each of {len(kept)} operand dimensions that are neither inserted nor batching; "
            f"operand is {source}"
        )
    if update.rank != len(batch) + len(kept):
        raise ShapeError(
            f"scatter: updates {update} must have rank {len(batch) + len(kept)}, "
            f"{len(kept)} window dimensions and {len(batch)} of scatter_indices {indices}"
        )
    for size, dimension in zip(kept, update_window_dims, strict=True):
        if update.dimensions[dimension] > size:
            raise ShapeError(
                f"scatter: updates {update} dimension {dimension} is "
                f"{update.dimensions[dimension]}; the window must fit into operand {source}"
            )
    outer = [d for d in range(update.rank) if d not in update_window_dims]
    if [update.dimensions[d] for d in outer] != batch:
        raise ShapeError(
            f"scatter: updates {update} dimensions {tuple(outer)} must be those of "
            f"scatter_indices {indices} without its index_vector_dim {index_vector_dim}"
        )
    return collate([shape.with_dimensions(shape.dimensions) for shape in inputs])


def scatter(
    operands: Sequence[Instruction] | Instruction,
    scatter_indices: Instruction,
    updates: Sequence[Instruction] | Instruction,
    update_computation: Computation,
    dimension_numbers: ScatterDimensionNumbers,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
) -> Instruction:
    """``operands`` with ``updates`` combined in at places that ``scatter_indices`` names.

    The computation takes the N present values, then the N updates, and returns the new value, or
    a tuple of N. A window that does not lie inside the operand is dropped whole. Several operands
    make a tuple. The other arguments are the caller's promises about the indices (XLA: Scatter).
    """
    inputs, values = operand_list(operands), operand_list(updates)
    if len(inputs) != len(values):
        raise ShapeError(f"scatter: {len(inputs)} operands need as many updates, not {len(values)}")
    return make(
        SCATTER,
        *inputs,
        scatter_indices,
        *values,
        **{f.name: getattr(dimension_numbers, f.name) for f in fields(dimension_numbers)},
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        to_apply=update_computation,
    )


@functools.cache
def replace_computation(element_type: ElementType) -> Computation:
    """The computation (present, update) -> update, which makes a Scatter an assignment."""
    present, update = (parameter(i, Shape(element_type)) for i in range(2))
    return Computation(f"replace_{element_type}", (present, update), update)


def _index_batch(function: str, name: str, indices: Shape, index_vector_dim: int) -> list[int]:
    """The sizes of the indices' dimensions without the one that holds the index vectors."""
    require_element_type(function, name, indices, INTEGRAL)
    if not 0 <= index_vector_dim <= indices.rank:
        raise AttributeValueError(
            f"{function}: index_vector_dim {index_vector_dim} must be between 0 and the rank of "
            f"{name} {indices}"
        )
    return [size for d, size in enumerate(indices.dimensions) if d != index_vector_dim]


def _require_index_map(
    function: str, name: str, index_map: Sequence[int], indices: Shape, vector_dim: int, rank: int
) -> None:
    require_unique_dimensions(function, name, index_map, rank)
    length = 1 if vector_dim == indices.rank else indices.dimensions[vector_dim]
    if len(index_map) != length:
        raise AttributeValueError(
            f"{function}: {name} {tuple(index_map)} must have one dimension for each of {length} "
            f"numbers in an index vector; indices are {indices}, index_vector_dim is {vector_dim}"
        )


def _require_batching(
    function: str,
    operand: tuple[str, Sequence[int], Shape],
    indices: tuple[str, Sequence[int], Shape],
    vector_dim: int,
    index_map: Sequence[int],
) -> None:
    operand_name, operand_dims, source = operand
    name, dims, shape = indices
    require_unique_dimensions(function, name, dims, shape.rank)
    require_unique_dimensions(function, operand_name, operand_dims, source.rank)
    if len(dims) != len(operand_dims):
        raise AttributeValueError(
            f"{function}: {operand_name} {tuple(operand_dims)} and {name} {tuple(dims)} "
            "must be equally long"
        )
    if vector_dim in dims:
        raise AttributeValueError(
            f"{function}: {name} {tuple(dims)} must not hold index_vector_dim {vector_dim}"
        )
    if set(operand_dims) & set(index_map):
        raise AttributeValueError(
            f"{function}: {operand_name} {tuple(operand_dims)} must not be indexed as well, "
            f"by {tuple(index_map)}"
        )
    for left, right in zip(operand_dims, dims, strict=True):
        if source.dimensions[left] != shape.dimensions[right]:
            raise ShapeError(
                f"{function}: batching dimensions must have equal sizes; operand {source} "
                f"dimension {left} is {source.dimensions[left]}, indices {shape} dimension "
                f"{right} is {shape.dimensions[right]}"
            )


def _removed_dimensions(
    function: str,
    first: tuple[str, Sequence[int]],
    second: tuple[str, Sequence[int]],
    rank: int,
) -> set[int]:
    """Both lists of operand dimensions as one set; they must be sorted and have none in common."""
    for name, dims in (first, second):
        _require_sorted(function, name, dims, rank)
    if set(first[1]) & set(second[1]):
        raise AttributeValueError(
            f"{function}: {first[0]} {tuple(first[1])} and {second[0]} {tuple(second[1])} "
            "must have no dimension in common"
        )
    return {*first[1], *second[1]}


def _require_sorted(function: str, name: str, dims: Sequence[int], rank: int) -> None:
    if list(dims) != sorted(set(dims)) or any(not 0 <= d < rank for d in dims):
        raise AttributeValueError(
            f"{function}: {name} {tuple(dims)} must be strictly increasing and below rank {rank}"
        )


def _require_pair(inputs: Sequence[Shape], updates: Sequence[Shape], index: int) -> None:
    """Operand and update ``index`` share an element type, and all operands one size."""
    if inputs[index].element_type is not updates[index].element_type:
        raise ElementTypeError(
            f"scatter: element types must be equal; operand {index} {inputs[index]}, "
            f"update {index} {updates[index]}"
        )
    for name, shapes in (("operands", inputs), ("updates", updates)):
        if shapes[index].dimensions != shapes[0].dimensions:
            raise ShapeError(
                f"scatter: all {name} must have the same dimensions; 0 is {shapes[0]}, "
                f"{index} is {shapes[index]}"
            )
