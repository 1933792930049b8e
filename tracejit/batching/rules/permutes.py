"""CollectivePermute of the whole batch; slices and ragged rows one element after the other."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.batching.batch import Batched, batching
from tracejit.batching.rules.replicas import collective
from tracejit.batching.sequential import one_by_one
from tracejit.graph import Instruction
from tracejit.ops.permutes import COLLECTIVE_PERMUTE, RAGGED_ALL_TO_ALL

batching.attach(RAGGED_ALL_TO_ALL)(one_by_one)


@batching.attach(COLLECTIVE_PERMUTE)
def collective_permute(
    instruction: Instruction, operands: Sequence[Batched], size: int
) -> Instruction | Batched:
    rule = one_by_one if instruction.attributes["slice_sizes"] else collective
    return rule(instruction, operands, size)
