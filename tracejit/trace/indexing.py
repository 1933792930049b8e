"""Reading and writing with brackets: ``x[...]``, ``x[...] = v``, and iteration."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from tracejit.errors import ArgumentError, ConcretizationError, ShapeError
from tracejit.graph import Instruction
from tracejit.ops import elementwise, layout
from tracejit.ops.constants import PARAMETER
from tracejit.ops.indexing import replace_computation
from tracejit.shapes import ElementType
from tracejit.trace.boolean_indexing import Masked
from tracejit.trace.context import memory_now
from tracejit.trace.convert import as_instruction, assigned, converted, stretch
from tracejit.trace.evaluation import known_value
from tracejit.trace.hash_consing import Read, key_of_index
from tracejit.trace.index_basic import Fixed, Moving
from tracejit.trace.index_fancy import FancyIndex
from tracejit.trace.index_parse import UnknownMask, is_array_of_rank_0, parse_index
from tracejit.trace.mask_places import MaskIndices
from tracejit.trace.masked_slices import Between
from tracejit.trace.masks import is_same_mask
from tracejit.trace.memory_order import UNKNOWN, Layout
from tracejit.trace.settled import NotPlainError, settled_trace
from tracejit.trace.table import Traced
from tracejit.traversal import in_order


class Indexing(Traced):
    """Mixin: brackets, as NumPy has them.

    A basic index gives a view, an index by arrays a copy. An unknown integer is clamped when it
    reads and dropped when it writes out of range.
    """

    __slots__ = ()
    is_scalar: bool
    through: Callable[..., Any]
    is_view: Callable[[Any, object], bool]
    write: Callable[[Instruction], None]
    _new: Callable[..., Any]

    @property
    def is_permuted(self) -> bool:
        raise NotImplementedError

    @property
    def instruction(self) -> Instruction:
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, ...]:
        raise NotImplementedError

    @property
    def element_type(self) -> ElementType:
        raise NotImplementedError

    def read_plainly(self, index: Any) -> Any:
        raise NotImplementedError

    def write_plainly(self, index: Any, value: Any) -> None:
        raise NotImplementedError

    def __getitem__(self, index: Any) -> Any:
        if settled_trace() is not None:
            with suppress(NotPlainError):
                return self.read_plainly(index)
        memory = memory_now()
        if memory is None or (place := key_of_index(index)) is None:
            return self._read(index)
        key = self.instruction, self.is_scalar, place
        known = memory.reads.get(key)
        if known is None:
            made = self._read(index)
            memory.reads[key] = Read(made.path, made.instruction, made.is_scalar)
            return made
        if known.path is None:
            return self._new(known.instruction, known.is_scalar)
        return self.through(known.path, known.is_scalar, known.instruction)

    def _read(self, index: Any) -> Any:
        if isinstance(index, Masked) and not isinstance(index, MaskIndices):
            return index.taken_from(self)
        if isinstance(index, tuple) and any(map(_is_selected, index)):
            places, mask = _of_selected(index, 0)
            return Masked(self[places], mask, 0)
        try:
            parsed = parse_index(index, self.shape, as_instruction)
        except UnknownMask as unknown:
            return self._selected(unknown)
        if isinstance(parsed, FancyIndex) or _has(index, is_array_of_rank_0):
            value = parsed.read(self.instruction)
            is_scalar = not value.array_shape.rank and not _has(index, _is_ellipsis)
            made = self._new(value, is_scalar)
            if isinstance(parsed, FancyIndex) and len(made.shape) > 1:
                made.lay(self._taken_layout(parsed, index))
            return made
        if all(isinstance(part, Fixed | Moving) for part in parsed.parts):
            # x[0] is a number, x[..., 0] an array of rank 0 and a view.
            return self.through(parsed, not _has(index, _is_ellipsis))
        return self.through(parsed)

    def _taken_layout(self, index: FancyIndex, given: Any) -> Layout | None:
        """How elements at listed places lie in memory: the lists' dimensions go first."""
        if self.is_permuted or _has(given, _is_permuted):
            return UNKNOWN
        batch, front = index.batch(self.instruction)
        if not front:
            return None
        rank = len(index.result_dimensions(self.instruction))
        lists = range(front, front + len(batch))
        return Layout((*lists, *(d for d in range(rank) if d not in lists)))

    def _selected(self, unknown: UnknownMask) -> Masked:
        """The elements under an unknown mask, among ones: of those every function is defined.

        Of a slice with unknown bounds, a view.
        """
        place = self[unknown.around]
        if unknown.is_slice:
            return Between(place, unknown.mask, unknown.axis, unknown.is_counted)
        value = place.instruction
        covers = range(unknown.axis, unknown.axis + unknown.mask.array_shape.rank)
        wide = layout.broadcast_in_dim(unknown.mask, value.array_shape.dimensions, covers)
        kept = elementwise.select(wide, value, layout.full_like(value, 1))
        return Masked(place._new(kept, False), unknown.mask, unknown.axis)

    def __setitem__(self, index: Any, value: Any) -> None:
        if self.is_scalar:
            raise ArgumentError("a number does not support item assignment: it is not an array")
        if settled_trace() is not None:
            with suppress(NotPlainError):
                self.write_plainly(index, value)
                return
        if _has(index, _is_selected):
            places, mask = _of_selected(index if isinstance(index, tuple) else (index,), DROPPED)
            self[places] = _beside(mask, value)
            return
        try:
            parsed = parse_index(index, self.shape, as_instruction)
        except UnknownMask as unknown:
            self._write_where(unknown, value)
            return
        if isinstance(value, Indexing) and value.is_view(self, parsed):
            # x[i] += v writes through the view x[i], and then asks for x[i] = that view.
            return
        if isinstance(value, np.integer) and not isinstance(parsed, FancyIndex):
            value = int(value)  # as which NumPy stores it
        update = assigned(value, self.element_type)
        if isinstance(parsed, FancyIndex):
            base = self.instruction
            update = stretch("assignment", update, parsed.result_dimensions(base))
            self.write(parsed.write(base, update, replace_computation(self.element_type)))
            return
        place = self.through(parsed, False)
        place.write(stretch("assignment", update, place.shape))

    def _write_where(self, unknown: UnknownMask, value: Any) -> None:
        """``x[mask] = value`` for an unknown mask: a select over the part that it covers."""
        place = self[unknown.around]
        if isinstance(value, Between) and value.is_same_place(place, unknown.mask):
            # x[:i] += v writes through the view x[:i], and then asks for x[:i] = that view.
            return
        if isinstance(value, Masked):
            if not (is_same_mask(value.mask, unknown.mask) and value.axis == unknown.axis):
                raise ShapeError(
                    "assignment: elements that another mask selects; how many there are is "
                    "unknown, so only those under the same mask can be assigned"
                )
            covers = range(unknown.axis, unknown.axis + unknown.mask.array_shape.rank)
            whole = converted(value.whole.instruction, self.element_type)
            wide = layout.broadcast_in_dim(unknown.mask, place.shape, covers)
            whole = stretch("assignment", whole, place.shape)
            place.write(elementwise.select(wide, whole, place.instruction))
            return
        rank = unknown.mask.array_shape.rank
        before, after = place.shape[: unknown.axis], place.shape[unknown.axis + rank :]
        update = assigned(value, self.element_type)
        # The mask's dimensions count as one, along which the value must not vary.
        update = stretch("assignment by an unknown mask", update, (*before, 1, *after))
        update = layout.reshape(update, (*before, *[1] * rank, *after))
        wide = layout.broadcast_in_dim(update, place.shape, range(len(place.shape)))
        covered = range(unknown.axis, unknown.axis + rank)
        mask = layout.broadcast_in_dim(unknown.mask, place.shape, covered)
        place.write(elementwise.select(mask, wide, place.instruction))

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise ArgumentError("iteration over an array of rank 0")
        if len(self.shape) == 1 and not _has_argument(self.instruction):
            known = known_value(self.instruction)
            if known is not None:
                return iter(known)
        return (self[i] for i in range(self.shape[0]))

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())


