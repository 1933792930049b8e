"""Indexing by arrays of integers: what NumPy answers with a copy.

Read it is a Gather, whose unknown indices clamp to the array; written it is a Scatter, which
drops what lies outside.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tracejit.errors import ReadOnlyError, StaticIndexError
from tracejit.graph import Computation, Instruction
from tracejit.ops import indexing, layout
from tracejit.ops.constants import CONSTANT, constant
from tracejit.trace.convert import held
from tracejit.trace.index_basic import (
    INDEX_TYPE,
    BasicIndex,
    Fixed,
    IndexPart,
    Moving,
    New,
    Run,
    normalised,
)
from tracejit.trace.views import Strides, broadcast


@dataclass(frozen=True, slots=True)
class Fancy:
    """Places of a dimension, listed by an array of integers; the dimension may be a new axis."""

    indices: Instruction
    is_new: bool = False


@dataclass(frozen=True)
class FancyIndex:
    """An index with at least one array among its parts.

    All arrays (and integers) are broadcast together. Their dimensions stand where the arrays
    stood if these are neighbours, else in front.
    """

    parts: tuple[IndexPart | Fancy, ...]

    def read(self, base: Instruction) -> Instruction:
        """The elements, as a new array."""
        operand, plan = self._plan(base)
        if plan.is_empty:
            element_type = operand.array_shape.element_type
            empty = operand.array_shape.with_dimensions(plan.dimensions)
            return layout.full(empty.with_element_type(element_type), 0)
        window_sizes = [
            1 if d in plan.indexed else size
            for d, size in enumerate(operand.array_shape.dimensions)
        ]
        numbers = indexing.GatherDimensionNumbers(
            offset_dims=plan.window_dims,
            collapsed_slice_dims=plan.indexed,
            start_index_map=plan.indexed,
            index_vector_dim=len(plan.batch),
        )
        return indexing.gather(operand, plan.starts, numbers, window_sizes)

    def write(self, base: Instruction, value: Instruction, computation: Computation) -> Instruction:
        """The base with ``value``, stretched to what `read` gives, combined in."""
        operand, plan = self._plan(base)
        if plan.is_empty:
            return base
        numbers = indexing.ScatterDimensionNumbers(
            update_window_dims=plan.window_dims,
            inserted_window_dims=plan.indexed,
            scatter_dims_to_operand_dims=plan.indexed,
            index_vector_dim=len(plan.batch),
        )
        updates = broadcast(value, plan.dimensions)
        written = indexing.scatter(operand, plan.starts, updates, computation, numbers)
        return self._cut(base).write(base, written)

    def result_dimensions(self, base: Instruction) -> tuple[int, ...]:
        """The dimensions of the result of `read`."""
        return self._plan(base)[1].dimensions

    def batch(self, base: Instruction) -> tuple[tuple[int, ...], int]:
        """The dimensions of the arrays together, and where they stand in the result."""
        plan = self._plan(base)[1]
        return plan.batch, plan.front

    def _cut(self, base: Instruction) -> BasicIndex:
        """The slices and new axes alone; every other dimension stays whole."""
        sizes = iter(base.array_shape.dimensions)
        parts: list[IndexPart] = []
        for part in self.parts:
            if isinstance(part, New) or (isinstance(part, Fancy) and part.is_new):
                parts.append(New())
                continue
            size = next(sizes)
            parts.append(part if isinstance(part, Run) else Run.whole(size))
        return BasicIndex(tuple(parts))

    def _plan(self, base: Instruction) -> tuple[Instruction, _Plan]:
        operand = self._cut(base).read(base)
        sizes = operand.array_shape.dimensions
        indexed = tuple(d for d, p in enumerate(self.parts) if not isinstance(p, Run | New))
        places = [_places(self.parts[d], sizes[d], d) for d in indexed]
        batch = _broadcast_dimensions([p.array_shape.dimensions for p in places])
        window = [d for d in range(len(sizes)) if d not in indexed]
        adjacent = indexed == tuple(range(indexed[0], indexed[0] + len(indexed)))
        front = indexed[0] if adjacent else 0
        before = [sizes[d] for d in window[:front]]
        after = [sizes[d] for d in window[front:]]
        window_dims = (*range(front), *range(front + len(batch), len(window) + len(batch)))
        dimensions = (*before, *batch, *after)
        if math.prod(batch) and any(sizes[d] == 0 for d in indexed):
            raise StaticIndexError(
                f"index: a dimension of size 0 has no elements to index; array {base.shape}"
            )
        vectors = [layout.reshape(broadcast(p, batch), (*batch, 1)) for p in places]
        starts = layout.concatenate(vectors, len(batch)) if len(vectors) > 1 else vectors[0]
        return operand, _Plan(indexed, batch, front, window_dims, dimensions, starts)


@dataclass(frozen=True, slots=True)
class Diagonal:
    """The path to the elements whose places along two axes differ by ``offset``.

    They stand along a new last dimension. As in NumPy nothing can be written through it.
    """

    offset: int
    first: int
    second: int

    def read(self, base: Instruction) -> Instruction:
        dimensions = base.array_shape.dimensions
        rest = [d for d in range(len(dimensions)) if d not in (self.first, self.second)]
        matrices = layout.transpose(base, [*rest, self.first, self.second])
        rows, columns = dimensions[self.first], dimensions[self.second]
        above, below = max(self.offset, 0), -min(self.offset, 0)
        places = np.arange(max(min(rows - below, columns - above), 0))
        runs = [Run.whole(dimensions[d]) for d in rest]
        along = [Fancy(constant(places + below)), Fancy(constant(places + above))]
        return FancyIndex((*runs, *along)).read(matrices)

    def write(self, base: Instruction, value: Instruction) -> Instruction:
        raise ReadOnlyError("a diagonal is read-only; write to x[range, range], or copy it first")

    def strides(self, shape: tuple[int, ...], strides: Strides) -> Strides:
        rest = (s for d, s in enumerate(strides) if d not in (self.first, self.second))
        return (*rest, strides[self.first] + strides[self.second])


@dataclass(frozen=True)
class _Plan:
    """``starts`` holds one vector with a place for each indexed dimension, over ``batch``.

    The result has ``dimensions``; ``window_dims`` among them are not indexed, and those of the
    places begin at ``front``.
    """

    indexed: tuple[int, ...]
    batch: tuple[int, ...]
    front: int
    window_dims: tuple[int, ...]
    dimensions: tuple[int, ...]
    starts: Instruction

    @property
    def is_empty(self) -> bool:
        return math.prod(self.dimensions) == 0


_FEW = 16
"""The most places that are constants of the program; more are data."""


def _places(part: IndexPart | Fancy, size: int, dimension: int) -> Instruction:
    """The places of one dimension as s64, none of them negative if known."""
    if isinstance(part, Fixed):
        return constant(part.position, INDEX_TYPE)
    assert isinstance(part, Fancy | Moving)
    index = part.indices if isinstance(part, Fancy) else part.index
    if index.op is not CONSTANT:
        return normalised(index, size)
    literal = np.asarray(index.attributes["literal"])
    require_in_range(literal, size, dimension)
    places = np.where(literal < 0, literal.astype(np.int64) + size, literal)
    return constant(places, INDEX_TYPE) if places.size <= _FEW else held(places.astype(np.int64))


def require_in_range(indices: np.ndarray, size: int, dimension: int) -> None:
    """Raises `StaticIndexError` unless all ``indices`` lie in [-size, size)."""
    outside = (indices < -size) | (indices >= size)
    if outside.any():
        raise StaticIndexError(
            f"index {indices[outside].flat[0]} is out of bounds for axis {dimension} with "
            f"size {size}"
        )


def _broadcast_dimensions(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError as error:
        raise StaticIndexError(
            f"shape mismatch: indexing arrays could not be broadcast together with shapes "
            f"{' '.join(map(str, shapes))}"
        ) from error
