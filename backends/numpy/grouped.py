"""RaggedDot, group by group, and ScaledDot, evaluated."""

from __future__ import annotations

import string

import numpy as np

from tracejit.backends.numpy.contraction import accumulator
from tracejit.backends.numpy.interpreter import Value, interpret
from tracejit.graph import Instruction
from tracejit.ops.contraction import DotDimensionNumbers
from tracejit.ops.grouped import RAGGED_DOT, SCALED_DOT, RaggedMode, ragged_of


def _letters(
    numbers: DotDimensionNumbers, lhs_rank: int, rhs_rank: int, group: tuple[int, ...] = ()
) -> tuple[str, str, str]:
    """Einsum's letters for lhs, rhs and the result; the group's own dimension has none."""
    left, rest = string.ascii_letters[:lhs_rank], iter(string.ascii_letters[lhs_rank:])
    pairs = zip(
        numbers.rhs_batch_dimensions + numbers.rhs_contracting_dimensions,
        numbers.lhs_batch_dimensions + numbers.lhs_contracting_dimensions,
        strict=True,
    )
    twin = {right: left[own] for right, own in pairs}
    right = [twin.get(d) or next(rest) for d in range(rhs_rank) if d not in group]
    batch = [left[d] for d in numbers.lhs_batch_dimensions]
    summed = [left[d] for d in numbers.lhs_contracting_dimensions]
    out = [*batch, *(c for c in left if c not in batch + summed)]
    out += [c for c in right if c not in left]
    return left, "".join(right), "".join(out)


@interpret.attach(RAGGED_DOT)
def ragged_dot(
    instruction: Instruction, lhs: np.ndarray, rhs: np.ndarray, group_sizes: np.ndarray
) -> Value:
    meaning, shape = ragged_of(instruction), instruction.array_shape
    group = instruction.attributes["rhs_group_dims"]
    wide = accumulator(instruction, lhs)
    x, y = lhs.astype(wide), np.moveaxis(rhs.astype(wide), group, range(len(group)))
    left, right, out = _letters(meaning.numbers, lhs.ndim, rhs.ndim, group)
    if meaning.mode is RaggedMode.BATCH:
        return np.einsum(f"{left},{right}->{out}", x, y, optimize=True).astype(shape.dtype)
    result = np.zeros(shape.dimensions, wide)
    sizes = [lhs.shape[d] for d in meaning.prefix]
    counts = np.broadcast_to(group_sizes.astype(np.int64), [*sizes, group_sizes.shape[-1]])
    length = lhs.shape[meaning.ragged]
    ends = np.cumsum(counts, -1)
    starts, ends = np.clip(ends - counts, 0, length), np.clip(ends, 0, length)
    for place in np.ndindex(*starts.shape):
        if starts[place] >= ends[place]:
            continue
        part = {left[meaning.ragged]: slice(starts[place], ends[place])}
        part |= {left[d]: slice(i, i + 1) for d, i in zip(meaning.prefix, place, strict=False)}

        def of(letters: str, part: dict[str, slice] = part) -> tuple[slice, ...]:
            return tuple(part.get(c, slice(None)) for c in letters)

        number = place[-1]
        matrix = y[number] if group else y
        target = result if group else result[number]
        product = np.einsum(f"{left},{right}->{out}", x[of(left)], matrix[of(right)], optimize=True)
        target[of(out)] += product
    return result.astype(shape.dtype)


@interpret.attach(SCALED_DOT)
def scaled_dot(instruction: Instruction, *operands: np.ndarray) -> Value:
    a, shape = instruction.attributes, instruction.array_shape
    double = any(o.dtype == np.float64 for o in operands) or shape.dtype == np.float64
    wide = np.dtype(np.float64 if double else np.float32)
    lhs, rhs, lhs_scale, rhs_scale = (operand.astype(wide) for operand in operands)
    numbers = DotDimensionNumbers(
        a["lhs_contracting_dims"],
        a["rhs_contracting_dims"],
        a["lhs_batch_dims"],
        a["rhs_batch_dims"],
    )
    left, right, out = _letters(numbers, lhs.ndim, rhs.ndim)
    x, y = lhs * _blocks(lhs_scale, lhs.shape), rhs * _blocks(rhs_scale, rhs.shape)
    return np.einsum(f"{left},{right}->{out}", x, y, optimize=True).astype(shape.dtype)


def _blocks(scale: np.ndarray, sizes: tuple[int, ...]) -> np.ndarray:
    """Every element of the scale repeated over its block."""
    if not scale.ndim:
        return scale
    for axis, size in enumerate(sizes):
        scale = np.repeat(scale, size // max(scale.shape[axis], 1), axis)
    return scale
