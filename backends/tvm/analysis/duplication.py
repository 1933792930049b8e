"""Rules that duplicate an operand's expression, and how much larger an op makes expressions.

TVM's passes and LLVM's frontend see an expression as a tree, so a duplicated operand is compiled
twice, and a chain of such ops grows exponentially. Their operands are put into registers first.
"""

from __future__ import annotations

from tracejit.graph import Instruction
from tracejit.ops.comparison import COMPARE
from tracejit.ops.elementwise import SHIFT_LEFT, SHIFT_RIGHT_ARITHMETIC, SHIFT_RIGHT_LOGICAL, XOR
from tracejit.shapes import ElementType

# A shift by the width or more has another expression, which is selected.
_SHIFTS = (SHIFT_LEFT, SHIFT_RIGHT_ARITHMETIC, SHIFT_RIGHT_LOGICAL)
# The number of copies of an operand in a rounding to a narrow type.
ROUNDING = {t: 40 for t in ElementType if t.is_small_float} | {ElementType.BF16: 5}
_FUNCTIONS = frozenset({"elementwise", "elementwise_unary"})


def repeats(instruction: Instruction) -> bool:
    """Whether the rule of a pointwise op may use the value of an operand more than once."""
    types = {operand.array_shape.element_type for operand in instruction.operands}
    if any(t.is_complex for t in types):
        return True
    if instruction.op is XOR:
        return ElementType.PRED in types
    if instruction.op.is_cheap and instruction.op not in _SHIFTS:
        return False
    if instruction.op is COMPARE:
        return bool(instruction.attributes["type"] == "TOTALORDER")
    # For floats these are function calls.
    return instruction.op.family not in _FUNCTIONS or not all(t.is_floating for t in types)


def growth(instruction: Instruction) -> int:
    """The approximate growth from the operands' expressions to the result's."""
    rounding = ROUNDING.get(instruction.array_shape.element_type, 1)
    return rounding * (4 if repeats(instruction) else 1)
