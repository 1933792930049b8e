"""Samples of the ops that move elements."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.samples.base import Domain, Operand, Sample
from tracejit import ops
from tracejit.graph import Instruction
from tracejit.ops.base import ALL, INTEGRAL
from tracejit.shapes import ElementType

F64, S32 = ElementType.F64, ElementType.S32


def between(low: int, high: int) -> Domain:
    """Integers from ``low`` up to, not with, ``high``; of an unsigned type none below 0."""

    def draw(rng: np.random.Generator, dimensions: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        lowest = low if np.array(-1).astype(dtype) < 0 else max(low, 0)
        return rng.integers(lowest, high, dimensions).astype(dtype)

    return draw


def start(element_type: ElementType | None = S32, low: int = -3, high: int = 8) -> Operand:
    return Operand((), element_type, between(low, high))


def moved(op: str, function: Callable[..., Instruction], *dimensions: tuple[int, ...]) -> Sample:
    """A sample of an op that only moves elements, for every element type."""
    label = " ".join("x".join(map(str, d)) or "scalar" for d in dimensions)
    return Sample(op, function, tuple(Operand(d) for d in dimensions), ALL, label, exact=True)


def broadcast_to(*sizes: int, dimensions: tuple[int, ...]) -> Callable[[Instruction], Instruction]:
    return lambda x: ops.broadcast_in_dim(x, sizes, dimensions)


def reshape_to(*sizes: int) -> Callable[[Instruction], Instruction]:
    return lambda x: ops.reshape(x, sizes)


def padded(*config: tuple[int, int, int]) -> Callable[[Instruction, Instruction], Instruction]:
    return lambda x, value: ops.pad(x, value, config)


def sliced(*parts: tuple[int, int, int]) -> Callable[[Instruction], Instruction]:
    return lambda x: ops.slice_(
        x, [p[0] for p in parts], [p[1] for p in parts], [p[2] for p in parts]
    )


def dynamic(*sizes: int) -> Callable[..., Instruction]:
    return lambda x, *starts: ops.dynamic_slice(x, starts, sizes)


def update(x: Instruction, part: Instruction, *starts: Instruction) -> Instruction:
    return ops.dynamic_update_slice(x, part, starts)


SAMPLES = [
    moved("BroadcastInDim", broadcast_to(2, 3, 4, dimensions=(1, 2)), (3, 4)),
    moved("BroadcastInDim", broadcast_to(3, 2, 4, dimensions=(0, 2)), (3, 4)),
    moved("BroadcastInDim", broadcast_to(3, 5, dimensions=(0, 1)), (3, 1)),
    moved("BroadcastInDim", broadcast_to(2, 2, 3, 5, dimensions=(1, 3)), (1, 5)),
    moved("BroadcastInDim", broadcast_to(2, 3, dimensions=()), ()),
    moved("BroadcastInDim", broadcast_to(4, 0, 3, dimensions=(2,)), (3,)),
    moved("BroadcastInDim", broadcast_to(0, 3, dimensions=(0, 1)), (1, 3)),
    moved("BroadcastInDim", broadcast_to(2, 0, dimensions=(1,)), (0,)),
    moved("BroadcastInDim", lambda x: ops.broadcast(x, (2, 1)), (3, 4)),
    moved("Reshape", reshape_to(24), (4, 2, 3)),
    moved("Reshape", reshape_to(3, 1, 4, 2), (4, 2, 3)),
    moved("Reshape", reshape_to(), (1, 1)),
    moved("Reshape", reshape_to(1, 1), ()),
    moved("Reshape", reshape_to(3, 0), (0, 2)),
    moved("Reshape", lambda x: ops.collapse(x, (1, 2)), (4, 2, 3)),
    moved("Transpose", lambda x: ops.transpose(x, (1, 0)), (3, 4)),
    moved("Transpose", lambda x: ops.transpose(x, (2, 0, 1)), (2, 3, 4)),
    moved("Transpose", lambda x: ops.transpose(x, (0, 3, 1, 2)), (2, 1, 3, 2)),
    moved("Transpose", lambda x: ops.transpose(x, (0, 1)), (2, 2)),
    moved("Transpose", lambda x: ops.transpose(x, ()), ()),
    moved("Transpose", lambda x: ops.transpose(x, (1, 2, 0)), (0, 3, 2)),
    moved("Rev", lambda x: ops.rev(x, (0,)), (5,)),
    moved("Rev", lambda x: ops.rev(x, (2, 0)), (2, 3, 4)),
    moved("Rev", lambda x: ops.rev(x, ()), (2, 3)),
    moved("Rev", lambda x: ops.rev(x, (1,)), (2, 1)),
    moved("Rev", lambda x: ops.rev(x, (0,)), (0, 2)),
    moved("Pad", padded((1, 2, 0), (0, 0, 0)), (2, 3), ()),
    moved("Pad", padded((0, 0, 1), (2, 1, 2)), (3, 4), ()),
    moved("Pad", padded((-1, -1, 0), (0, -2, 0)), (4, 5), ()),
    moved("Pad", padded((-1, 2, 1), (3, -4, 2)), (4, 3), ()),
    moved("Pad", padded((-4, 1, 1)), (4,), ()),
    moved("Pad", padded((-3, -2, 0)), (5,), ()),
    moved("Pad", padded((-9, 4, 0)), (5,), ()),
    moved("Pad", padded((2, 1, 3), (0, 1, 0)), (0, 2), ()),
    moved("Pad", lambda x, v: ops.pad_in_dim(x, v, -1, 1, -2), (2, 3), ()),
    moved("Concatenate", lambda *xs: ops.concatenate(xs, 0), (2, 3), (1, 3), (3, 3)),
    moved("Concatenate", lambda *xs: ops.concatenate(xs, -1), (2, 1, 2), (2, 1, 3)),
    moved("Concatenate", lambda *xs: ops.concatenate(xs, 1), (2, 0), (2, 3), (2, 0)),
    moved("Concatenate", lambda *xs: ops.concatenate(xs, 0), (4,)),
    moved("Concatenate", lambda x: ops.concatenate([x, x], 0), (2, 2)),
    moved("Slice", sliced((1, 3, 1), (0, 4, 1)), (4, 4)),
    moved("Slice", sliced((0, 5, 2), (1, 7, 3)), (5, 7)),
    moved("Slice", sliced((2, 2, 1), (0, 3, 1)), (4, 3)),
    moved("Slice", sliced((4, 4, 1)), (4,)),
    moved("Slice", sliced(), ()),
    moved("Slice", sliced((0, 0, 1), (1, 2, 5)), (0, 3)),
    moved("Slice", lambda x: ops.slice_in_dim(x, 1, 5, 2, -1), (2, 6)),
    Sample(
        "DynamicSlice", dynamic(2, 3), (Operand((4, 5)), start(), start()), ALL, "4x5", exact=True
    ),
    Sample(
        "DynamicSlice",
        dynamic(1, 5, 2),
        (Operand((3, 5, 3)), *[start(ElementType.S64)] * 3),
        ALL,
        "3x5x3, s64 indices",
        exact=True,
    ),
    Sample("DynamicSlice", dynamic(0), (Operand((3,)), start()), ALL, "nothing", exact=True),
    Sample("DynamicSlice", dynamic(), (Operand(()),), ALL, "scalar", exact=True),
    Sample(
        "DynamicSlice",
        lambda start, x: ops.dynamic_slice(x, [start], [3]),
        (start(None), Operand((6,), F64)),
        INTEGRAL,
        "index types",
        exact=True,
    ),
    Sample(
        "DynamicSlice",
        lambda x, starts: ops.dynamic_slice(x, starts, [2, 1]),
        (Operand((3, 2)), Operand((2,), S32, between(-1, 4))),
        ALL,
        "vector of indices",
        exact=True,
    ),
    Sample(
        "DynamicUpdateSlice",
        update,
        (Operand((4, 5)), Operand((2, 3)), start(), start()),
        ALL,
        "4x5",
        exact=True,
    ),
    Sample(
        "DynamicUpdateSlice",
        update,
        (Operand((3, 2)), Operand((3, 2)), start(), start()),
        ALL,
        "the whole",
        exact=True,
    ),
    Sample(
        "DynamicUpdateSlice",
        update,
        (Operand((3, 2)), Operand((0, 2)), start(), start()),
        ALL,
        "nothing",
        exact=True,
    ),
    Sample("DynamicUpdateSlice", update, (Operand(()), Operand(())), ALL, "scalar", exact=True),
    Sample(
        "DynamicUpdateSlice",
        lambda start, x, part: update(x, part, start),
        (start(None), Operand((6,), F64), Operand((2,), F64)),
        INTEGRAL,
        "index types",
        exact=True,
    ),
]
