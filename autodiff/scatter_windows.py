"""Where a Scatter writes: its windows as masks, gathers and linear positions.

The index ranges of Gather, which clamps, and of Scatter, which drops, are compared here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracejit.graph import Computation, Instruction
from tracejit.ops.comparison import ge, le
from tracejit.ops.computations import highest
from tracejit.ops.constants import constant, iota
from tracejit.ops.element_types import convert_element_type
from tracejit.ops.elementwise import add, and_, mul, select
from tracejit.ops.indexing import (
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
    gather,
    scatter,
)
from tracejit.ops.layout import (
    broadcast_in_dim,
    full,
    full_like,
    reshape,
    slice_in_dim,
)
from tracejit.ops.reduction import reduce_and
from tracejit.shapes import ElementType, Shape


def index_limits(indices: Instruction, vector_dim: int, limits: Sequence[int]) -> Instruction:
    """For every number in ``indices`` the greatest it may be, given those of an index vector."""
    shape = indices.array_shape
    greatest = int(highest(shape.element_type))
    values = np.array([min(limit, greatest) for limit in limits], np.int64)
    vector = constant(values, shape.element_type)
    if vector_dim == shape.rank:
        return broadcast_in_dim(reshape(vector, ()), shape.dimensions, ())
    return broadcast_in_dim(vector, shape.dimensions, (vector_dim,))


@dataclass(frozen=True)
class Windows:
    """The places in an array of ``operand``'s shape that updates of ``update``'s shape go to."""

    attributes: Mapping[str, Any]
    operand: Shape
    indices: Instruction
    update: Shape

    @property
    def removed(self) -> tuple[int, ...]:
        """The operand's dimensions that the updates lack."""
        inserted = self.attributes["inserted_window_dims"]
        return (*inserted, *self.attributes["input_batching_dims"])

    @property
    def window_dimensions(self) -> dict[int, int]:
        """For each operand dimension that a window spans, the update's dimension."""
        spanned = [d for d in range(self.operand.rank) if d not in self.removed]
        return dict(zip(spanned, self.attributes["update_window_dims"], strict=True))

    @property
    def outer_dimensions(self) -> list[int]:
        """The update's dimensions that follow the indices."""
        inner = self.attributes["update_window_dims"]
        return [d for d in range(self.update.rank) if d not in inner]

    @property
    def sizes(self) -> list[int]:
        """The window's size in each dimension of the operand."""
        spanned = self.window_dimensions
        return [
            self.update.dimensions[spanned[d]] if d in spanned else 1
            for d in range(self.operand.rank)
        ]

    def gather(self, operand: Instruction) -> Instruction:
        """What ``operand`` holds where the updates go; anything where a window is outside."""
        if not self.operand.size:
            return full(self.update.with_element_type(operand.array_shape.element_type), 0)
        numbers = GatherDimensionNumbers(
            offset_dims=self.attributes["update_window_dims"],
            collapsed_slice_dims=self.attributes["inserted_window_dims"],
            start_index_map=self.attributes["scatter_dims_to_operand_dims"],
            index_vector_dim=self.attributes["index_vector_dim"],
            operand_batching_dims=self.attributes["input_batching_dims"],
            start_indices_batching_dims=self.attributes["scatter_indices_batching_dims"],
        )
        is_sorted = self.attributes["indices_are_sorted"]
        return gather(operand, self.indices, numbers, self.sizes, is_sorted)

    def scatter(
        self, operand: Instruction, updates: Instruction, computation: Computation
    ) -> Instruction:
        """``operand`` with ``updates`` combined in at the same places."""
        numbers = ScatterDimensionNumbers(
            update_window_dims=self.attributes["update_window_dims"],
            inserted_window_dims=self.attributes["inserted_window_dims"],
            scatter_dims_to_operand_dims=self.attributes["scatter_dims_to_operand_dims"],
            index_vector_dim=self.attributes["index_vector_dim"],
            input_batching_dims=self.attributes["input_batching_dims"],
            scatter_indices_batching_dims=self.attributes["scatter_indices_batching_dims"],
        )
        return scatter(
            operand,
            self.indices,
            updates,
            computation,
            numbers,
            self.attributes["indices_are_sorted"],
            self.attributes["unique_indices"],
        )

    def inside(self) -> Instruction:
        """For each element of the updates whether its window lies inside the operand."""
        vector_dim = self.attributes["index_vector_dim"]
        indexed = self.attributes["scatter_dims_to_operand_dims"]
        sizes = self.sizes
        limits = [self.operand.dimensions[d] - sizes[d] for d in indexed]
        greatest = index_limits(self.indices, vector_dim, limits)
        fits = and_(ge(self.indices, full_like(self.indices, 0)), le(self.indices, greatest))
        if min(limits, default=0) < 0:  # the operand is empty
            fits = full_like(fits, False)
        if vector_dim < self.indices.array_shape.rank:
            fits = reduce_and(fits, [vector_dim])
        return broadcast_in_dim(fits, self.update.dimensions, self.outer_dimensions)

    def targets(self, element_type: ElementType) -> Instruction:
        """For each element of the updates its place, counted in row-major order.

        An update that is dropped gets a number of its own from the operand's size on.
        """
        counted = self.update.with_element_type(element_type)
        strides = [math.prod(self.operand.dimensions[d + 1 :]) for d in range(self.operand.rank)]
        place = full(counted, 0)
        for dimension, position in self._positions(counted):
            place = add(place, mul(position, full(counted, strides[dimension])))
        numbers = reshape(iota(Shape(element_type, (counted.size,))), counted.dimensions)
        own = add(numbers, full(counted, self.operand.size))
        return select(self.inside(), place, own)

    def _positions(self, counted: Shape) -> list[tuple[int, Instruction]]:
        """Parts of the index of every update's place, each with the operand's dimension."""
        vector_dim = self.attributes["index_vector_dim"]
        outer = self.outer_dimensions
        parts = [(d, iota(counted, u)) for d, u in self.window_dimensions.items()]
        for number, dimension in enumerate(self.attributes["scatter_dims_to_operand_dims"]):
            start = self.indices
            if vector_dim < start.array_shape.rank:
                start = slice_in_dim(start, number, number + 1, 1, vector_dim)
                start = reshape(start, [self.update.dimensions[d] for d in outer])
            start = convert_element_type(start, counted.element_type)
            parts.append((dimension, broadcast_in_dim(start, counted.dimensions, outer)))
        for dimension, batching in zip(
            self.attributes["input_batching_dims"],
            self.attributes["scatter_indices_batching_dims"],
            strict=True,
        ):
            parts.append((dimension, iota(counted, outer[batching - (batching > vector_dim)])))
        return parts
