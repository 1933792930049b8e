"""The CPU's table of ops that have schedules of their own, in `cpu.roots`."""

from __future__ import annotations

from tracejit.backends.tvm.codegen.root_rules import RootRule
from tracejit.rules import RuleTable

rooted: RuleTable[RootRule] = RuleTable("emit rooted", "tracejit.backends.tvm.cpu.roots")
