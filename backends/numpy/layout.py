"""Ops that move elements, evaluated."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tracejit.backends.numpy.interpreter import Value, interpret
from tracejit.graph import Instruction
from tracejit.ops.layout import (
    BROADCAST_IN_DIM,
    CONCATENATE,
    DYNAMIC_SLICE,
    DYNAMIC_UPDATE_SLICE,
    PAD,
    RESHAPE,
    REV,
    SLICE,
    TRANSPOSE,
)


@interpret.attach(BROADCAST_IN_DIM)
def broadcast_in_dim(instruction: Instruction, operand: np.ndarray) -> Value:
    sizes = instruction.array_shape.dimensions
    placed = [1] * len(sizes)
    for dimension, size in zip(instruction.attributes["dimensions"], operand.shape, strict=True):
        placed[dimension] = size
    return np.broadcast_to(operand.reshape(placed), sizes)


@interpret.attach(RESHAPE)
def reshape(instruction: Instruction, operand: np.ndarray) -> Value:
    return operand.reshape(instruction.array_shape.dimensions)


@interpret.attach(TRANSPOSE)
def transpose(instruction: Instruction, operand: np.ndarray) -> Value:
    return operand.transpose(instruction.attributes["dimensions"])


@interpret.attach(REV)
def rev(instruction: Instruction, operand: np.ndarray) -> Value:
    return np.flip(operand, instruction.attributes["dimensions"])


@interpret.attach(PAD)
def pad(instruction: Instruction, operand: np.ndarray, padding_value: np.ndarray) -> Value:
    sizes = instruction.array_shape.dimensions
    result = np.full(sizes, padding_value, dtype=operand.dtype)
    kept, places = [], []
    for size, padding, limit in zip(
        operand.shape, instruction.attributes["padding"], sizes, strict=True
    ):
        # Element i lands at low + i * step; those outside [0, limit) are cropped.
        step = padding.interior + 1
        first = max(0, -(padding.low // step))
        end = max(first, min(size, -((padding.low - limit) // step)))
        start = padding.low + first * step
        kept.append(slice(first, end))
        places.append(slice(start, start + (end - first) * step, step))
    result[tuple(places)] = operand[tuple(kept)]
    return result


@interpret.attach(CONCATENATE)
def concatenate(instruction: Instruction, *operands: np.ndarray) -> Value:
    return np.concatenate(operands, axis=instruction.attributes["dimensions"][0])


@interpret.attach(SLICE)
def slice_(instruction: Instruction, operand: np.ndarray) -> Value:
    parts = instruction.attributes["slice"]
    return operand[tuple(slice(part.start, part.limit, part.stride) for part in parts)]


@interpret.attach(DYNAMIC_SLICE)
def dynamic_slice(instruction: Instruction, operand: np.ndarray, *starts: np.ndarray) -> Value:
    return operand[_window(operand, starts, instruction.attributes["dynamic_slice_sizes"])]


@interpret.attach(DYNAMIC_UPDATE_SLICE)
def dynamic_update_slice(
    instruction: Instruction, operand: np.ndarray, update: np.ndarray, *starts: np.ndarray
) -> Value:
    result = operand.copy()
    result[_window(operand, starts, update.shape)] = update
    return result


def _window(
    operand: np.ndarray, starts: Sequence[np.ndarray], sizes: Sequence[int]
) -> tuple[slice, ...]:
    """The part of ``operand`` at ``starts``, each clamped so that all of it lies inside."""
    window = []
    for limit, start, size in zip(operand.shape, starts, sizes, strict=True):
        clamped = min(max(int(start), 0), limit - size)
        window.append(slice(clamped, clamped + size))
    return tuple(window)