DROPPED = np.iinfo(np.int64).max
"""The index at which nothing is written."""


def _is_selected(item: Any) -> bool:
    """Whether an item of an index are integers that a mask selects."""
    return isinstance(item, Masked) and not isinstance(item, MaskIndices)


def _of_selected(index: tuple[Any, ...], otherwise: int) -> tuple[tuple[Any, ...], Instruction]:
    """An index by integers, some selected by a mask, and the mask."""
    first = next(filter(_is_selected, index))
    for item in index:
        if _is_selected(item):
            if not is_same_mask(item.mask, first.mask):
                raise ShapeError("index: integers that different masks select, of unknown number")
        elif not isinstance(item, int | np.integer | Indexing) or np.shape(item):
            raise ConcretizationError(
                "index: beside integers that a mask selects there can be numbers alone"
            )
    made = (item.places(otherwise) if _is_selected(item) else item for item in index)
    return tuple(made), first.mask


def _beside(mask: Instruction, value: Any) -> Any:
    """What is assigned to the elements that a mask selects."""
    if isinstance(value, Masked):
        if not is_same_mask(value.mask, mask) or value.axis:
            raise ShapeError("assignment: elements that another mask selects, of unknown number")
        return value.whole
    if np.ndim(value) and np.shape(value)[0] != 1:
        raise ShapeError(
            f"assignment: an array {np.shape(value)} cannot be put beside elements of unknown "
            f"number; assign a number, or elements that the same mask selects"
        )
    return value


def _has(index: Any, wanted: Callable[[Any], bool]) -> bool:
    return any(map(wanted, index)) if isinstance(index, tuple) else wanted(index)


def _is_permuted(item: Any) -> bool:
    if isinstance(item, np.ndarray):
        return not item.flags.c_contiguous
    return bool(getattr(item, "is_permuted", False))


def _is_ellipsis(item: Any) -> bool:
    return item is Ellipsis


def _has_argument(instruction: Instruction) -> bool:
    """Whether an argument, even one whose value is known, is behind a value."""
    return any(at.op is PARAMETER for at in in_order([instruction]))
