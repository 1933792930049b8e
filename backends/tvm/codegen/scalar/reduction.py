"""Reduce: one accumulator for each result, element after element; Sort and TopK."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tracejit.backends.tvm.analysis.sort_keys import precedes
from tracejit.backends.tvm.codegen.access_analysis import Accesses
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.root_rules import Results, anchors_of
from tracejit.backends.tvm.codegen.scalar.accumulators import ScalarAccumulators, accumulated
from tracejit.backends.tvm.codegen.scalar.elements import ElementLoops
from tracejit.backends.tvm.codegen.scalar.merge_sort import merge_sort
from tracejit.backends.tvm.codegen.scalar.table import scalar
from tracejit.backends.tvm.ir.affine import Index
from tracejit.backends.tvm.ir.internal_ops import FIRST_SORTED
from tracejit.backends.tvm.ir.tir import Buffer, Stmt
from tracejit.graph import Computation, Instruction
from tracejit.ops.reduction import REDUCE, SORT, TOP_K

Locate = Callable[[Sequence[Index], Sequence[Index]], list[Index]]
"""From indices over the kept and the combined dimensions to those of the operands."""


@dataclass(frozen=True)
class Combination:
    """Arrays whose elements are combined, together."""

    operands: Sequence[Instruction]
    initial: Sequence[Instruction]
    combine: Computation


def combined(
    frame: Frame,
    parts: Sequence[Combination],
    kept: Sequence[int],
    over: Sequence[int],
    locate: Locate,
    anchors: Sequence[Instruction],
    results: Results,
) -> Stmt:
    """The kernel of reductions that combine the same elements over the dimensions ``over``."""
    frame.schedule = "scalar reduction"

    def ask(scope: Accesses, at: Sequence[Index], along: Sequence[Index]) -> None:
        for part in parts:
            for operand in part.operands:
                scope.value(operand, locate(at, along))
            for value in part.initial:
                scope.value(value, ())

    elements = ElementLoops(frame, kept, over, anchors, results, ask)
    totals = [ScalarAccumulators([o.array_shape.element_type for o in p.operands]) for p in parts]

    def element() -> list[Stmt]:
        made = [statement for total in totals for statement in total.allocations]
        for part, total in zip(parts, totals, strict=True):
            emitter = elements.emitter()
            made += total.write(emitter, [emitter.value(value, ()) for value in part.initial])
        made.append(elements.steps(step))
        last = elements.emitter()
        values = [value for total in totals for value in total.read(last)]
        types = [t for part in parts for t in (o.array_shape.element_type for o in part.operands)]
        pairs = zip(values, types, strict=True)
        return [*made, *elements.finish([last.settled(value, t) for value, t in pairs])]

    def step() -> list[Stmt]:
        written: list[Stmt] = []
        for part, total in zip(parts, totals, strict=True):
            emitter = elements.emitter()
            where = locate(elements.at, elements.over)
            arrived = [emitter.value(operand, where) for operand in part.operands]
            values = [*total.read(emitter), *arrived]
            written += total.write(emitter, accumulated(part.combine, emitter, values))
        return written

    return elements.kernel(element)


@scalar.attach(REDUCE)
def reduce(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """A Reduce and its siblings, in one pass."""
    anchors = [instruction, *frame.siblings]
    dimensions = instruction.attributes["dimensions"]
    sizes = instruction.operands[0].array_shape.dimensions
    kept = [d for d in range(len(sizes)) if d not in dimensions]

    def locate(at: Sequence[Index], over: Sequence[Index]) -> list[Index]:
        where = dict(zip((*kept, *dimensions), (*at, *over), strict=True))
        return [where[d] for d in range(len(sizes))]

    parts = []
    for anchor in anchors:
        count = len(anchor.operands) // 2
        combine = anchor.attributes["to_apply"]
        parts.append(Combination(anchor.operands[:count], anchor.operands[count:], combine))
    return combined(
        frame,
        parts,
        [sizes[d] for d in kept],
        [sizes[d] for d in dimensions],
        locate,
        [each for anchor in anchors for each in anchors_of(anchor, results)],
        results,
    )


@scalar.attach(SORT)
def sort(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """A stable sort; see `codegen.scalar.merge_sort`."""
    (dimension,) = instruction.attributes["dimensions"]
    length = instruction.operands[0].array_shape.dimensions[dimension]
    comparator = instruction.attributes["to_apply"]
    pairs = [(o, target) for o, (_, target) in zip(instruction.operands, results, strict=True)]
    return merge_sort(frame, instruction.operands, comparator, dimension, length, pairs)


@scalar.attach(FIRST_SORTED)
def first_sorted(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """The first elements of a stable sort."""
    (dimension,) = instruction.attributes["dimensions"]
    kept = instruction.attributes["kept"]
    comparator = instruction.attributes["to_apply"]
    pairs = [(o, target) for o, (_, target) in zip(instruction.operands, results, strict=True)]
    return merge_sort(frame, instruction.operands, comparator, dimension, kept, pairs)


@scalar.attach(TOP_K)
def top_k(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """The beginning of a stable sort in total order, with the positions."""
    (operand,) = instruction.operands
    shape = operand.array_shape
    comparator = precedes(shape.element_type, instruction.attributes["largest"])
    (_, values), (_, places) = results
    pairs: list[tuple[Instruction | None, Buffer]] = [(operand, values), (None, places)]
    kept = instruction.attributes["k"]
    return merge_sort(frame, [operand], comparator, shape.rank - 1, kept, pairs)
