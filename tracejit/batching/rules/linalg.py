"""Cholesky and TriangularSolve take batches of matrices as they are."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.batching.batch import Batched, batching
from tracejit.graph import Instruction
from tracejit.ops.base import make
from tracejit.ops.linalg import CHOLESKY, TRIANGULAR_SOLVE


@batching.attach(CHOLESKY, TRIANGULAR_SOLVE)
def matrices_rule(instruction: Instruction, operands: Sequence[Batched], size: int) -> Instruction:
    values = [operand.stretched(size) for operand in operands]
    return make(instruction.op, *values, **instruction.attributes)
