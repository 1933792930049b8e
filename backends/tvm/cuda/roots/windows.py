"""ReduceWindow: cumulative ones by scans, others by the portable loops."""

from __future__ import annotations

from tracejit.attributes import Window
from tracejit.backends.tvm.analysis.monoids import identities
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.root_rules import Results
from tracejit.backends.tvm.codegen.scalar import windows
from tracejit.backends.tvm.cuda.schedule.scan import cumulative
from tracejit.backends.tvm.cuda.table import rooted
from tracejit.backends.tvm.ir.tir import Stmt
from tracejit.graph import Instruction
from tracejit.ops.windows import REDUCE_WINDOW, running_axis

SHORT = 8
"""Rows up to this length have one thread each."""


@rooted.attach(REDUCE_WINDOW)
def reduce_window(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """A thread for each element, or threads that share the rows of a cumulative reduction."""
    window: Window = instruction.attributes["window"]
    shape = instruction.operands[0].array_shape
    axis = running_axis(window, shape.dimensions)
    known = identities(instruction.attributes["to_apply"]) is not None
    if axis is None or not known or not shape.size or shape.dimensions[axis] <= SHORT:
        return windows.reduce_window(frame, instruction, results)
    return cumulative(frame, instruction, results, axis, window[axis].padding_high > 0)
