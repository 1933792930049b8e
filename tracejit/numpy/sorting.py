"""Sorting, ranking and searching in sorted arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.errors import AttributeValueError, ElementTypeError
from tracejit.graph import Instruction
from tracejit.numpy import comparison
from tracejit.numpy.building import canonical_axis
from tracejit.numpy.manipulation import as_array, ravel
from tracejit.ops.constants import elements_of, iota
from tracejit.ops.reduction import sort as sort_ops
from tracejit.shapes import ElementType, Shape
from tracejit.trace.public import implements
from tracejit.trace.tracer import Tracer, lift


def _sortable(function: str, a: Any, axis: int | None) -> tuple[Tracer, int]:
    x = as_array(a)
    if x.element_type.is_complex:
        raise ElementTypeError(
            f"{function}: complex numbers cannot be sorted here; sort their parts"
        )
    if axis is None:
        return ravel(x), 0
    if not x.ndim:
        return ravel(x), 0
    return x, canonical_axis(function, axis, x.ndim)


@implements(np.sort)
def sort(
    a: Any, axis: int | None = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Any:
    """The elements along ``axis`` in rising order, NaN last."""
    x, position = _sortable("sort", a, axis)
    return lift(sort_ops(x.instruction, None, position, is_stable=True), False)


def _argsort(keys: list[Instruction], axis: int) -> Instruction:
    """The order of the elements by the first key, equal ones by their place."""
    shape = keys[0].array_shape
    places = iota(Shape(ElementType.S64, shape.dimensions), axis)
    return elements_of(sort_ops([keys[0], places], None, axis, is_stable=True))[1]


@implements(np.argsort)
def argsort(
    a: Any, axis: int | None = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Any:
    """The places of the elements along ``axis`` in rising order; equal ones keep their order."""
    x, position = _sortable("argsort", a, axis)
    return lift(_argsort([x.instruction], position), False)


@implements(np.partition)
def partition(a: Any, kth: Any, axis: int | None = -1, kind: Any = None, order: Any = None) -> Any:
    """Sorted altogether, which puts every ``kth`` element in its place."""
    return sort(a, axis)


@implements(np.argpartition)
def argpartition(
    a: Any, kth: Any, axis: int | None = -1, kind: Any = None, order: Any = None
) -> Any:
    """The places of the elements in rising order."""
    return argsort(a, axis)


@implements(np.sort_complex)
def sort_complex(a: Any) -> Any:
    """Real numbers in rising order, as complex ones."""
    return sort(a).astype(np.complex128)


@implements(np.lexsort)
def lexsort(keys: Any, axis: int = -1) -> Any:
    """The order by the last key, ties by the one before it, and so on."""
    columns = [as_array(key) for key in keys]
    position = canonical_axis("lexsort", axis, columns[0].ndim)
    made = argsort(columns[0], position)
    for column in columns[1:]:
        order = argsort(np.take_along_axis(column, made, position), position)
        made = np.take_along_axis(made, order, position)
    return made


@implements(np.searchsorted)
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """Where in the rising vector ``a`` the elements of ``v`` belong, before or after equal ones."""
    if side not in ("left", "right"):
        raise AttributeValueError(f"searchsorted: side must be 'left' or 'right', not {side!r}")
    rows = as_array(a)
    if sorter is not None:
        rows = rows[sorter]
    wanted = as_array(v)
    # As many elements stand before it as are less (or not greater); NaN is greatest.
    columns = wanted[..., None]
    before = comparison.less if side == "left" else comparison.less_equal
    stands = before(rows, columns)
    if rows.element_type.is_floating or wanted.element_type.is_floating:
        is_last = comparison.isnan(columns)
        stands = stands | (is_last & (~comparison.isnan(rows) if side == "left" else True))
    return stands.sum(-1)


@implements(np.digitize)
def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    """Which interval between known, monotonic ``bins`` each element lies in."""
    edges = np.asarray(bins)
    if edges.size > 1 and (np.diff(edges) < 0).any():
        side = "right" if right else "left"
        return len(edges) - searchsorted(edges[::-1], x, "left" if side == "right" else "right")
    return searchsorted(edges, x, "left" if right else "right")
