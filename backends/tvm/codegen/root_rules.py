"""The rule table of ops that need a schedule of their own, and what such a rule is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracejit.backends.tvm.analysis.element_rules import ROOTS, RULES
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.ir.tir import Buffer, Stmt
from tracejit.graph import Instruction
from tracejit.rules import RuleTable

Results = Sequence[tuple[Instruction, Buffer]]
"""What a kernel stores and where: the anchor itself, or the ends of its epilogue.

For a tuple-shaped anchor there is a GetTupleElement for each element.
"""

rooted: RuleTable[Callable[[Frame, Instruction, Results], Stmt]] = RuleTable(
    "emit rooted", RULES, ROOTS
)
"""``rule(frame, instruction, results) -> statement``: the kernel's whole body."""
