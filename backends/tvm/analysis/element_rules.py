"""The interface of rules that compute one element of an instruction inside a loop nest.

`codegen.access_analysis` follows such a question down to the buffers it ends in, to learn how loops
may be arranged; `codegen.emitter` follows it again and makes the TIR. Both ask the same rules in
`emit/`.
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
"""Where the rules of a family of ops are; what is legalised away has none."""

ROOTS = "tracejit.backends.tvm.cpu.roots"
"""Where those are that need a schedule of their own."""

pointwise: RuleTable[Callable[..., Value]] = RuleTable("emit pointwise", RULES)
"""``rule(instruction, *values) -> value``: every operand is needed at the result's own index."""

on_scalars: RuleTable[Callable[..., Value]] = RuleTable("emit on scalars", RULES)
"""What an `indexed` op does to single values, in a computation of scalars."""

indexed: RuleTable[Callable[..., Value]] = RuleTable("emit indexed", RULES)
"""``rule(scope, instruction, indices) -> value``: asks ``scope`` for operands at other indices."""


class Scope(Protocol):
    """What an ``indexed`` rule may ask for."""

    def value(self, instruction: Instruction, indices: Sequence[Index]) -> Value:
        """One element of an instruction."""

    def reshaped(
        self, instruction: Instruction, dimensions: Sequence[int], indices: Sequence[Index]
    ) -> Value:
        """The element of ``instruction`` that has these indices under other ``dimensions``."""

    def number(self, index: Index, element_type: ElementType) -> Value:
        """An index as a value."""

    def start(self, instruction: Instruction, indices: Sequence[Index], limit: int) -> Opaque:
        """One element of integers as an index, forced into [0, limit]."""

    def shifted(self, index: Index, by: Opaque) -> Opaque:
        """An index moved by a computed one."""

    def map(self, function: Callable[..., Value], *values: Value) -> Value:
        """A function of register values."""


def own_indices(operand: Instruction, indices: Sequence[Index]) -> Sequence[Index]:
    """A pointwise operand's indices: the result's, or none for a scalar (of Clamp or Select)."""
    return indices if operand.array_shape.rank else ()
