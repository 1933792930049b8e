"""The interface of rules that compute one element of an instruction inside a loop nest.

`codegen.access_analysis` runs a rule symbolically, down to the buffers that it reads, to choose
loops; `codegen.emitter` runs it again and builds TIR. Both use the rules in `codegen.rules`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tracejit.backends.tvm.ir.affine import Index, Opaque
from tracejit.graph import Instruction
from tracejit.rules import RuleTable
from tracejit.shapes import ElementType

Value = Any  # an Expr, a Complex, or a tuple of them for a tuple-shaped instruction

RULES = "tracejit.backends.tvm.codegen.rules"
"""The modules of rules by op family; legalised ops have none."""

pointwise: RuleTable[Callable[..., Value]] = RuleTable("emit pointwise", RULES)
"""``rule(instruction, *values) -> value``: the operands are needed at the result's own index."""

on_scalars: RuleTable[Callable[..., Value]] = RuleTable("emit on scalars", RULES)
"""The effect of an `indexed` op on single values, in a computation of scalars."""

indexed: RuleTable[Callable[..., Value]] = RuleTable("emit indexed", RULES)
"""``rule(scope, instruction, indices) -> value``: asks ``scope`` for operands at other indices."""


class Scope(Protocol):
    """The queries that an ``indexed`` rule may make."""

    def value(self, instruction: Instruction, indices: Sequence[Index]) -> Value:
        """One element of an instruction."""

    def reshaped(
        self, instruction: Instruction, dimensions: Sequence[int], indices: Sequence[Index]
    ) -> Value:
        """The element of ``instruction`` that has these indices under other ``dimensions``."""

    def number(self, index: Index, element_type: ElementType) -> Value:
        """An index as a value."""

    def start(self, instruction: Instruction, indices: Sequence[Index], limit: int) -> Opaque:
        """One element of an integer array as an index, clamped to [0, limit]."""

    def shifted(self, index: Index, by: Opaque) -> Opaque:
        """An index plus a computed one."""

    def map(self, function: Callable[..., Value], *values: Value) -> Value:
        """A function of register values."""


def own_indices(operand: Instruction, indices: Sequence[Index]) -> Sequence[Index]:
    """A pointwise operand's indices: the result's, or none for a scalar (of Clamp or Select)."""
    return indices if operand.array_shape.rank else ()
