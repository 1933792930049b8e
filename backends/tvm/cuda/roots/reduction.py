"""Reduce, by teams of threads; Sort and TopK, by radix sorts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracejit.backends.tvm.analysis.sort_keys import precedes
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.root_rules import Results
from tracejit.backends.tvm.cuda.schedule import radix
from tracejit.backends.tvm.cuda.schedule.reduce import Reductions, reduce_by_teams
from tracejit.backends.tvm.cuda.table import rooted
from tracejit.backends.tvm.ir.affine import Index
from tracejit.backends.tvm.ir.internal_ops import FIRST_SORTED
from tracejit.backends.tvm.ir.tir import Buffer, Stmt
from tracejit.graph import Instruction
from tracejit.ops.reduction import REDUCE, SORT, TOP_K

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


@rooted.attach(SORT)
def sort(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """A stable sort; see `cuda.schedule.radix`."""
    (dimension,) = instruction.attributes["dimensions"]
    return _sorted(
        frame, instruction, results, instruction.operands[0].array_shape.dimensions[dimension]
    )


@rooted.attach(FIRST_SORTED)
def first_sorted(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """The first elements of a stable sort."""
    return _sorted(frame, instruction, results, instruction.attributes["kept"])


def _sorted(frame: Frame, instruction: Instruction, results: Results, kept: int) -> Stmt:
    (dimension,) = instruction.attributes["dimensions"]
    comparator = instruction.attributes["to_apply"]
    pairs = [(o, target) for o, (_, target) in zip(instruction.operands, results, strict=True)]
    return radix.sort(frame, instruction.operands, comparator, dimension, kept, pairs)


@rooted.attach(TOP_K)
def top_k(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """The beginning of a stable sort in total order, with the positions."""
    (operand,) = instruction.operands
    shape = operand.array_shape
    comparator = precedes(shape.element_type, instruction.attributes["largest"])
    (_, values), (_, places) = results
    pairs: list[tuple[Instruction | None, Buffer]] = [(operand, values), (None, places)]
    kept = instruction.attributes["k"]
    return radix.sort(frame, [operand], comparator, shape.rank - 1, kept, pairs)
