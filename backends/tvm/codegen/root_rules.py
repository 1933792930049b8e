"""The types of the rules of ops with schedules of their own; each target has a table of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.ir.tir import Buffer, Stmt
from tracejit.graph import Instruction

Results = Sequence[tuple[Instruction, Buffer]]
"""A kernel's results and their buffers: the anchor itself, or the ends of its epilogue.

For a tuple-shaped anchor there is a GetTupleElement for each element.
"""

RootRule = Callable[[Frame, Instruction, Results], Stmt]
"""``rule(frame, instruction, results) -> statement``: the kernel's whole body."""
