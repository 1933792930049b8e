"""Reduce, over whole dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.backends.tvm.affine import Index
from tracejit.backends.tvm.roots import Results, rooted
from tracejit.backends.tvm.schedule.frame import Frame
from tracejit.backends.tvm.schedule.reduction import Reducer, reduction
from tracejit.backends.tvm.tir import Stmt
from tracejit.graph import Instruction
from tracejit.ops.constants import get_tuple_element
from tracejit.ops.reduction import REDUCE
from tracejit.shapes import TupleShape


def hearts_of(instruction: Instruction, results: Results) -> tuple[Instruction, ...]:
    """What stands for each result of a reduction: itself, or one GetTupleElement per element."""
    if isinstance(instruction.shape, TupleShape):
        known = {r.attributes["index"]: r for r, _ in results}
        count = len(instruction.shape.elements)
        return tuple(known.get(i) or get_tuple_element(instruction, i) for i in range(count))
    return (instruction,)


@rooted.attach(REDUCE)
def reduce(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    count = len(instruction.operands) // 2
    operands = instruction.operands[:count]
    dimensions = instruction.attributes["dimensions"]
    sizes = operands[0].array_shape.dimensions
    kept = [d for d in range(len(sizes)) if d not in dimensions]

    def locate(at: Sequence[Index], over: Sequence[Index]) -> list[Index]:
        where = dict(zip((*kept, *dimensions), (*at, *over), strict=True))
        return [where[d] for d in range(len(sizes))]

    reducer = Reducer(
        operands=operands,
        initial=instruction.operands[count:],
        combine=instruction.attributes["to_apply"],
        kept=tuple(sizes[d] for d in kept),
        reduced=tuple(sizes[d] for d in dimensions),
        locate=locate,
        hearts=hearts_of(instruction, results),
        results=tuple(results),
    )
    return reduction(frame, reducer, frame.cost)
