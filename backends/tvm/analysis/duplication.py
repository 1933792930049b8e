"""Which rules write the expression of an operand more than once.

To TVM's passes and to LLVM's front an expression is a tree, so what is written twice is compiled
twice, and a chain of such ops doubles with each. Their operands are put into registers first.
"""

from __future__ import annotations

from tracejit.graph import Instruction
from tracejit.ops import elementwise as ops
from tracejit.ops import elementwise_unary as unary
from tracejit.ops.comparison import COMPARE
from tracejit.shapes import ElementType

_ONCE = frozenset(
    {
        ops.ADD,
        ops.AND,
        ops.CLAMP,
        ops.COMPLEX,
        ops.MAX,
        ops.MIN,
        ops.MUL,
        ops.OR,
        ops.SELECT,
        ops.SUB,
        unary.NEG,
        unary.NOT,
    }
)
# How often rounding to a narrow type writes what it rounds.
ROUNDING = {ElementType.F8E4M3FN: 40, ElementType.F8E5M2: 40, ElementType.BF16: 5}
_FUNCTIONS = frozenset({"elementwise", "elementwise_unary"})


def repeats(instruction: Instruction) -> bool:
    """Whether the rule of a pointwise op may use the value of an operand more than once."""
    types = {operand.array_shape.element_type for operand in instruction.operands}
    if any(t.is_complex for t in types):
        return True
    if instruction.op in _ONCE:
        return False
    if instruction.op is COMPARE:
        return bool(instruction.attributes["type"] == "TOTALORDER")
    if instruction.op is ops.XOR:
        return ElementType.PRED in types
    # Of floats these are calls of functions.
    return instruction.op.family not in _FUNCTIONS or not all(t.is_floating for t in types)


def growth(instruction: Instruction) -> int:
    """How much larger than those of its operands the expression of a result is, roughly."""
    rounding = ROUNDING.get(instruction.array_shape.element_type, 1)
    return rounding * (4 if repeats(instruction) else 1)
