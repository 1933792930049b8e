"""Interpolation of samples on lines and grids: the names of ``scipy.interpolate``.

f = interpolate.interp1d(x, y); f(new)
f = interpolate.RegularGridInterpolator((rows, columns), table); f(points)

An object that SciPy made outside of the traced function is evaluated in the same way. A graph
cannot raise: where ``bounds_error`` would, the result is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import scipy.interpolate as scipy_interpolate

from tracejit.errors import AttributeValueError, ShapeError
from tracejit.numpy.building import canonical_axis
from tracejit.numpy.manipulation import as_array, moveaxis
from tracejit.numpy.selecting import take, where
from tracejit.numpy.sorting import argsort, searchsorted
from tracejit.trace.public import public
from tracejit.trace.table import FUNCTIONS, find_traced
from tracejit.trace.tracer import Tracer

__all__ = ["RegularGridInterpolator", "interp1d"]


def _floating(value: Any) -> Tracer:
    array = as_array(value)
    return array if array.element_type.is_inexact else array.astype(np.float64)


class RegularGridInterpolator:
    """Values on a grid of any rank, interpolated: ``points`` a vector for each axis, rising, or
    falling where they are known while tracing.

    ``values`` [n0, n1, ..., more] are real or complex; ``method`` is "linear" or "nearest". Beyond
    the grid the result is ``fill_value``, NaN with ``bounds_error``, and extrapolated where
    ``fill_value`` is None and ``bounds_error`` False. Raises `AttributeValueError` for another
    method, `ShapeError` for points and values that do not fit.
    """

    def __init__(
        self,
        points: Sequence[Any],
        values: Any,
        method: str = "linear",
        bounds_error: bool = True,
        fill_value: Any = math.nan,
        *,
        solver: Any = None,
        solver_args: Any = None,
    ) -> None:
        _require_method("RegularGridInterpolator", method, ("linear", "nearest"))
        self.grid, self.values = _rising(tuple(points), values)
        self.method, self.bounds_error, self.fill_value = method, bounds_error, fill_value
        sizes = tuple(np.shape(axis)[0] for axis in self.grid)
        if np.shape(values)[: len(sizes)] != sizes:
            raise ShapeError(
                f"RegularGridInterpolator: values {np.shape(values)} must begin with the sizes of "
                f"points, {sizes}"
            )

    @classmethod
    def of_scipy(cls, made: Any) -> Any:
        """The same as an object that SciPy made; that itself for methods that are not here."""
        if made.method not in ("linear", "nearest"):
            return made
        return cls(made.grid, made.values, made.method, made.bounds_error, made.fill_value)

    def __call__(self, xi: Any, method: str | None = None) -> Any:
        """The values [..., more] at the points ``xi`` [..., rank]; a tuple is one array an axis."""
        chosen = self.method if method is None else method
        _require_method("RegularGridInterpolator", chosen, ("linear", "nearest"))
        return _on_grid(self.grid, self.values, xi, chosen, self.bounds_error, self.fill_value)


def _rising(points: Sequence[Any], values: Any) -> tuple[tuple[Any, ...], Any]:
    """The points and values, turned about along the axes whose points are known to fall.

    Raises `AttributeValueError` for known points that neither rise nor fall.
    """
    made = list(points)
    for axis, given in enumerate(points):
        if find_traced([given]) is not None or np.ndim(given) != 1:
            continue
        steps = np.diff(np.asarray(given))
        if steps.size and (steps < 0).all():
            made[axis] = np.asarray(given)[::-1]
            values = np.flip(values, axis)
        elif not (steps > 0).all():
            raise AttributeValueError(
                f"RegularGridInterpolator: the points of axis {axis} must rise or fall strictly"
            )
    return tuple(made), values


def _require_method(function: str, method: str, known: Sequence[str]) -> None:
    if method not in known:
        raise AttributeValueError(f"{function}: {method!r} is not one of {', '.join(known)}")


@public
def _on_grid(
    grid: Sequence[Any], values: Any, xi: Any, method: str, bounds_error: bool, fill_value: Any
) -> Any:
    table = _floating(values)
    rank = len(grid)
    given = np.stack(np.broadcast_arrays(*map(as_array, xi)), -1) if isinstance(xi, tuple) else xi
    at = _floating(given)
    at = at[..., None] if rank == 1 and (at.ndim == 1 or at.shape[-1] != 1) else at
    if at.shape[-1:] != (rank,):
        raise ShapeError(f"RegularGridInterpolator: points must be [..., {rank}], not {at.shape}")
    lead = at.shape[:-1] or (1,)
    at = at.reshape(-1, rank)
    corners = []
    inside: Any = True
    for axis, points in enumerate(grid):
        line, x = _floating(points), at[:, axis]
        inside = inside & (x >= line[0]) & (x <= line[-1])
        last = line.shape[0] - 1
        low = np.clip(searchsorted(line, x, "right") - 1, 0, max(last - 1, 0))
        high = np.minimum(low + 1, last)
        width = line[high] - line[low]
        share = where(width == 0, 0, (x - line[low]) / where(width == 0, 1, width))
        if method == "nearest":
            corners.append([(where(share <= 0.5, low, high), None)])
        else:
            corners.append([(low, 1 - share), (high, share)])
    made: Any = 0
    for corner in product(*corners):
        value = table[tuple(index for index, _ in corner)]
        for _, share in corner:
            if share is not None:
                value = value * share.reshape((-1,) + (1,) * (value.ndim - 1))
        made = made + value
    column = (-1,) + (1,) * (made.ndim - 1)
    known = (at == at).all(-1).reshape(column)
    beyond = math.nan if bounds_error else fill_value
    if beyond is not None:
        made = where(inside.reshape(column), made, beyond)
    made = where(known, made, math.nan).astype(table.dtype)
    return made.reshape(*lead, *made.shape[1:])


_KINDS = ("linear", "nearest", "nearest-up", "previous", "next", "zero", "slinear")


class interp1d:
    """Samples ``y`` at the places ``x`` [n], interpolated along ``axis`` of ``y``.

    ``kind`` is linear, nearest, nearest-up, previous or next. Beyond ``x`` the result is
    ``fill_value``, one value or (below, above), or "extrapolate", and NaN where ``bounds_error``
    holds, as it does without a ``fill_value``. Raises `AttributeValueError` for another kind,
    `ShapeError` for shapes that do not fit.
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        kind: str | int = "linear",
        axis: int = -1,
        copy: bool = True,
        bounds_error: bool | None = None,
        fill_value: Any = math.nan,
        assume_sorted: bool = False,
    ) -> None:
        degrees: dict[Any, Any] = {0: "zero", 1: "slinear"}
        name: str = degrees.get(kind, kind)
        _require_method("interp1d", name, _KINDS)
        self.x, self.y, self.axis = x, y, axis
        if bounds_error and isinstance(fill_value, str):
            raise AttributeValueError(
                "interp1d: bounds_error and fill_value='extrapolate' exclude each other"
            )
        self.kind = name
        self._kind = {"zero": "previous", "slinear": "linear"}.get(name, name)
        self.bounds_error, self.fill_value, self._sorted = bounds_error, fill_value, assume_sorted
        place = canonical_axis("interp1d", axis, np.ndim(y))
        if np.ndim(x) != 1 or np.shape(y)[place] != np.shape(x)[0]:
            raise ShapeError(
                f"interp1d: x {np.shape(x)} must be a vector as long as y {np.shape(y)} along "
                f"axis {axis}"
            )

    @classmethod
    def of_scipy(cls, made: Any) -> Any:
        """The same as an object that SciPy made; that itself for splines."""
        if made._kind not in _KINDS:
            return made
        fill, fails = made.fill_value, made.bounds_error
        return cls(made.x, made.y, made._kind, made.axis, True, fails, fill, True)

    def __call__(self, x: Any) -> Any:
        """The samples at ``x`` [...]: the shape of ``y`` with [...] in place of ``axis``."""
        fill = math.nan if self.bounds_error else self.fill_value
        if isinstance(fill, str):
            # There is no sample before the first, and none after the last.
            fill = {"previous": (math.nan, None), "next": (None, math.nan)}.get(self.kind)
        return _on_line(self.x, self.y, x, self._kind, self.axis, fill, self._sorted)


