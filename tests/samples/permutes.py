"""Samples of CollectivePermute and RaggedAllToAll on one device, which sends to itself."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.samples.base import Operand, Sample
from tracejit import ops
from tracejit.graph import Instruction
from tracejit.ops.base import ALL
from tracejit.shapes import ElementType

S32, S64 = ElementType.S32, ElementType.S64


def numbers(values: object) -> Callable[..., np.ndarray]:
    return lambda rng, dimensions, dtype: np.array(values, dtype)


def slices(given: Instruction, output: Instruction, row: Instruction) -> Instruction:
    """Two slices, of which the second one's start is clamped."""
    zero = ops.constant(0, S32)
    return ops.collective_permute_slices(
        given,
        output,
        [[row, zero], [zero, zero]],
        [[zero, row], [row, row]],
        [[1, 2], [2, 1]],
        [[0, 0]],
    )


def ragged(
    given: Instruction,
    output: Instruction,
    input_offsets: Instruction,
    send_sizes: Instruction,
    output_offsets: Instruction,
) -> Instruction:
    return ops.ragged_all_to_all(
        given, input_offsets, send_sizes, output, output_offsets, send_sizes, [[0]]
    )


SAMPLES = [
    Sample(
        "CollectivePermute",
        lambda x: ops.collective_permute(x, [[0, 0]]),
        (Operand(),),
        ALL,
        "to itself",
    ),
    Sample(
        "CollectivePermute",
        lambda x: ops.collective_permute(x, [], channel_id=2, inplace=True),
        (Operand(),),
        ALL,
        "to none",
    ),
    Sample(
        "CollectivePermute",
        lambda x, y: ops.collective_permute([x, y], [[0, 0]]),
        (Operand(), Operand((2, 0))),
        ALL,
        "several",
    ),
    Sample(
        "CollectivePermute",
        slices,
        (Operand((3, 2)), Operand((2, 4)), Operand((), S32, numbers(1))),
        ALL,
        "slices",
        differentiable=False,
        why="it has no derivative in this form",
    ),
    Sample(
        "RaggedAllToAll",
        ragged,
        (
            Operand((4, 2)),
            Operand((5, 2)),
            Operand((1,), S32, numbers([1])),
            Operand((1,), S32, numbers([2])),
            Operand((1,), S32, numbers([3])),
        ),
        ALL,
        "one update",
    ),
    Sample(
        "RaggedAllToAll",
        ragged,
        (
            Operand((4,)),
            Operand((6,)),
            Operand((1, 4), S64, numbers([[0, 3, 1, 1]])),
            Operand((1, 4), S64, numbers([[2, 3, 0, 1]])),
            Operand((1, 4), S64, numbers([[4, 0, 1, 2]])),
        ),
        ALL,
        "several updates, some rows nowhere",
    ),
]
