"""OptimizationBarrier: its operand is materialised, and no kernel computes across it."""

from __future__ import annotations

from tracejit.backends.tvm.analysis.element_rules import Value, pointwise
from tracejit.graph import Instruction
from tracejit.ops.control import OPTIMIZATION_BARRIER


@pointwise.attach(OPTIMIZATION_BARRIER)
def optimization_barrier(instruction: Instruction, operand: Value) -> Value:
    return operand
