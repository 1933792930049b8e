"""Turns a conditional update of a sum into an unconditional sum of masked terms.

    predicate_reductions(root)     an equal root of a loop's body

    s = s - x if p else s           s = s - (x if p else 0)

Then the vectoriser recognises a sum, whose terms do not depend on earlier iterations. The same
holds for minima and maxima.
"""

from __future__ import annotations

from typing import Any

from tracejit.backends.tvm.analysis.monoids import is_sum
from tracejit.graph import Instruction
from tracejit.ops.computations import identity_value
from tracejit.ops.constants import GET_TUPLE_ELEMENT
from tracejit.ops.elementwise import ADD, SELECT, SUB, select
from tracejit.ops.layout import full_like
from tracejit.shapes import ElementType, Shape
from tracejit.traversal import rebuild, transform, user_counts


def predicate_reductions(root: Instruction) -> Instruction:
    """The root with selects between a state element and its update moved to the term."""
    counts = user_counts([root])

    def visit(instruction: Instruction, operands: tuple[Instruction, ...]) -> Instruction | None:
        if instruction.op is not SELECT or not isinstance(instruction.shape, Shape):
            return None
        if instruction.shape.rank or instruction.shape.element_type is ElementType.PRED:
            return None
        truth, *sides = operands
        for number, total in enumerate(sides):
            given = sides[1 - number]
            is_own = counts[instruction.operands[1 + number]] == 1
            if given.op is not GET_TUPLE_ELEMENT or not is_own:
                continue
            term, nothing = _term(total, given)
            if term is None:
                continue
            hidden = [full_like(term, nothing)] * 2
            hidden[number] = term
            return rebuild(total, (given, select(truth, *hidden)))
        return None

    return transform([root], visit)[0]


def _term(total: Instruction, given: Instruction) -> tuple[Instruction | None, Any]:
    """The term that is added to a number, or compared with it, and the identity of that op."""
    if not is_sum(total.op) or given not in total.operands:
        return None, None
    element_type = total.array_shape.element_type
    left, right = total.operands
    if element_type.is_complex or (total.op is SUB and left is not given):
        return None, None
    term = right if left is given else left
    # -0.0 + -0.0 -> -0.0, and -0.0 - 0.0 -> -0.0
    if total.op is SUB or (total.op is ADD and element_type.is_floating):
        return term, 0 if total.op is SUB else -0.0
    return term, identity_value(total.op.function, element_type)
