"""Alias roots of a Conditional: arguments whose buffer a result could reuse.

    origins(result)     the arguments of the Conditional that a result may be written over

An update or a loop may write its result over its operand. So may a branch that updates, or
returns, its argument.
"""

from __future__ import annotations

from tracejit.backends.tvm.ir.reshapes import base_buffer
from tracejit.graph import Instruction
from tracejit.ops.constants import GET_TUPLE_ELEMENT, TUPLE
from tracejit.ops.control import CONDITIONAL, WHILE
from tracejit.ops.indexing import SCATTER
from tracejit.ops.layout import DYNAMIC_UPDATE_SLICE

_Part = tuple[Instruction, tuple[int, ...]]
"""A tuple, and the path to one of its arrays: element numbers from the outermost."""


def origins(result: Instruction) -> list[Instruction]:
    """The operands' arrays that branches update, or return, to compute one of the results.

    ``result`` is an element of a Conditional; tuples among its operands are Tuple instructions.
    """
    path: tuple[int, ...] = ()
    while result.op is GET_TUPLE_ELEMENT:
        path = (result.attributes["index"], *path)
        (result,) = result.operands
    found: dict[Instruction, None] = {}
    for operand, numbers in _given(result, path):
        for number in numbers:
            operand = operand.operands[number]
        found[operand] = None
    return list(found)


def _given(conditional: Instruction, path: tuple[int, ...]) -> list[_Part]:
    """The arrays of a Conditional's operands that one array of its results is an update of."""
    _, *operands = conditional.operands
    return [
        (operand, taken)
        for branch, operand in zip(conditional.computations, operands, strict=True)
        for value, taken in _beginnings(branch.root, path)
        if value is branch.parameters[0]
    ]


def _beginnings(root: Instruction, path: tuple[int, ...]) -> list[_Part]:
    """The array before all updates that lead to one array of a root."""
    stack: list[_Part] = [(root, path)]
    seen: set[_Part] = set()
    ends = []
    while stack:
        value, path = stack.pop()
        value = base_buffer(value)
        if (value, path) in seen:
            continue
        seen.add((value, path))
        if value.op is GET_TUPLE_ELEMENT:
            stack.append((value.operands[0], (value.attributes["index"], *path)))
        elif value.op is TUPLE:
            stack.append((value.operands[path[0]], path[1:]))
        elif value.op is WHILE or (value.op in (DYNAMIC_UPDATE_SLICE, SCATTER) and not path):
            stack.append((value.operands[0], path))
        elif value.op is CONDITIONAL:
            stack.extend(reversed(_given(value, path)))
        else:
            ends.append((value, path))
    return ends