@public
def _on_line(
    points: Any, samples: Any, x: Any, kind: str, axis: int, fill: Any, is_sorted: bool
) -> Any:
    line, table, at = _floating(points), _floating(samples), _floating(x)
    place = canonical_axis("interp1d", axis, table.ndim)
    table = moveaxis(table, place, 0)
    if not is_sorted:
        order = argsort(line)
        line, table = line[order], take(table, order, 0)
    shape, at = at.shape, at.reshape(-1)
    last = line.shape[0] - 1
    column = (-1,) + (1,) * (table.ndim - 1)
    low = np.clip(searchsorted(line, at, "right") - 1, 0, max(last - 1, 0))
    high = np.minimum(low + 1, last)
    width = line[high] - line[low]
    share = (at - line[low]) / where(width == 0, 1, width)
    if kind == "linear":
        wide = share.reshape(column)
        made = table[low] * (1 - wide) + table[high] * wide
    else:
        is_high = {
            "nearest": share > 0.5,
            "nearest-up": share >= 0.5,
            "previous": share >= 1,
            "next": share > 0,
        }[kind]
        made = table[where(is_high, high, low)]
    below, above = fill if isinstance(fill, tuple) else (fill, fill)
    if below is not None:
        made = where((at < line[0]).reshape(column), below, made)
    if above is not None:
        made = where((at > line[-1]).reshape(column), above, made)
    made = where((at == at).reshape(column), made, math.nan).astype(table.dtype)
    made = made.reshape(*shape, *made.shape[1:])
    order = [*range(len(shape), len(shape) + place), *range(len(shape))]
    order += range(len(shape) + place, made.ndim)
    return made.transpose(order)


FUNCTIONS[scipy_interpolate.RegularGridInterpolator] = RegularGridInterpolator
FUNCTIONS[scipy_interpolate.interp1d] = interp1d


def __dir__() -> list[str]:
    return __all__
