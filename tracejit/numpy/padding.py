"""`np.pad`: constants, edges, reflections, wrapping, ramps and statistics around an array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.attributes import PaddingDimension
from tracejit.errors import AttributeValueError
from tracejit.graph import Instruction
from tracejit.numpy.manipulation import as_array
from tracejit.numpy.means import mean
from tracejit.numpy.places import take_places
from tracejit.numpy.quantiles import median
from tracejit.numpy.rounding import rint_of
from tracejit.ops import layout
from tracejit.trace.convert import converted, operand
from tracejit.trace.public import implements
from tracejit.trace.result_layouts import padded
from tracejit.trace.table import Traced
from tracejit.trace.tracer import Tracer, lift

_BY_PLACE = ("edge", "reflect", "symmetric", "wrap")


def _pairs(argument: str, value: Any, rank: int) -> list[tuple[Any, Any]]:
    """(before, after) for each dimension, as NumPy stretches one number or one pair."""
    if isinstance(value, dict):
        chosen = {axis % rank: pair for axis, pair in value.items()}
        nested = [chosen.get(d, (0, 0)) for d in range(rank)]
        return [pair if isinstance(pair, tuple) else (pair, pair) for pair in nested]
    if isinstance(value, Traced) or np.ndim(value) == 0:
        return [(value, value)] * rank
    rows = [row if isinstance(row, Traced) or np.ndim(row) else (row,) for row in value]
    if len(rows) == 2 and all(len(row) == 1 for row in rows):
        return [(rows[0][0], rows[1][0])] * rank
    if len(rows) == 1:
        rows *= rank
    if len(rows) != rank or any(len(row) not in (1, 2) for row in rows):
        raise AttributeValueError(f"pad: {argument} must be a pair for each of {rank} dimensions")
    return [(row[0], row[-1]) for row in rows]


@implements(np.pad, layout=padded)
def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Any:
    """``array`` with ``pad_width`` elements more before and after, along each dimension.

    Modes and their arguments are NumPy's; a function as mode is not supported. Raises
    `AttributeValueError` for another mode or a negative width.

    >>> tnp.pad([1, 2], (1, 2), constant_values=9)
    array([9, 1, 2, 9, 9])
    """
    x = as_array(array)
    widths = [(int(a), int(b)) for a, b in _pairs("pad_width", pad_width, x.ndim)]
    if any(a < 0 or b < 0 for a, b in widths):
        raise AttributeValueError(f"pad: widths must not be negative, not {pad_width}")
    if mode == "constant":
        return _constant(
            x, widths, _pairs("constant_values", kwargs.pop("constant_values", 0), x.ndim)
        )
    if mode == "empty":
        return _constant(x, widths, [(0, 0)] * x.ndim)
    if mode in _BY_PLACE:
        return _by_place(x, widths, mode, kwargs)
    if mode == "linear_ramp":
        ends = _pairs("end_values", kwargs.get("end_values", 0), x.ndim)
        return _around(x, widths, lambda part, d: _ramps(part, d, widths[d], ends[d]))
    if mode in _STATISTICS:
        lengths = kwargs.get("stat_length")
        counts = (
            [(None, None)] * x.ndim if lengths is None else _pairs("stat_length", lengths, x.ndim)
        )
        return _around(x, widths, lambda part, d: _statistics(part, d, widths[d], counts[d], mode))
    raise AttributeValueError(
        f"pad: mode must be constant, empty, linear_ramp, {', '.join((*_BY_PLACE, *_STATISTICS))}, "
        f"not {mode!r}"
    )


def _constant(x: Tracer, widths: list[tuple[int, int]], values: list[tuple[Any, Any]]) -> Tracer:
    made = x.instruction
    first = values[0][0] if values else 0
    same = not isinstance(first, Traced) and all(
        not isinstance(v, Traced) and v == first for pair in values for v in pair
    )
    if same:
        value = operand(first).to(x.element_type)
        config = [PaddingDimension(low, high) for low, high in widths]
        return lift(layout.pad(made, layout.reshape(value, ()), config), False)
    for axis, ((low, high), (before, after)) in enumerate(zip(widths, values, strict=True)):
        made = layout.pad_in_dim(made, operand(before).to(x.element_type), axis, low, 0)
        made = layout.pad_in_dim(made, operand(after).to(x.element_type), axis, 0, high)
    return lift(made, False)


def _by_place(
    x: Tracer, widths: list[tuple[int, int]], mode: str, kwargs: dict[str, Any]
) -> Tracer:
    made = x.instruction
    odd = kwargs.get("reflect_type", "even") == "odd"
    for axis, width in enumerate(widths):
        if width == (0, 0):
            continue
        places = np.pad(np.arange(x.shape[axis]), width, mode)  # type: ignore[call-overload]
        if odd and mode in ("reflect", "symmetric"):
            raise AttributeValueError("pad: reflect_type must be 'even'")
        made = take_places(made, places, axis)
    return lift(made, False)


def _around(
    x: Tracer,
    widths: list[tuple[int, int]],
    edges: Callable[[Instruction, int], tuple[Instruction, Instruction]],
) -> Tracer:
    """One dimension after the other, with what ``edges`` makes of the array so far around it."""
    made = x.instruction
    for axis, width in enumerate(widths):
        if width != (0, 0):
            before, after = edges(made, axis)
            made = layout.concatenate([before, made, after], axis)
    return lift(made, False)


def _ramps(
    x: Instruction, axis: int, width: tuple[int, int], ends: tuple[Any, Any]
) -> tuple[Instruction, Instruction]:
    made = []
    size = x.array_shape.dimensions[axis]
    for side, (count, end) in enumerate(zip(width, ends, strict=True)):
        at = size - 1 if side else 0
        edge = lift(layout.slice_in_dim(x, at, at + 1, 1, axis), False)
        steps = np.arange(count) / max(count, 1)
        weights = (1 - steps[::-1] - 1 / max(count, 1)) if side else steps
        shape = [count if d == axis else 1 for d in range(edge.ndim)]
        # From the end value (weight 0) to the edge (weight 1, not reached).
        rising = weights.reshape(shape) if not side else (steps[::-1]).reshape(shape)
        ramp = end + (edge - end) * rising
        ramp = np.floor(ramp) if not edge.element_type.is_inexact else ramp
        made.append(converted(as_array(ramp).instruction, edge.element_type))
    return made[0], made[1]


def _statistics(
    x: Instruction,
    axis: int,
    width: tuple[int, int],
    counts: tuple[int | None, int | None],
    mode: str,
) -> tuple[Instruction, Instruction]:
    made = []
    size = x.array_shape.dimensions[axis]
    for side, (wide, count) in enumerate(zip(width, counts, strict=True)):
        length = size if count is None else min(int(count), size)
        start = size - length if side else 0
        part = lift(layout.slice_in_dim(x, start, start + length, 1, axis), False)
        value = operand(_STATISTICS[mode](part, axis)).natural
        if not part.element_type.is_inexact:
            value = rint_of(value) if value.array_shape.element_type.is_floating else value
        value = converted(value, part.element_type)
        dimensions = [wide if d == axis else s for d, s in enumerate(part.shape)]
        made.append(layout.broadcast_in_dim(value, dimensions, range(part.ndim)))
    return made[0], made[1]


_STATISTICS: dict[Any, Callable[[Tracer, int], Any]] = {
    "maximum": lambda x, axis: x.max(axis, keepdims=True),
    "minimum": lambda x, axis: x.min(axis, keepdims=True),
    "mean": lambda x, axis: mean(x, axis, keepdims=True),
    "median": lambda x, axis: median(x, axis, keepdims=True),
}
