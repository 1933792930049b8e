"""The key of a kernel in the tuning cache: HLO text that is equal in every process."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.graph import Computation, Instruction, Module
from tracejit.hlo import to_text
from tracejit.ops.constants import parameter, tuple_
from tracejit.traversal import rebuild


def text_of(inside: Sequence[Instruction], results: Sequence[Instruction]) -> str:
    """HLO text of the instructions ``inside`` a kernel, in order, with its inputs as parameters."""
    made: dict[Instruction, Instruction] = {}
    parameters: list[Instruction] = []

    def stand_in(operand: Instruction) -> Instruction:
        if operand not in made:
            made[operand] = parameter(len(parameters), operand.shape)
            parameters.append(made[operand])
        return made[operand]

    for instruction in inside:
        made[instruction] = rebuild(instruction, [stand_in(o) for o in instruction.operands])
    root = tuple_([stand_in(result) for result in results])
    return to_text(Module("kernel", Computation("kernel", tuple(parameters), root)))
