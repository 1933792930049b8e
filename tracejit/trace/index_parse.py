"""From what stands between the brackets of ``x[...]`` to the parts of an index."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from types import EllipsisType
from typing import Any

import numpy as np

from tracejit.errors import ConcretizationError, DimensionError, StaticIndexError
from tracejit.graph import Instruction
from tracejit.ops.constants import CONSTANT, constant
from tracejit.shapes import ElementType
from tracejit.trace.affine_bounds import is_counted, may_be_place
from tracejit.trace.evaluation import known_value
from tracejit.trace.index_basic import BasicIndex, Fixed, IndexPart, Moving, New, Run
from tracejit.trace.index_counted import counted_slice, unknown_slice
from tracejit.trace.index_fancy import Fancy, FancyIndex, require_in_range
from tracejit.trace.mask_places import mask_of_places
from tracejit.trace.table import Traced

ToInstruction = Callable[[Any], Instruction]


class UnknownMask(Exception):
    """The index holds a boolean array whose values, and so the result's shape, are unknown.

    ``around`` is the index with slices in the mask's place; in what that gives, the mask covers
    the dimensions from ``axis`` on. Of a slice with unknown bounds the mask are its places.
    """

    def __init__(self, mask: Instruction) -> None:
        super().__init__()
        self.mask = mask
        self.around: tuple[Any, ...] = ()
        self.axis = 0
        self.is_slice = False
        self.is_counted = False


def parse_index(
    index: Any, dimensions: tuple[int, ...], to_instruction: ToInstruction
) -> BasicIndex | FancyIndex:
    """The parts of an index into an array of ``dimensions``.

    Raises `StaticIndexError` for an index that is out of range or of an impossible type, and
    `UnknownMask` for a boolean array that is not known while tracing.
    """
    given = mask_of_places(index if isinstance(index, tuple) else (index,))
    items = _written_out([_classified(item, to_instruction) for item in given], len(dimensions))
    parts: list[IndexPart | Fancy] = []
    dimension = 0
    for position, item in enumerate(items):
        if item is None:
            parts.append(New())
            continue
        taken = _dimensions_taken(item)
        if isinstance(item, slice):
            counted = counted_slice(item, dimensions[dimension], to_instruction)
            if isinstance(counted, Instruction):
                raise _unknown_slice(items, position, counted, is_counted=True)
            if counted is None:
                places = unknown_slice(item, dimensions[dimension], to_instruction)
                if places is not None:
                    raise _unknown_slice(items, position, places, is_counted=False)
            parts.append(_run(item, dimensions[dimension]) if counted is None else counted)
        elif isinstance(item, int):
            size = dimensions[dimension]
            require_in_range(np.asarray(item), size, dimension)
            parts.append(Fixed(item % size))
        elif item.array_shape.element_type is ElementType.PRED:
            mask = _mask(item, dimensions[dimension : dimension + taken], dimension)
            if mask is None:
                raise _unknown_mask(items, position)
            parts.extend(mask)
        elif item.array_shape.rank == 0:
            if not dimensions[dimension]:
                raise StaticIndexError(f"index: axis {dimension} has size 0, no element to index")
            if not may_be_place(item, dimensions[dimension]):
                raise _unknown_range(dimension, dimensions[dimension])
            parts.append(Moving(item))
        else:
            if is_counted(item):
                raise _unknown_range(dimension, dimensions[dimension])
            parts.append(Fancy(item))
        dimension += taken
    if any(isinstance(part, Fancy) for part in parts):
        return FancyIndex(tuple(parts))
    return BasicIndex(tuple(part for part in parts if not isinstance(part, Fancy)))


Item = None | slice | int | Instruction


def _written_out(items: list[Item | EllipsisType], rank: int) -> list[Item]:
    """The items with an Ellipsis (there is one at the end) replaced by slices."""
    ellipses = [i for i, item in enumerate(items) if item is Ellipsis]
    if len(ellipses) > 1:
        raise StaticIndexError("an index can only have a single ellipsis ('...')")
    rest = [item for item in items if not isinstance(item, EllipsisType)]
    taken = sum(_dimensions_taken(item) for item in rest)
    if taken > rank:
        raise DimensionError(
            f"too many indices for array: array is {rank}-dimensional, but {taken} were indexed"
        )
    at = ellipses[0] if ellipses else len(rest)
    return [*rest[:at], *[slice(None)] * (rank - taken), *rest[at:]]


def _dimensions_taken(item: Item) -> int:
    if item is None:
        return 0
    if isinstance(item, Instruction) and item.array_shape.element_type is ElementType.PRED:
        return item.array_shape.rank
    return 1


def _classified(item: Any, to_instruction: ToInstruction) -> Item | EllipsisType:
    """None, Ellipsis, a slice, a known integer, or an array of integers or booleans."""
    if item is None or isinstance(item, slice | EllipsisType | Instruction):
        return item
    if isinstance(item, bool | np.bool_):
        return constant(np.bool_(item))
    if isinstance(item, int | np.integer):
        return int(item)
    if isinstance(item, Sequence) and not isinstance(item, str | bytes | tuple):
        item = list(item)
    if isinstance(item, np.ndarray | list | tuple | Traced) or hasattr(item, "__array__"):
        array = to_instruction(
            np.zeros(0, np.int64) if isinstance(item, list | tuple) and not item else item
        )
        element_type = array.array_shape.element_type
        if not element_type.is_integral and element_type is not ElementType.PRED:
            raise StaticIndexError(
                f"arrays used as indices must be of integer or boolean type, not {array.shape}"
            )
        known = known_value(array)
        if known is None:
            return array
        return int(known) if known.ndim == 0 and known.dtype != np.bool_ else constant(known)
    try:
        return operator.index(item)
    except TypeError as error:
        raise StaticIndexError(
            f"only integers, slices, ellipsis, newaxis and integer or boolean arrays are indices, "
            f"not {type(item).__name__}"
        ) from error


def is_array_of_rank_0(item: Any) -> bool:
    """Whether an item is an array, no number: as an index it gives a copy, no view."""
    if isinstance(item, np.ndarray):
        return item.ndim == 0
    return isinstance(item, Traced) and not (
        item.operand().dimensions or getattr(item, "is_scalar", False)
    )


def _run(item: slice, size: int) -> Run:
    start, stop, step = item.indices(size)
    count = len(range(start, stop, step))
    return Run(start, step, count) if count else Run(0, 1, 0)


def _unknown_range(dimension: int, size: int) -> ConcretizationError:
    return ConcretizationError(
        f"index: it is not known for all steps of a loop at once that the index lies within axis "
        f"{dimension} of size {size}, or from which end it counts"
    )


def _mask(
    mask: Instruction, dimensions: tuple[int, ...], first: int
) -> list[IndexPart | Fancy] | None:
    """One list of places for each dimension that a mask covers; None if it is unknown."""
    sizes = mask.array_shape.dimensions
    for offset, (size, wanted) in enumerate(zip(sizes, dimensions, strict=True)):
        if size != wanted:
            raise StaticIndexError(
                f"boolean index did not match indexed array along axis {first + offset}; size of "
                f"axis is {wanted} but size of corresponding boolean axis is {size}"
            )
    if mask.op is not CONSTANT:
        return None
    literal = mask.attributes["literal"]
    if not dimensions:
        # x[True] is x[newaxis], x[False] is an empty array along a new axis.
        return [Fancy(constant(np.zeros(int(literal), np.int64)), is_new=True)]
    return [Fancy(constant(places)) for places in np.nonzero(literal)]


def _unknown_mask(items: list[Item], position: int) -> UnknownMask:
    mask = items[position]
    assert isinstance(mask, Instruction)
    rest = [*items[:position], *items[position + 1 :]]
    if any(isinstance(item, Instruction) for item in rest):
        raise ConcretizationError(
            "index: an unknown mask beside other arrays is not supported; write np.where"
        )
    return _around(UnknownMask(mask), items, position)


def _unknown_slice(
    items: list[Item], position: int, places: Instruction, is_counted: bool
) -> UnknownMask:
    """As a mask: of the places that lie between the slice's bounds."""
    rest = [*items[:position], *items[position + 1 :]]
    if any(isinstance(item, Instruction) and not is_number(item) for item in rest):
        raise ConcretizationError(
            "index: a slice with unknown bounds beside an array is not supported"
        )
    unknown = _around(UnknownMask(places), items, position)
    unknown.is_slice, unknown.is_counted = True, is_counted
    return unknown


def _around(unknown: UnknownMask, items: list[Item], position: int) -> UnknownMask:
    whole = [slice(None)] * unknown.mask.array_shape.rank
    # The Ellipsis gives a view also of an array of rank 0, never a number.
    unknown.around = (*items[:position], *whole, *items[position + 1 :], Ellipsis)
    unknown.axis = sum(not is_number(item) for item in items[:position])
    return unknown


def is_number(item: Item) -> bool:
    """Whether an item is one integer, which takes a dimension away."""
    if not isinstance(item, Instruction):
        return isinstance(item, int)
    return not item.array_shape.rank and item.array_shape.element_type is not ElementType.PRED
