"""Reduce, Sort and TopK, evaluated."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tracejit.backends.numpy.comparison import total_order_key
from tracejit.backends.numpy.interpreter import Value, interpret
from tracejit.backends.numpy.precision import narrowed, widened
from tracejit.backends.numpy.scalars import evaluate_elementwise
from tracejit.backends.numpy.ufuncs import reducing_ufunc
from tracejit.graph import Computation, Instruction
from tracejit.ops.reduction import REDUCE, SORT, TOP_K, extreme, sort_order
from tracejit.shapes import ElementType, element_type_of


@interpret.attach(REDUCE)
def reduce(instruction: Instruction, *arrays: np.ndarray) -> Value:
    dimensions = instruction.attributes["dimensions"]
    computation = instruction.attributes["to_apply"]
    operands, inits = arrays[: len(arrays) // 2], arrays[len(arrays) // 2 :]
    ufunc = reducing_ufunc(computation) if len(operands) == 1 else None
    if ufunc is not None:
        wide, start = widened(operands[0]), widened(inits[0])
        reduced = ufunc.reduce(wide, dimensions, wide.dtype, initial=start[()])
        return narrowed(np.asarray(reduced), element_type_of(operands[0].dtype))
    over = sorted(dimensions)
    kept = [d for d in range(operands[0].ndim) if d not in over]
    sizes = [operands[0].shape[d] for d in kept]
    count = math.prod(operands[0].shape[d] for d in over)
    rows = [a.transpose([*over, *kept]).reshape([count, *sizes]) for a in operands]
    starts = [np.broadcast_to(init, sizes) for init in inits]
    fold = _pairwise if extreme(computation) is not None else _from_the_left
    results = fold(computation, starts, rows)
    return results if len(operands) > 1 else results[0]


def _from_the_left(
    computation: Computation, starts: Sequence[np.ndarray], rows: Sequence[np.ndarray]
) -> tuple[np.ndarray, ...]:
    """The definition, as XLA has it for what is no monoid: ``starts``, then row after row."""
    results = tuple(starts)
    for row in zip(*rows, strict=True):
        combined = evaluate_elementwise(computation, [*results, *row])
        results = combined if len(rows) > 1 else (combined,)
    return results


def _pairwise(
    computation: Computation, starts: Sequence[np.ndarray], rows: Sequence[np.ndarray]
) -> tuple[np.ndarray, ...]:
    """The same for an associative computation, in fewer steps: neighbours first."""
    parts = [np.concatenate([s[None], r]) for s, r in zip(starts, rows, strict=True)]
    while len(parts[0]) > 1:
        even = len(parts[0]) // 2 * 2
        pairs = [p[i:even:2] for i in range(2) for p in parts]
        combined = evaluate_elementwise(computation, pairs)
        parts = [
            np.concatenate([new, old[even:]]) for new, old in zip(combined, parts, strict=True)
        ]
    return tuple(part[0] for part in parts)


@interpret.attach(SORT)
def sort(instruction: Instruction, *operands: np.ndarray) -> Value:
    (dimension,) = instruction.attributes["dimensions"]
    comparator = instruction.attributes["to_apply"]
    types = [element_type_of(a.dtype) for a in operands]
    if not types[0].is_complex and comparator is sort_order(*types):
        order = np.argsort(widened(operands[0]), dimension, kind="stable")
    else:
        rows = [np.moveaxis(a, dimension, 0) for a in operands]
        order = np.moveaxis(_merge_sort(comparator, rows), 0, dimension)
    results = tuple(np.take_along_axis(a, order, dimension) for a in operands)
    return results if len(operands) > 1 else results[0]


def _merge_sort(comparator: Computation, operands: Sequence[np.ndarray]) -> np.ndarray:
    """The stable order of the first dimension under any comparator.

    Runs of 1, 2, 4 … are merged, all at once: an element moves to its place within its own run
    plus the number of elements in the neighbouring run that come before it, found by bisection.
    """
    size = len(operands[0])
    shape = operands[0].shape
    place = np.arange(size).reshape([-1] + [1] * (len(shape) - 1))
    order = np.broadcast_to(place, shape)
    width = 1
    while width < size:
        run, offset = np.divmod(place, width)
        is_right = run % 2 == 1
        neighbour = np.minimum((run ^ 1) * width, size)
        low = np.broadcast_to(neighbour, shape)
        high = np.broadcast_to(np.minimum(neighbour + width, size), shape)
        own = [np.take_along_axis(a, order, 0) for a in operands]
        while (low < high).any():
            middle = (low + high) // 2
            others = [np.take_along_axis(a, np.minimum(middle, size - 1), 0) for a in own]
            # A left element passes those strictly before it, a right one those not after it.
            pairs: list[np.ndarray] = []
            for mine, other in zip(own, others, strict=True):
                pairs += [np.where(is_right, mine, other), np.where(is_right, other, mine)]
            passes = evaluate_elementwise(comparator, pairs) ^ is_right
            searching = low < high
            low = np.where(searching & passes, middle + 1, low)
            high = np.where(searching & ~passes, middle, high)
        target = run // 2 * 2 * width + offset + low - neighbour
        merged = np.empty(shape, np.int64)
        np.put_along_axis(merged, target, order, 0)
        order = merged
        width *= 2
    return order


@interpret.attach(TOP_K)
def top_k(instruction: Instruction, operand: np.ndarray) -> Value:
    k, largest = instruction.attributes["k"], instruction.attributes["largest"]
    floating = element_type_of(operand.dtype).is_floating
    key = total_order_key(operand) if floating else widened(operand)
    if largest:
        # Backwards twice, so that equal elements stay in order.
        order = operand.shape[-1] - 1 - np.argsort(np.flip(key, -1), -1, kind="stable")
        order = np.flip(order, -1)
    else:
        order = np.argsort(key, -1, kind="stable")
    chosen = order[..., :k]
    return np.take_along_axis(operand, chosen, -1), chosen.astype(ElementType.S32.dtype)
