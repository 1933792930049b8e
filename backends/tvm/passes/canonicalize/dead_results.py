"""Replaces factorisations with one live result by ops that compute only that result.

    eliminate_dead_results(roots)        qr(a)[1] -> qr_r(a)

If the full factorisation of the same matrix exists anyway, its result is used.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.backends.tvm.analysis.tuple_liveness import live_elements
from tracejit.graph import Instruction
from tracejit.ops.base import make
from tracejit.ops.constants import GET_TUPLE_ELEMENT, get_tuple_element
from tracejit.ops.custom import CUSTOM_CALL, LINEAR_ALGEBRA
from tracejit.shapes import TupleShape
from tracejit.traversal import in_order, transform

# By target and live result: the target that computes it alone.
_ALONE = {
    (LINEAR_ALGEBRA + target, number): LINEAR_ALGEBRA + other
    for target, number, other in [
        ("qr", 1, "qr_r"),
        ("eigh_l", 0, "eigvalsh_l"),
        ("eigh_u", 0, "eigvalsh_u"),
        ("svd", 1, "svdvals"),
        ("svd_full", 1, "svdvals"),
    ]
}


def eliminate_dead_results(roots: Sequence[Instruction]) -> list[Instruction]:
    """Equal ``roots``, up to rounding."""
    roots = _shared(roots)
    others = _others(roots)

    def visit(instruction: Instruction, operands: tuple[Instruction, ...]) -> Instruction | None:
        if instruction.op is GET_TUPLE_ELEMENT and instruction.operands[0] in others:
            return get_tuple_element(operands[0], 0)
        if instruction not in others:
            return None
        number, target = others[instruction]
        own = {
            "custom_call_target": target,
            "shape": TupleShape((instruction.element_shapes[number],)),
        }
        return make(CUSTOM_CALL, *operands, **{**instruction.attributes, **own})

    return transform(roots, visit) if others else list(roots)


def _others(roots: Sequence[Instruction]) -> dict[Instruction, tuple[int, str]]:
    """The calls to replace, each with the number of its result and the other target."""
    used = live_elements(roots, lambda i: i.op is CUSTOM_CALL)
    found = {}
    for call, numbers in used.items():
        for number in numbers:
            key = call.attributes["custom_call_target"], number
            if len(numbers) == 1 and key in _ALONE:
                found[call] = number, _ALONE[key]
    return found


def _shared(roots: Sequence[Instruction]) -> list[Instruction]:
    """svdvals(a) -> svd(a)[1] if svd(a) exists, and so on."""
    order = in_order(roots)
    calls = {
        (i.attributes["custom_call_target"], i.operands): i
        for i in order
        if i.op is CUSTOM_CALL and i.attributes["custom_call_target"].startswith(LINEAR_ALGEBRA)
    }
    elements = [i for i in order if i.op is GET_TUPLE_ELEMENT]
    # A GetTupleElement is one instruction, even with several users.
    known = {(e.operands[0], e.attributes["index"]): e for e in elements}
    instead = {}
    for element in elements:
        (call,) = element.operands
        if call not in calls.values():
            continue
        for (target, number), alone in _ALONE.items():
            whole = calls.get((target, call.operands))
            if alone == call.attributes["custom_call_target"] and whole is not None:
                made = known.get((whole, number)) or get_tuple_element(whole, number)
                instead[element] = known[whole, number] = made
    return transform(roots, lambda *_: None, instead) if instead else list(roots)
