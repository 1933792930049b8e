"""Lowers Reduce, Sort and TopK: calls their schedules in `cpu.schedule`."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.backends.tvm.analysis.argminmax import counted, in_order
from tracejit.backends.tvm.analysis.sort_keys import counts_places, precedes
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.root_rules import Results, anchors_of
from tracejit.backends.tvm.cpu.root_rules import rooted
from tracejit.backends.tvm.cpu.schedule.reduce.accumulators import Reducer
from tracejit.backends.tvm.cpu.schedule.reduce.combining import ReduceSpec
from tracejit.backends.tvm.cpu.schedule.reduce.reduction import reduction
from tracejit.backends.tvm.cpu.schedule.sort.choose import Sorting, sorting
from tracejit.backends.tvm.ir.affine import Index
from tracejit.backends.tvm.ir.internal_ops import FIRST_SORTED
from tracejit.backends.tvm.ir.tir import Stmt
from tracejit.graph import Instruction
from tracejit.ops.constants import constant, iota
from tracejit.ops.reduction import REDUCE, SORT, TOP_K, arg_computation, extreme
from tracejit.shapes import ElementType


def reduce_spec(instruction: Instruction) -> ReduceSpec:
    """The instruction's combiner, simplified: indices of argmin and argmax are counted
    in 32 bits.
    """
    count = len(instruction.operands) // 2
    operands, initial = instruction.operands[:count], instruction.operands[count:]
    combine = instruction.attributes["to_apply"]
    name = extreme(combine)
    if name is None or not counted(instruction):
        return ReduceSpec(operands, initial, combine)
    shape = operands[0].array_shape
    element_type = operands[1].array_shape.element_type
    (dimension,) = instruction.attributes["dimensions"]
    if element_type.bits > 32 and shape.dimensions[dimension] < 1 << 31:
        element_type = ElementType.S32
        operands = (operands[0], iota(shape.with_element_type(element_type), dimension))
        initial = (initial[0], constant(0, element_type))
        combine = arg_computation(name, shape.element_type, element_type)
    step = in_order(name, shape.element_type, element_type)
    return ReduceSpec(operands, initial, combine, step)


@rooted.attach(REDUCE)
def reduce(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """A Reduce and its sibling reductions of the same operands, in one pass."""
    anchors = [instruction, *frame.siblings]
    dimensions = instruction.attributes["dimensions"]
    sizes = instruction.operands[0].array_shape.dimensions
    kept = [d for d in range(len(sizes)) if d not in dimensions]

    def locate(at: Sequence[Index], over: Sequence[Index]) -> list[Index]:
        where = dict(zip((*kept, *dimensions), (*at, *over), strict=True))
        return [where[d] for d in range(len(sizes))]

    reducer = Reducer(
        parts=tuple(map(reduce_spec, anchors)),
        kept=tuple(sizes[d] for d in kept),
        reduced=tuple(sizes[d] for d in dimensions),
        locate=locate,
        anchors=tuple(each for anchor in anchors for each in anchors_of(anchor, results)),
        results=tuple(results),
    )
    return reduction(frame, reducer, frame.cost)


@rooted.attach(SORT)
def sort(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    (dimension,) = instruction.attributes["dimensions"]
    length = instruction.operands[0].array_shape.dimensions[dimension]
    return _sorted(frame, instruction, results, length)


@rooted.attach(FIRST_SORTED)
def first_sorted(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    return _sorted(frame, instruction, results, instruction.attributes["kept"])


def _sorted(frame: Frame, instruction: Instruction, results: Results, kept: int) -> Stmt:
    """Sort each row and store its first ``kept`` elements."""
    (dimension,) = instruction.attributes["dimensions"]
    operands = [o for o in instruction.operands if not counts_places(instruction, o)]
    targets = [
        (target, operand if operand in operands else None)
        for (leaf, target), operand in zip(results, instruction.operands, strict=True)
        if _is_needed(frame, instruction, results, leaf)
    ]
    work = Sorting(operands, dimension, instruction.attributes["to_apply"], targets, kept)
    return sorting(frame, work)


def _is_needed(frame: Frame, instruction: Instruction, results: Results, leaf: Instruction) -> bool:
    """Whether a result is read; only instructions with a user are in the graph."""
    taken = sum(each in frame.uses for each, _ in results)
    return leaf in frame.uses or taken != frame.uses.get(instruction)


@rooted.attach(TOP_K)
def top_k(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """The first elements of a stable sort in total order, with their indices."""
    (operand,) = instruction.operands
    shape = operand.array_shape
    comparator = precedes(shape.element_type, instruction.attributes["largest"])
    (_, values), (_, places) = results
    targets = [(values, operand), (places, None)]
    work = Sorting([operand], shape.rank - 1, comparator, targets, instruction.attributes["k"])
    return sorting(frame, work)
