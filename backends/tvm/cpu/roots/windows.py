"""Lowers ReduceWindow and SelectAndScatter: calls their schedules."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tracejit.attributes import Window
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.root_rules import Results, anchors_of
from tracejit.backends.tvm.codegen.scalar import windows
from tracejit.backends.tvm.cpu.root_rules import rooted
from tracejit.backends.tvm.cpu.schedule.reduce.accumulators import Reducer
from tracejit.backends.tvm.cpu.schedule.reduce.combining import ReduceSpec
from tracejit.backends.tvm.cpu.schedule.reduce.reduction import reduction
from tracejit.backends.tvm.cpu.schedule.scan.cumulative import CumulativeReduction, cumulative
from tracejit.backends.tvm.ir.tir import PARALLEL, SERIAL, Expr, Stmt, loop
from tracejit.graph import Instruction
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
        locate=windows.element_of(window),
        anchors=anchors_of(instruction, results),
        results=tuple(results),
    )
    return reduction(frame, reducer, frame.cost)


@rooted.attach(SELECT_AND_SCATTER)
def select_and_scatter(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """The portable loops, on threads if there is enough work."""
    window: Window = instruction.attributes["window"]
    work = instruction.operands[1].array_shape.size * math.prod(w.size for w in window)
    kind = PARALLEL if frame.is_shared(work) else SERIAL

    def shared(extent: int, body: Callable[[Expr], Sequence[Stmt]], dtype: str) -> Stmt:
        return loop(extent, body, kind, dtype=dtype)

    return windows.scattered_by(shared, frame, instruction, results)
