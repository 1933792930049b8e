"""Reduce, by a thread for each result; Sort and TopK."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracejit.backends.tvm.analysis.sort_keys import precedes
from tracejit.backends.tvm.codegen.access_analysis import Accesses
from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.codegen.kernel_frame import Frame, memory_buffer
from tracejit.backends.tvm.codegen.root_rules import Results
from tracejit.backends.tvm.cuda.grid import Elements
from tracejit.backends.tvm.cuda.merge_sort import merge_sort
from tracejit.backends.tvm.cuda.table import rooted
from tracejit.backends.tvm.ir.affine import Index
from tracejit.backends.tvm.ir.complex import Complex
from tracejit.backends.tvm.ir.internal_ops import FIRST_SORTED
from tracejit.backends.tvm.ir.tir import AllocBuffer, Buffer, Expr, Stmt, const
from tracejit.graph import Computation, Instruction
from tracejit.ops.constants import GET_TUPLE_ELEMENT, get_tuple_element
from tracejit.ops.reduction import REDUCE, SORT, TOP_K
from tracejit.shapes import ElementType, Shape, TupleShape

Locate = Callable[[Sequence[Index], Sequence[Index]], list[Index]]


def held(element_type: ElementType) -> ElementType:
    """Narrow floats accumulate in f32."""
    if element_type.is_floating and element_type.bits < 32:
        return ElementType.F32
    return element_type


class Accumulators:
    """Variables of a thread, one for each of some element types."""

    def __init__(self, element_types: Sequence[ElementType]) -> None:
        self.types = [held(t) for t in element_types]
        self.buffers: list[Buffer] = [memory_buffer(Shape(t, (1,)), "acc") for t in self.types]
        self.allocations: list[Stmt] = [AllocBuffer(b) for b in self.buffers]

    def read(self, emitter: Emitter) -> list[object]:
        """What they hold."""
        zero = const(0, "int32")
        pairs = zip(self.buffers, self.types, strict=True)
        return [emitter.load(b, zero, t) for b, t in pairs]

    def write(self, emitter: Emitter, values: Sequence[object]) -> list[Stmt]:
        """The statements that compute and put ``values``, all of them before any is put."""
        zero: Expr = const(0, "int32")
        bound = [emitter.hold(v, t) for v, t in zip(values, self.types, strict=True)]
        stores: list[Stmt] = []
        for b, t, value in zip(self.buffers, self.types, bound, strict=True):
            made = emitter.store(b, zero, value, t)
            stores += made if isinstance(made, list) else [made]
        return [*emitter.allocations, *emitter.statements, *stores]


def anchors_of(instruction: Instruction, results: Results) -> tuple[Instruction, ...]:
    """The instruction, or one GetTupleElement for each of the arrays that it makes."""
    if not isinstance(instruction.shape, TupleShape):
        return (instruction,)
    own = [r for r, _ in results if r.operands[:1] == (instruction,)]
    known = {r.attributes["index"]: r for r in own if r.op is GET_TUPLE_ELEMENT}
    count = len(instruction.shape.elements)
    return tuple(known.get(i) or get_tuple_element(instruction, i) for i in range(count))


def combined(computation: Computation, emitter: Emitter, values: Sequence[object]) -> list[object]:
    """What a combiner makes of partial results and elements, narrow floats unrounded."""
    made = emitter.accumulate(computation, values)
    return [made] if isinstance(made, Complex) or not isinstance(made, tuple) else [*made]


def reductions(
    frame: Frame,
    parts: Sequence[Instruction],
    kept: Sequence[int],
    reduced: Sequence[int],
    locate: Locate,
    results: Results,
) -> Stmt:
    """Reductions over the same elements, whose operands' indices ``locate`` gives."""
    anchors = [each for part in parts for each in anchors_of(part, results)]
    operands: list[Sequence[Instruction]] = []
    initial: list[Instruction] = []
    types: list[list[ElementType]] = []
    for part in parts:
        count = len(part.operands) // 2
        operands.append(part.operands[:count])
        initial += part.operands[count:]
        types.append([o.array_shape.element_type for o in part.operands[:count]])

    def ask(scope: Accesses, at: Sequence[Index], over: Sequence[Index]) -> None:
        for given in operands:
            for operand in given:
                scope.value(operand, locate(at, over))
        for value in initial:
            scope.value(value, ())

    elements = Elements(frame, kept, reduced, anchors, results, ask)
    accumulators = [Accumulators(each) for each in types]

    def thread() -> list[Stmt]:
        made = [a for each in accumulators for a in each.allocations]
        for part, given, each in zip(parts, operands, accumulators, strict=True):
            emitter = elements.emitter()
            begin = [emitter.value(value, ()) for value in part.operands[len(given) :]]
            made += each.write(emitter, begin)
        made.append(elements.steps(step))
        last = elements.emitter()
        totals = [value for each in accumulators for value in each.read(last)]
        pairs = zip(totals, [t for each in types for t in each], strict=True)
        return [*made, *elements.finish([last.settled(total, t) for total, t in pairs])]

    def step() -> list[Stmt]:
        written: list[Stmt] = []
        for part, given, each in zip(parts, operands, accumulators, strict=True):
            emitter = elements.emitter()
            arrived = [emitter.value(o, locate(elements.at, elements.over)) for o in given]
            values = [*each.read(emitter), *arrived]
            new = combined(part.attributes["to_apply"], emitter, values)
            written += each.write(emitter, new)
        return written

    return elements.kernel(thread)


@rooted.attach(REDUCE)
def reduce(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """A Reduce and its siblings; a thread for each result."""
    dimensions = instruction.attributes["dimensions"]
    sizes = instruction.operands[0].array_shape.dimensions
    kept = [d for d in range(len(sizes)) if d not in dimensions]

    def locate(at: Sequence[Index], over: Sequence[Index]) -> list[Index]:
        where = dict(zip((*kept, *dimensions), (*at, *over), strict=True))
        return [where[d] for d in range(len(sizes))]

    frame.schedule = "thread a result"
    return reductions(
        frame,
        [instruction, *frame.siblings],
        [sizes[d] for d in kept],
        [sizes[d] for d in dimensions],
        locate,
        results,
    )


@rooted.attach(SORT)
def sort(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """A stable sort; see `cuda.merge_sort`."""
    (dimension,) = instruction.attributes["dimensions"]
    length = instruction.operands[0].array_shape.dimensions[dimension]
    comparator = instruction.attributes["to_apply"]
    pairs = [(o, target) for o, (_, target) in zip(instruction.operands, results, strict=True)]
    return merge_sort(frame, instruction.operands, comparator, dimension, length, pairs)


@rooted.attach(FIRST_SORTED)
def first_sorted(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """The first elements of a stable sort."""
    (dimension,) = instruction.attributes["dimensions"]
    kept = instruction.attributes["kept"]
    comparator = instruction.attributes["to_apply"]
    pairs = [(o, target) for o, (_, target) in zip(instruction.operands, results, strict=True)]
    return merge_sort(frame, instruction.operands, comparator, dimension, kept, pairs)


@rooted.attach(TOP_K)
def top_k(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """The beginning of a stable sort in total order, with the positions."""
    (operand,) = instruction.operands
    shape = operand.array_shape
    comparator = precedes(shape.element_type, instruction.attributes["largest"])
    (_, values), (_, places) = results
    pairs: list[tuple[Instruction | None, Buffer]] = [(operand, values), (None, places)]
    kept = instruction.attributes["k"]
    return merge_sort(frame, [operand], comparator, shape.rank - 1, kept, pairs)
