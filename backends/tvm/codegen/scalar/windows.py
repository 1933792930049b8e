"""Scalar loops of ReduceWindow, cumulative or not, and of SelectAndScatter."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tracejit.affine import Affine
from tracejit.attributes import Window
from tracejit.backends.tvm.codegen.access_analysis import Accesses
from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.loop_nest import Axis
from tracejit.backends.tvm.codegen.root_rules import Results, anchors_of
from tracejit.backends.tvm.codegen.scalar.accumulators import ScalarAccumulators, accumulated
from tracejit.backends.tvm.codegen.scalar.elements import (
    ElementLoops,
    SharedLoop,
    nested,
    place,
    shared_loop,
)
from tracejit.backends.tvm.codegen.scalar.reduction import Combination, combined
from tracejit.backends.tvm.codegen.scalar.table import scalar
from tracejit.backends.tvm.codegen.stores import Store
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


def element_of(window: Window) -> Callable[[Sequence[Index], Sequence[Index]], list[Index]]:
    """The operand's index of an element of a window without padding.

    It is ``position * stride + offset * dilation``, so that it lies inside the operand.
    """

    def locate(at: Sequence[Index], over: Sequence[Index]) -> list[Index]:
        places: list[Index] = []
        for position, offset, w in zip(at, over, window, strict=True):
            assert isinstance(position, Affine)
            assert isinstance(offset, Affine)
            places.append(position * w.stride + offset * w.window_dilation)
        return places

    return locate


@scalar.attach(REDUCE_WINDOW)
def reduce_window(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """A reduction of each window; legalisation has removed padding, except of cumulative ones."""
    count = len(instruction.operands) // 2
    window: Window = instruction.attributes["window"]
    sizes = instruction.operands[0].array_shape.dimensions
    axis = running_axis(window, sizes)
    if axis is not None and count == 1:
        return cumulative(frame, instruction, results, axis, window[axis].padding_high > 0)

    part = Combination(
        instruction.operands[:count],
        instruction.operands[count:],
        instruction.attributes["to_apply"],
    )
    kept = results[0][0].array_shape.dimensions
    over = [w.size for w in window]
    anchors = anchors_of(instruction, results)
    return combined(frame, [part], kept, over, element_of(window), anchors, results)


def cumulative(
    frame: Frame, instruction: Instruction, results: Results, axis: int, backwards: bool
) -> Stmt:
    """Each row by a loop that stores every partial result."""
    frame.schedule = "scalar scan"
    operand, initial = instruction.operands
    sizes = operand.array_shape.dimensions
    rows = [*sizes[:axis], *sizes[axis + 1 :]]

    def where(at: Sequence[Index], over: Sequence[Index]) -> list[Index]:
        (step,) = over
        assert isinstance(step, Affine)
        along = step * -1 + (sizes[axis] - 1) if backwards else step
        return [*at[:axis], along, *at[axis:]]

    def ask(scope: Accesses, at: Sequence[Index], over: Sequence[Index]) -> None:
        scope.value(operand, where(at, over))
        scope.value(initial, ())

    anchors = anchors_of(instruction, results)
    elements = ElementLoops(frame, rows, [sizes[axis]], anchors, results, ask, where)
    element_type = operand.array_shape.element_type
    total = ScalarAccumulators([element_type])

    def step() -> list[Stmt]:
        emitter = elements.emitter()
        arrived = emitter.value(operand, elements.place)
        new = accumulated(
            instruction.attributes["to_apply"], emitter, [*total.read(emitter), arrived]
        )
        written = total.write(emitter, new)
        after = elements.emitter()
        (value,) = total.read(after)
        return [*written, *elements.finish([after.settled(value, element_type)])]

    def step_of() -> list[Stmt]:
        emitter = elements.emitter()
        begin = total.write(emitter, [emitter.value(initial, ())])
        return [*total.allocations, *begin, elements.steps(step)]

    return elements.kernel(step_of)


@scalar.attach(SELECT_AND_SCATTER)
def select_and_scatter(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    return scattered_by(shared_loop, frame, instruction, results)


def scattered_by(
    shared_by: SharedLoop, frame: Frame, instruction: Instruction, results: Results
) -> Stmt:
    """The initial value everywhere; then each source element goes where its window selects.

    Windows may overlap, except along dimensions that they leave alone. A step of the shared loop
    has one index along those, and goes over all windows there.
    """
    frame.schedule = "select and scatter"
    ((_, target),) = results
    operand, source, initial = instruction.operands
    window: Window = instruction.attributes["window"]
    sizes = operand.array_shape.dimensions
    element_type = operand.array_shape.element_type
    filling = Store(broadcast_in_dim(initial, sizes, ()), target)
    filled = frame.pointwise(sizes, [filling], 1)
    if source.array_shape.size == 0:
        return filled
    dtype = frame.index_dtype
    alone = [w.size == w.stride == 1 and not w.padding_low and not w.padding_high for w in window]
    counts = source.array_shape.dimensions
    at = [LoopVariable(f"p{d}", count) for d, count in enumerate(counts)]
    within = [LoopVariable(f"w{d}", w.size) for d, w in enumerate(window)]
    positions: dict[LoopVariable, Expr] = {v: const(0, dtype) for v in (*at, *within)}
    dimensions = range(len(sizes))
    shared = [Axis((at[d],), counts[d]) for d in dimensions if alone[d] and counts[d] > 1]
    serial = [Axis((at[d],), counts[d]) for d in dimensions if not alone[d] and counts[d] > 1]
    steps = [Axis((within[d],), window[d].size) for d in dimensions if window[d].size > 1]
    strides = row_major_strides(sizes)
    zero = const(0, dtype)

    def emitter() -> Emitter:
        return Emitter(frame.inputs, positions, uses=frame.uses, index_dtype=dtype)

    def step_of(number: Expr) -> list[Stmt]:
        place(number, shared, positions, dtype)
        # Where the element selected so far lies; -1 before the first.
        selected = buffer("selected", (1,), dtype, scope="local")

        def look() -> list[Stmt]:
            inside: Expr = const(True, "bool")
            coordinates = []
            for d in dimensions:
                w = window[d]
                index = positions[at[d]] * const(w.stride, dtype) - const(w.padding_low, dtype)
                index = index + positions[within[d]]
                coordinates.append(Opaque(index, frozenset()))
                if not alone[d]:
                    within_bounds = tirx.And(index >= zero, index < const(sizes[d], dtype))
                    inside = tirx.And(inside, within_bounds)
            scope = emitter()
            address = zero
            for index, stride in zip(coordinates, strides, strict=True):
                address = address + index.expression * const(stride, dtype)
            so_far = scope.load(frame.inputs[operand], tirx.max(selected[zero], zero), element_type)
            candidate = scope.load(frame.inputs[operand], address, element_type)
            keeps = scope.apply(instruction.attributes["select"], [so_far, candidate])
            takes = tirx.Or(selected[zero] < zero, tirx.Not(keeps))
            taken = IfThenElse(takes, store(selected, zero, address), None)
            body = seq(*scope.allocations, *scope.statements, taken)
            return [IfThenElse(inside, body, None)]

        def window_of() -> list[Stmt]:
            scope = emitter()
            indices: list[Index] = [v.index for v in at]
            arriving = scope.value(source, indices)
            present = scope.load(target, selected[zero], element_type)
            combined = scope.apply(instruction.attributes["scatter"], [present, arriving])
            stored = scope.store(target, selected[zero], combined, element_type)
            stores = stored if isinstance(stored, list) else [stored]
            scattered = seq(*scope.allocations, *scope.statements, *stores)
            return [
                store(selected, zero, const(-1, dtype)),
                nested(steps, positions, look, dtype),
                IfThenElse(selected[zero] >= zero, scattered, None),
            ]

        return [AllocBuffer(selected), nested(serial, positions, window_of, dtype)]

    threads = math.prod(axis.extent for axis in shared)
    return seq(filled, shared_by(threads, step_of, dtype))
