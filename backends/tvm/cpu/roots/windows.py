"""ReduceWindow and SelectAndScatter."""

from __future__ import annotations

import math
from collections.abc import Callable

from tracejit.attributes import Window
from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.loop_nest import Count, nest
from tracejit.backends.tvm.codegen.root_rules import Results, anchors_of
from tracejit.backends.tvm.codegen.scalar.windows import element_of
from tracejit.backends.tvm.codegen.stores import Store
from tracejit.backends.tvm.cpu.root_rules import rooted
from tracejit.backends.tvm.cpu.schedule.pointwise import pointwise
from tracejit.backends.tvm.cpu.schedule.reduce.accumulators import Reducer
from tracejit.backends.tvm.cpu.schedule.reduce.combining import ReduceSpec
from tracejit.backends.tvm.cpu.schedule.reduce.reduction import reduction
from tracejit.backends.tvm.cpu.schedule.scan.cumulative import CumulativeReduction, cumulative
from tracejit.backends.tvm.ir.affine import Index, LoopVariable, Opaque, row_major_strides
from tracejit.backends.tvm.ir.tir import (
    AllocBuffer,
    Expr,
    IfThenElse,
    Stmt,
    buffer,
    const,
    seq,
    store,
    tirx,
)
from tracejit.graph import Instruction
from tracejit.ops.layout import broadcast_in_dim
from tracejit.ops.windows import REDUCE_WINDOW, SELECT_AND_SCATTER, running_axis


@rooted.attach(REDUCE_WINDOW)
def reduce_window(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """A reduction of each window, from which legalisation has removed padding.

    Cumulative reductions, which keep their padding, have a schedule of their own.
    """
    count = len(instruction.operands) // 2
    window: Window = instruction.attributes["window"]
    to_apply = instruction.attributes["to_apply"]
    axis = running_axis(window, instruction.operands[0].array_shape.dimensions)
    if axis is not None and count == 1:
        operand, initial = instruction.operands
        backwards = window[axis].padding_high > 0
        work = CumulativeReduction(
            operand, initial, to_apply, axis, backwards, instruction, tuple(results)
        )
        return cumulative(frame, work)

    reducer = Reducer(
        parts=(ReduceSpec(instruction.operands[:count], instruction.operands[count:], to_apply),),
        kept=results[0][0].array_shape.dimensions,
        reduced=tuple(w.size for w in window),
        locate=element_of(window),
        anchors=anchors_of(instruction, results),
        results=tuple(results),
    )
    return reduction(frame, reducer, frame.cost)


@rooted.attach(SELECT_AND_SCATTER)
def select_and_scatter(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """The initial value everywhere; then, for each source element, a scan of its window in order.

    Dimensions of window size 1 run in parallel; along the others windows may overlap, so their
    positions run one after the other.
    """
    ((_, target),) = results
    operand, source, initial = instruction.operands
    window: Window = instruction.attributes["window"]
    sizes = operand.array_shape.dimensions
    positions = source.array_shape.dimensions
    filled = pointwise(frame, sizes, [Store(broadcast_in_dim(initial, sizes, ()), target)], 1)
    if source.array_shape.size == 0:
        return filled
    element_type = operand.array_shape.element_type
    dtype = frame.index_dtype
    alone = [w.size == w.stride == 1 and not w.padding_low and not w.padding_high for w in window]
    order = [d for d in range(len(sizes)) if alone[d]] + [
        d for d in range(len(sizes)) if not alone[d]
    ]
    zero = const(0, dtype)
    at: dict[int, Expr] = {d: zero for d in order}
    within: dict[int, Expr] = {d: zero for d in order}
    counts = [Count(positions[d], _placing(at, d)) for d in order if positions[d] > 1]
    free = sum(1 for d in order if alone[d] and positions[d] > 1)
    steps = [Count(window[d].size, _placing(within, d)) for d in order if window[d].size > 1]
    # The index of the element selected so far; -1 before the first.
    place = buffer("place", (1,), dtype, scope="local")
    strides = row_major_strides(sizes)

    def where(d: int) -> Expr:
        w = window[d]
        start = at[d] * const(w.stride, dtype) - const(w.padding_low, dtype)
        return start + within[d] if w.size > 1 else start

    def scan() -> list[Stmt]:
        coordinates = {d: where(d) for d in order}
        inside = const(True, "bool")
        for d in order:
            if not alone[d]:
                low, high = coordinates[d] >= zero, coordinates[d] < const(sizes[d], dtype)
                inside = tirx.And(inside, tirx.And(low, high))
        address = zero
        for d in order:
            address = address + coordinates[d] * const(strides[d], dtype)
        emitter = Emitter(frame.inputs, {}, uses=frame.uses, index_dtype=dtype)
        memory = frame.inputs[operand]
        so_far = emitter.load(memory, tirx.max(place[zero], zero), element_type)
        candidate = emitter.load(memory, address, element_type)
        keeps = emitter.apply(instruction.attributes["select"], [so_far, candidate])
        takes = tirx.Or(place[zero] < zero, tirx.Not(keeps))
        taken = IfThenElse(takes, store(place, zero, address), None)
        body = seq(*emitter.allocations, *emitter.statements, taken)
        return [IfThenElse(inside, body, None)]

    def position() -> list[Stmt]:
        indices: list[Index] = [Opaque(at[d], frozenset[LoopVariable]()) for d in range(len(sizes))]
        emitter = Emitter(frame.inputs, {}, uses=frame.uses, index_dtype=dtype)
        arriving = emitter.value(source, indices)
        present = emitter.load(target, place[zero], element_type)
        combined = emitter.apply(instruction.attributes["scatter"], [present, arriving])
        written = emitter.store(target, place[zero], combined, element_type)
        scattered = seq(*emitter.allocations, *emitter.statements, written)
        return [
            AllocBuffer(place),
            store(place, zero, const(-1, dtype)),
            nest(steps, scan, dtype=dtype),
            IfThenElse(place[zero] >= zero, scattered, None),
        ]

    work = source.array_shape.size * math.prod(w.size for w in window)
    parallel = frame.pieces(work)
    outer, inner = counts[:free], counts[free:]
    scattering = nest(
        outer, lambda: nest(inner, position, dtype=dtype), parallel=parallel, dtype=dtype
    )
    return seq(filled, scattering)


def _placing(into: dict[int, Expr], dimension: int) -> Callable[[Expr], None]:
    def place(number: Expr) -> None:
        into[dimension] = number

    return place
