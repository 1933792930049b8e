"""The rule table of ops with schedules of their own (anchors), and the types of such rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracejit.backends.tvm.analysis.element_rules import ROOTS, RULES
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.ir.tir import Buffer, Stmt
from tracejit.graph import Instruction
from tracejit.rules import RuleTable

Results = Sequence[tuple[Instruction, Buffer]]
"""A kernel's results and their buffers: the anchor itself, or the ends of its epilogue.

For a tuple-shaped anchor there is a GetTupleElement for each element.
"""

rooted: RuleTable[Callable[[Frame, Instruction, Results], Stmt]] = RuleTable(
    "emit rooted", RULES, ROOTS
)
"""``rule(frame, instruction, results) -> statement``: the kernel's whole body."""
