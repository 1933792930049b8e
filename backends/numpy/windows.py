"""ReduceWindow and SelectAndScatter, evaluated.

Both walk over the elements of one window; each step handles all positions of the window at once.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tracejit.attributes import Window
from tracejit.backends.numpy.interpreter import Value, interpret
from tracejit.backends.numpy.precision import widened
from tracejit.backends.numpy.scalars import evaluate_elementwise
from tracejit.backends.numpy.ufuncs import reducing_ufunc
from tracejit.graph import Instruction
from tracejit.ops.windows import REDUCE_WINDOW, SELECT_AND_SCATTER, running_axis
from tracejit.shapes import Shape


def spread(base: np.ndarray, window: Window, fill: object) -> np.ndarray:
    """``base`` with the window's base dilation and padding (or cropping) carried out."""
    for axis, entry in enumerate(window):
        size = entry.dilated_base(base.shape[axis])
        low, high = entry.padding_low, entry.padding_high
        sizes = list(base.shape)
        sizes[axis] = size + max(low, 0) + max(high, 0)
        wide = np.full(sizes, fill, base.dtype)
        place = [slice(None)] * base.ndim
        place[axis] = slice(max(low, 0), max(low, 0) + size, entry.base_dilation)
        wide[tuple(place)] = base
        place[axis] = slice(max(-low, 0), sizes[axis] - max(-high, 0))
        base = wide[tuple(place)]
    return base


def views(window: Window, positions: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """For each element of the window, in order, where it lies in the base for all positions."""
    for offset in np.ndindex(*[entry.size for entry in window]):
        yield tuple(
            slice(
                o * entry.window_dilation,
                o * entry.window_dilation + (count - 1) * entry.stride + 1,
                entry.stride,
            )
            if count
            else slice(0, 0)
            for o, entry, count in zip(offset, window, positions, strict=True)
        )


@interpret.attach(REDUCE_WINDOW)
def reduce_window(instruction: Instruction, *arrays: np.ndarray) -> Value:
    window, computation = instruction.attributes["window"], instruction.attributes["to_apply"]
    operands, inits = arrays[: len(arrays) // 2], arrays[len(arrays) // 2 :]
    ufunc = reducing_ufunc(computation) if len(operands) == 1 else None
    if ufunc is not None:
        return _reduce_window_by(ufunc, instruction, operands[0], inits[0])
    positions = _positions(instruction)
    results = [np.broadcast_to(init, positions) for init in inits]
    bases = [spread(a, window, init) for a, init in zip(operands, inits, strict=True)]
    exists = spread(np.ones(operands[0].shape, bool), window, False)
    for view in views(window, positions):
        combined = evaluate_elementwise(computation, [*results, *(b[view] for b in bases)])
        combined = combined if len(results) > 1 else (combined,)
        results = [
            np.where(exists[view], new, old) for new, old in zip(combined, results, strict=True)
        ]
    return tuple(results) if len(results) > 1 else results[0]


def _positions(instruction: Instruction) -> tuple[int, ...]:
    shape = instruction.element_shapes[0]
    assert isinstance(shape, Shape)
    return shape.dimensions


def _reduce_window_by(
    ufunc: np.ufunc, instruction: Instruction, operand: np.ndarray, init: np.ndarray
) -> np.ndarray:
    window, positions = instruction.attributes["window"], _positions(instruction)
    wide, start = widened(operand), widened(init)
    axis = running_axis(window, operand.shape)
    if axis is not None:
        backwards = (axis,) if window[axis].padding_high else ()
        running = ufunc.accumulate(np.flip(wide, backwards), axis, wide.dtype)
        return np.asarray(ufunc(start, np.flip(running, backwards))).astype(operand.dtype)
    result = np.full(positions, start)
    base = spread(wide, window, start)
    exists = spread(np.ones(operand.shape, bool), window, False)
    for view in views(window, positions):
        ufunc(result, base[view], out=result, where=exists[view])
    return result.astype(operand.dtype)


@interpret.attach(SELECT_AND_SCATTER)
def select_and_scatter(
    instruction: Instruction, operand: np.ndarray, source: np.ndarray, init: np.ndarray
) -> Value:
    window, select = instruction.attributes["window"], instruction.attributes["select"]
    scatter = instruction.attributes["scatter"]
    base = spread(operand, window, 0)
    exists = spread(np.ones(operand.shape, bool), window, False)
    best = np.zeros(source.shape, operand.dtype)
    chosen = np.full(source.shape, -1)
    for number, view in enumerate(views(window, source.shape)):
        keeps = evaluate_elementwise(select, [best, base[view]]) & (chosen >= 0)
        takes = exists[view] & ~keeps
        best = np.where(takes, base[view], best)
        chosen = np.where(takes, number, chosen)

    # Windows come in order of their positions, so that the last element of a window is first.
    target = np.full(base.shape, init, operand.dtype)
    for number, view in reversed([*enumerate(views(window, source.shape))]):
        arrived = evaluate_elementwise(scatter, [target[view], source])
        target[view] = np.where(chosen == number, arrived, target[view])
    return _gather_back(target, operand.shape, window, init)


def _gather_back(
    spread_out: np.ndarray, sizes: tuple[int, ...], window: Window, fill: np.ndarray
) -> np.ndarray:
    """The inverse of `spread` without dilation; what was cropped comes back as ``fill``."""
    result = np.full(sizes, fill, spread_out.dtype)
    inside, outside = [], []
    for size, entry in zip(sizes, window, strict=True):
        low, high = entry.padding_low, entry.padding_high
        inside.append(slice(max(-low, 0), size - max(-high, 0)))
        kept = size - max(-low, 0) - max(-high, 0)
        outside.append(slice(max(low, 0), max(low, 0) + kept))
    result[tuple(inside)] = spread_out[tuple(outside)]
    return result
