"""The table of plain loops for ops that have schedules of their own, by family."""

from __future__ import annotations

from tracejit.backends.tvm.codegen.root_rules import RootRule
from tracejit.rules import RuleTable

scalar: RuleTable[RootRule] = RuleTable("scalar loops", "tracejit.backends.tvm.codegen.scalar")
