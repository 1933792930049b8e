"""Constant propagation into loops: state elements that are loop-invariant constants.

    propagate_constant_state(roots)

    while(0, x, 2.0): x = x * s; s = s        while(0, x, 2.0): x = x * 2.0; s = s

Constants become part of the code: factors, or indices. `dead_state` removes the state element.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tracejit.graph import Computation, Instruction
from tracejit.ops.constants import CONSTANT, GET_TUPLE_ELEMENT, TUPLE
from tracejit.ops.control import WHILE
from tracejit.ops.layout import BROADCAST_IN_DIM
from tracejit.traversal import in_order, rebuild, substitute, transform

# The most elements of a constant that is propagated.
SMALL = 16


def propagate_constant_state(roots: Sequence[Instruction]) -> list[Instruction]:
    """Equal ``roots``. Nested loops are processed with their own graphs."""

    def visit(instruction: Instruction, operands: tuple[Instruction, ...]) -> Instruction | None:
        if instruction.op is not WHILE or operands[0].op is not TUPLE or instruction.has_effect:
            return None
        condition, body = instruction.attributes["condition"], instruction.attributes["body"]
        kept = _unchanged(body)
        known = {
            n: operand
            for n, operand in enumerate(operands[0].operands)
            if n in kept and _is_known(operand)
        }
        if not known:
            return None
        attributes = {
            **instruction.attributes,
            "condition": _with_known(condition, condition.root, known),
            "body": _with_known(body, body.root, known),
        }
        shape, source = instruction.shape, instruction.source
        return Instruction(WHILE, operands, shape, attributes, source)

    return transform(roots, visit)


def _is_known(value: Instruction) -> bool:
    if value.op is BROADCAST_IN_DIM:
        return value.operands[0].op is CONSTANT and value.operands[0].array_shape.rank == 0
    return value.op is CONSTANT and value.array_shape.size <= SMALL


def _unchanged(body: Computation) -> set[int]:
    """The state elements that each iteration leaves unchanged."""
    (state,) = body.parameters
    if body.root.op is not TUPLE:
        return set()
    return {
        n
        for n, part in enumerate(body.root.operands)
        if part.op is GET_TUPLE_ELEMENT
        and part.operands[0] is state
        and part.attributes["index"] == n
    }


def _with_known(
    computation: Computation, root: Instruction, known: Mapping[int, Instruction]
) -> Computation:
    (state,) = computation.parameters
    parts = {
        i: _anew(known[i.attributes["index"]])
        for i in in_order([root])
        if i.op is GET_TUPLE_ELEMENT and i.operands[0] is state and i.attributes["index"] in known
    }
    if root.op is not TUPLE:
        return Computation(computation.name, (state,), substitute([root], parts)[0])
    # The state element itself is passed on unchanged.
    wanted = [o for n, o in enumerate(root.operands) if n not in known]
    made = iter(substitute(wanted, parts))
    whole = [o if n in known else next(made) for n, o in enumerate(root.operands)]
    return Computation(computation.name, (state,), rebuild(root, whole))


def _anew(value: Instruction) -> Instruction:
    return rebuild(value, [_anew(operand) for operand in value.operands])
