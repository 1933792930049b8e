"""The random words of one counter, on register values."""

from __future__ import annotations

from tracejit.backends.tvm.analysis.element_rules import pointwise
from tracejit.backends.tvm.ir import mathematics
from tracejit.backends.tvm.ir.internal_ops import THREEFRY
from tracejit.backends.tvm.ir.tir import Expr
from tracejit.graph import Instruction


@pointwise.attach(THREEFRY)
def threefry(instruction: Instruction, *words: Expr) -> Expr:
    return mathematics.threefry(*words, dtype="uint32")
