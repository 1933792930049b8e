"""Reduce and ReduceWindow: one accumulator for each result, element after element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tracejit.backends.tvm.analysis.element_rules import Value
from tracejit.backends.tvm.codegen.access_analysis import Accesses
from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.codegen.kernel_frame import Frame, memory_buffer
from tracejit.backends.tvm.codegen.loop_nest import Space, merge, nest, settle
from tracejit.backends.tvm.codegen.root_rules import Results, anchors_of
from tracejit.backends.tvm.codegen.scalar.loops import scoped, store_results
from tracejit.backends.tvm.codegen.scalar.table import scalar
from tracejit.backends.tvm.codegen.stores import identity
from tracejit.backends.tvm.ir.affine import Index, LoopVariable
from tracejit.backends.tvm.ir.tir import AllocBuffer, Expr, Stmt, const, seq
from tracejit.graph import Computation, Instruction
from tracejit.ops.reduction import REDUCE
from tracejit.shapes import ElementType, Shape

Locate = Callable[[Sequence[Index], Sequence[Index]], list[Index]]
"""From indices over the kept and the combined dimensions to those of the operands."""


@dataclass(frozen=True)
class Combination:
    """Arrays whose elements are combined, together."""

    operands: Sequence[Instruction]
    initial: Sequence[Instruction]
    combine: Computation


class Accumulators:
    """A number for each element type, in registers; narrow floats are held as f32."""

    def __init__(self, types: Sequence[ElementType]) -> None:
        narrow = [t.is_floating and t.bits < 32 for t in types]
        self.types = [ElementType.F32 if n else t for n, t in zip(narrow, types, strict=True)]
        self.buffers = [memory_buffer(Shape(t, (1,)), "acc") for t in self.types]
        self.allocations = [AllocBuffer(b) for b in self.buffers]

    def read(self, emitter: Emitter) -> list[Value]:
        zero = const(0, emitter.index_dtype)
        pairs = zip(self.buffers, self.types, strict=True)
        return [emitter.hold(emitter.load(b, zero, t), t) for b, t in pairs]

    def write(self, emitter: Emitter, values: Sequence[Value]) -> list[Stmt]:
        zero = const(0, emitter.index_dtype)
        held = [emitter.hold(v, t) for v, t in zip(values, self.types, strict=True)]
        trios = zip(self.buffers, self.types, held, strict=True)
        return [seq(emitter.store(b, zero, v, t)) for b, t, v in trios]


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
    outer, inner = Space(kept), Space(over)
    visible = frame.inputs.without({*anchors, *(root for root, _ in results)})
    operands = [operand for part in parts for operand in part.operands]
    types = [operand.array_shape.element_type for operand in operands]

    def ask(scope: Accesses) -> None:
        where = locate(outer.indices, inner.indices)
        for operand in operands:
            scope.value(operand, where)
        scope.known.update(anchors)
        for root, _ in results:
            if root not in scope.known:
                scope.result(root, outer.indices)

    accesses = settle([outer, inner], ask, visible.__contains__)
    addresses = [*(load.address for load in accesses.loads), identity(kept)(outer.indices)]
    positions: dict[LoopVariable, Expr] = {}
    around, within = (
        [axis.count(positions) for axis in merge(s.variables, addresses, accesses.opaque)]
        for s in (outer, inner)
    )
    totals = Accumulators(types)

    def emitter() -> Emitter:
        return Emitter(visible, positions, uses=frame.uses, index_dtype=frame.index_dtype)

    def begin(scope: Emitter) -> list[Stmt]:
        return totals.write(scope, [scope.value(i, ()) for part in parts for i in part.initial])

    def step(scope: Emitter) -> list[Stmt]:
        where = locate(outer.indices, inner.indices)
        before = totals.read(scope)
        made: list[Value] = []
        for part in parts:
            count = len(part.operands)
            old, before = before[:count], before[count:]
            elements = [scope.value(operand, where) for operand in part.operands]
            new = scope.accumulate(part.combine, [*old, *elements])
            made += new if isinstance(new, tuple) and count > 1 else [new]
        return totals.write(scope, made)

    def finish(scope: Emitter) -> list[Stmt]:
        for anchor, value in zip(anchors, totals.read(scope), strict=True):
            scope.given[anchor] = scope.settled(value, anchor.array_shape.element_type)
        return store_results(scope, results, kept, outer.indices)

    def one() -> list[Stmt]:
        return [
            *totals.allocations,
            *scoped(emitter(), begin),
            nest(within, lambda: scoped(emitter(), step), dtype=frame.index_dtype),
            *scoped(emitter(), finish),
        ]

    return nest(around, one, dtype=frame.index_dtype)


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
