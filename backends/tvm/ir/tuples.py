"""Flattens tuples: the arrays of a value."""

from __future__ import annotations

from collections.abc import Iterable

from tracejit.graph import Instruction
from tracejit.ops.constants import GET_TUPLE_ELEMENT, elements_of, get_tuple_element
from tracejit.shapes import TupleShape


def flattened(root: Instruction) -> list[Instruction]:
    """The arrays of a root, tuples flattened."""
    if not isinstance(root.shape, TupleShape):
        return [root]
    return [leaf for element in elements_of(root) for leaf in flattened(element)]


def arrays_of(operand: Instruction) -> list[Instruction]:
    """The arrays of an operand, whose tuples are Tuple instructions (see `passes.legalize`)."""
    if not isinstance(operand.shape, TupleShape):
        return [operand]
    return [leaf for element in operand.operands for leaf in arrays_of(element)]


class Leaves:
    """Maps tuple results to the GetTupleElement instructions for their arrays.

    ``used`` are the instructions to search for GetTupleElements.
    """

    def __init__(self, used: Iterable[Instruction]) -> None:
        self._elements = {
            (i.operands[0], i.attributes["index"]): i for i in used if i.op is GET_TUPLE_ELEMENT
        }

    def of(self, result: Instruction) -> list[Instruction]:
        """The arrays of a result, as their users refer to them."""
        if not isinstance(result.shape, TupleShape):
            return [result]
        elements = []
        for n in range(len(result.shape.elements)):
            if (result, n) not in self._elements:
                self._elements[result, n] = get_tuple_element(result, n)
            elements.append(self._elements[result, n])
        return [leaf for element in elements for leaf in self.of(element)]
