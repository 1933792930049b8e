"""Sums of cotangents that belong to places known while running: written into one array.

The cotangent of a DynamicSlice's or Gather's operand is an array of zeros with updates written or
added. Their sum is made in one array: a few updates are added in place, one after the other, which
costs as much as their size; many alike become one Scatter, as the rows of a table that a loop
looks up.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from tracejit.attributes import attribute_key
from tracejit.autodiff.scatter_windows import index_limits
from tracejit.graph import Instruction
from tracejit.ops.computations import binary_op, scalar_computation
from tracejit.ops.constants import CONSTANT
from tracejit.ops.element_types import convert_element_type
from tracejit.ops.elementwise import ADD, add, clamp
from tracejit.ops.indexing import SCATTER, ScatterDimensionNumbers, scatter
from tracejit.ops.layout import (
    BROADCAST_IN_DIM,
    DYNAMIC_SLICE,
    DYNAMIC_UPDATE_SLICE,
    concatenate,
    dynamic_slice,
    dynamic_update_slice,
    full,
    reshape,
    scalar_like,
)
from tracejit.shapes import ElementType, Shape

MANY = 8
"""The least number of updates of one shape that become one Scatter."""

SMALL = 4
"""The least ratio of array to update for adding the update in place."""

Starts = tuple[Instruction, ...]


class Updates:
    """Cotangents of slices, at places known while running, of an array that is zero elsewhere."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._added: dict[tuple[tuple[int, ...], Starts], Instruction] = {}
        self._first: Instruction | None = None

    def takes(self, cotangent: Instruction) -> bool:
        """Adds a DynamicUpdateSlice of zeros; says no to anything else."""
        if cotangent.op is not DYNAMIC_UPDATE_SLICE or not _is_zero(cotangent.operands[0]):
            return False
        _, update, *starts = cotangent.operands
        if update.array_shape.size * SMALL > self._shape.size:
            return False
        key = update.array_shape.dimensions, tuple(starts)
        known = self._added.get(key)
        self._added[key] = update if known is None else add(known, update)
        self._first = self._first or cotangent
        return True

    def onto(self, base: Instruction | None) -> Instruction | None:
        """The sum of all of them and of ``base``, an array or nothing."""
        kinds: dict[tuple[int, ...], list[tuple[Starts, Instruction]]] = {}
        for (sizes, starts), update in self._added.items():
            kinds.setdefault(sizes, []).append((starts, update))
        for found in kinds.values():
            if len(found) >= MANY:
                base = self._scattered(base, *zip(*found, strict=True))
                continue
            for starts, update in found:
                base = self._updated(base, starts, update)
        return base

    def _updated(
        self, base: Instruction | None, starts: Starts, update: Instruction
    ) -> Instruction:
        if base is None:
            first = self._first
            if first is not None and first.operands[1:] == (update, *starts):
                return first
            return dynamic_update_slice(full(self._shape, 0), update, starts)
        if _was_cleared(base, starts, update):
            return base.operands[0]
        present = dynamic_slice(base, starts, update.array_shape.dimensions)
        return dynamic_update_slice(base, add(present, update), starts)

    def _scattered(
        self,
        base: Instruction | None,
        places: Sequence[Starts],
        updates: Sequence[Instruction],
    ) -> Instruction:
        """Updates of one shape added to an array by one Scatter."""
        sizes, whole = updates[0].array_shape.dimensions, self._shape.dimensions
        moving = [d for d, (part, size) in enumerate(zip(sizes, whole, strict=True)) if part < size]
        single = [d for d in moving if sizes[d] == 1]
        rest = [size for d, size in enumerate(sizes) if d not in single]
        count = len(updates)
        vectors = [concatenate([_number(starts[d]) for starts in places], 0) for d in moving]
        indices = concatenate([reshape(vector, (count, 1)) for vector in vectors], 1)
        limits = index_limits(indices, 1, [whole[d] - sizes[d] for d in moving])
        rows = [reshape(update, (1, *rest)) for update in updates]
        numbers = ScatterDimensionNumbers(
            update_window_dims=tuple(range(1, 1 + len(rest))),
            inserted_window_dims=tuple(single),
            scatter_dims_to_operand_dims=tuple(moving),
            index_vector_dim=1,
        )
        return scatter(
            full(self._shape, 0) if base is None else base,
            clamp(scalar_like(indices, 0), indices, limits),
            concatenate(rows, 0),
            scalar_computation("add", self._shape.element_type),
            numbers,
        )


