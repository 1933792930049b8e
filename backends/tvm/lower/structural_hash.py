"""Structural hashes of kernels: kernels of equal structure are emitted once.

form = form_of(fused, inside, results, plan, places)
form.key            equal for kernels whose code is the same
form.instructions   the instructions, in an order that equal structures share
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tracejit.attributes import attribute_key
from tracejit.backends.tvm.buffers.assignment import BufferAssignment
from tracejit.backends.tvm.fusion.kernel import Fusion, FusionPlan, read_by
from tracejit.backends.tvm.fusion.row_fusion import RowKernel
from tracejit.graph import Instruction
from tracejit.ops.constants import CONSTANT


@dataclass(frozen=True)
class Form:
    """The structure of a kernel; ``instructions`` are those that it computes and reads."""

    key: Any
    instructions: tuple[Instruction, ...]


def form_of(
    fused: Fusion,
    inside: Sequence[Instruction],
    results: Sequence[Instruction],
    plan: FusionPlan,
    places: BufferAssignment,
) -> Form | None:
    """The structure of a kernel that computes ``inside``, in order, and stores ``results``.

    None if it uses memory that it neither computes nor reads.
    """
    numbers: dict[Instruction, int] = {}
    told: list[Any] = []

    def number(instruction: Instruction) -> int:
        """The number of an instruction that is read; only its type and memory matter."""
        known = numbers.get(instruction)
        if known is None:
            known = numbers[instruction] = len(numbers)
            is_memory = instruction in plan.memory
            value = (
                None if is_memory or instruction.op is not CONSTANT else _attributes(instruction)
            )
            shape, uses = instruction.shape, plan.uses.get(instruction)
            told.append((instruction.op, shape, is_memory, uses, value))
        return known

    for instruction in inside:
        read = tuple([number(o) for o in (*instruction.operands, *read_by(instruction))])
        told.append((_attributes(instruction), read, number(instruction)))
    shared = [places.shared.get(result) for result in results]
    if not numbers.keys() >= {*results, *(one for one in shared if one is not None)}:
        return None

    def anchors(kernel: Fusion) -> Any:
        return tuple(map(number, kernel.results)), tuple(map(number, kernel.anchors))

    rows: Any = None
    if isinstance(fused, RowKernel):
        rows = fused.rows.dimensions, fused.rows.outer, *map(anchors, fused.phases)
    stored = tuple(
        (number(result), places.is_update(result), None if one is None else number(one))
        for result, one in zip(results, shared, strict=True)
    )
    key = anchors(fused), rows, stored, tuple(told)
    return Form(key, tuple(numbers))


def _attributes(instruction: Instruction) -> Any:
    return tuple([attribute_key(value) for value in instruction.attributes.values()])
