"""Reduce, by teams of threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.root_rules import Results
from tracejit.backends.tvm.cuda.schedule.reduce import Reductions, reduce_by_teams
from tracejit.backends.tvm.cuda.table import rooted
from tracejit.backends.tvm.ir.affine import Index
from tracejit.backends.tvm.ir.tir import Stmt
from tracejit.graph import Instruction
from tracejit.ops.reduction import REDUCE

Locate = Callable[[Sequence[Index], Sequence[Index]], list[Index]]


@rooted.attach(REDUCE)
def reduce(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """A Reduce and its siblings; see `cuda.schedule.reduce`."""
    dimensions = instruction.attributes["dimensions"]
    sizes = instruction.operands[0].array_shape.dimensions
    kept = [d for d in range(len(sizes)) if d not in dimensions]

    def locate(at: Sequence[Index], over: Sequence[Index]) -> list[Index]:
        where = dict(zip((*kept, *dimensions), (*at, *over), strict=True))
        return [where[d] for d in range(len(sizes))]

    parts = [instruction, *frame.siblings]
    over = [sizes[d] for d in dimensions]
    work = Reductions(frame, parts, [sizes[d] for d in kept], over, locate, results)
    return reduce_by_teams(work)