class Scatters:
    """Cotangents of Gathers from an array that is zero elsewhere."""

    def __init__(self) -> None:
        self._alike: dict[Hashable, list[Instruction]] = {}

    def takes(self, cotangent: Instruction) -> bool:
        """Adds a Scatter that adds to zeros; says no to anything else."""
        if cotangent.op is not SCATTER or len(cotangent.operands) != 3:
            return False
        attributes = cotangent.attributes
        if not _is_zero(cotangent.operands[0]) or binary_op(attributes["to_apply"]) is not ADD:
            return False
        self._alike.setdefault(_kind(cotangent), []).append(cotangent)
        return True

    def onto(self, base: Instruction | None) -> Instruction | None:
        """The sum of all of them and of ``base``, an array or nothing."""
        for found in self._alike.values():
            if base is None and len(found) == 1:
                (base,) = found
                continue
            first = found[0]
            zeros, indices, updates = first.operands
            dimensions = _batch_dimensions(first)
            if dimensions is not None:
                indices = concatenate([one.operands[1] for one in found], dimensions[0])
                updates = concatenate([one.operands[2] for one in found], dimensions[1])
            alone = len(found) == 1
            base = scatter(
                zeros if base is None else base,
                indices,
                updates,
                first.attributes["to_apply"],
                ScatterDimensionNumbers(**{n: first.attributes[n] for n in _NUMBERS}),
                alone and first.attributes["indices_are_sorted"],
                alone and first.attributes["unique_indices"],
            )
        return base


_NUMBERS = tuple(ScatterDimensionNumbers.__dataclass_fields__)


def _kind(cotangent: Instruction) -> Hashable:
    """What Scatters have in common that are put together; the Scatter itself if it stays alone."""
    _, indices, updates = cotangent.operands
    found = _batch_dimensions(cotangent)
    if found is None:
        return cotangent
    without = [
        (shape.element_type, *shape.dimensions[:d], *shape.dimensions[d + 1 :])
        for shape, d in zip((indices.array_shape, updates.array_shape), found, strict=True)
    ]
    return tuple(attribute_key(cotangent.attributes[n]) for n in _NUMBERS), *without


def _batch_dimensions(cotangent: Instruction) -> tuple[int, int] | None:
    """A dimension of the indices, and that of the updates, along which more can be added."""
    _, indices, updates = cotangent.operands
    attributes = cotangent.attributes
    vector = attributes["index_vector_dim"]
    window = attributes["update_window_dims"]
    outer = [d for d in range(updates.array_shape.rank) if d not in window]
    if not outer or attributes["input_batching_dims"]:
        return None
    return (1 if vector == 0 and indices.array_shape.rank else 0), outer[0]


def _is_zero(array: Instruction) -> bool:
    while array.op is BROADCAST_IN_DIM:
        (array,) = array.operands
    return array.op is CONSTANT and not array.array_shape.rank and array.attributes["literal"] == 0


def _number(start: Instruction) -> Instruction:
    return reshape(convert_element_type(start, ElementType.S64), (1,))


def _was_cleared(base: Instruction, starts: Starts, update: Instruction) -> bool:
    """Whether ``update`` is what was taken out of an array that ``base`` is without it."""
    if base.op is not DYNAMIC_UPDATE_SLICE or update.op is not DYNAMIC_SLICE:
        return False
    before, cleared, *places = base.operands
    return (
        _is_zero(cleared)
        and (before, *places) == update.operands
        and tuple(places) == starts
        and cleared.shape == update.shape
    )
