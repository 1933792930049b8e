"""The table of the CUDA kernels of ops that need a schedule of their own."""

from __future__ import annotations

from tracejit.backends.tvm.codegen.root_rules import RootRule
from tracejit.rules import RuleTable

rooted: RuleTable[RootRule] = RuleTable("CUDA kernels", "tracejit.backends.tvm.cuda.roots")
