"""Dead-state elimination: removes elements of a loop's state that no live result depends on.

    eliminate_dead_state(roots)

    while(0, x, y): x = f(x); y = g(y)        while(0, x): x = f(x)        y unused

A derivative carries values through a loop that some callers need; if none does, and neither the
condition nor live state depends on them, they are removed.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.backends.tvm.analysis.tuple_liveness import live_elements
from tracejit.graph import Computation, Instruction
from tracejit.ops.constants import GET_TUPLE_ELEMENT, TUPLE, get_tuple_element, parameter, tuple_
from tracejit.ops.control import WHILE, while_
from tracejit.shapes import TupleShape
from tracejit.traversal import in_order, substitute, transform


def eliminate_dead_state(roots: Sequence[Instruction]) -> list[Instruction]:
    """Equal ``roots``. Nested loops are processed with their own graphs."""
    while True:
        made = _once(roots)
        # Results that one loop needs no longer may be dead in an earlier one.
        if all(a is b for a, b in zip(made, roots, strict=True)):
            return made
        roots = made


def _once(roots: Sequence[Instruction]) -> list[Instruction]:
    used = _used(roots)
    shorter: dict[Instruction, tuple[Instruction, list[int]]] = {}

    def visit(instruction: Instruction, operands: tuple[Instruction, ...]) -> Instruction | None:
        if instruction.op is GET_TUPLE_ELEMENT and operands[0] in shorter:
            loop, kept = shorter[operands[0]]
            return get_tuple_element(loop, kept.index(instruction.attributes["index"]))
        if instruction not in used:
            return None
        needed = _needed(instruction, used[instruction])
        if needed is None or len(needed) == len(operands[0].operands):
            return None
        made = _shortened(instruction, operands[0], needed)
        shorter[made] = made, needed
        return made

    return transform(roots, visit) if used else list(roots)


def _used(roots: Sequence[Instruction]) -> dict[Instruction, set[int]]:
    """The live state elements of each loop whose result is only read by GetTupleElement."""
    return live_elements(
        roots,
        lambda i: i.op is WHILE and i.operands[0].op is TUPLE and not i.has_effect,
    )


def _needed(loop: Instruction, asked: set[int]) -> list[int] | None:
    """The state elements that are needed; None if that is unknown."""
    condition, body = loop.attributes["condition"], loop.attributes["body"]
    if body.root.op is not TUPLE:
        return None
    reads = [_read([part], body) for part in body.root.operands]
    found = _read([condition.root], condition)
    if found is None or any(parts is None for parts in reads):
        return None
    found = found | asked
    while True:
        more = found.union(*(reads[n] or set() for n in found))
        if more == found:
            return sorted(found)
        found = more


def _read(roots: Sequence[Instruction], computation: Computation) -> set[int] | None:
    """The elements of the only parameter that ``roots`` read; None if it is read as a whole."""
    (state,) = computation.parameters
    found = set()
    for instruction in in_order(roots):
        if state in instruction.operands:
            if instruction.op is not GET_TUPLE_ELEMENT:
                return None
            found.add(instruction.attributes["index"])
    return None if state in roots else found


def _shortened(loop: Instruction, init: Instruction, kept: Sequence[int]) -> Instruction:
    shape = TupleShape(tuple(init.operands[n].shape for n in kept))

    def shorter(computation: Computation, root: Instruction) -> Computation:
        (old,) = computation.parameters
        new = parameter(0, shape)
        parts = {
            i: get_tuple_element(new, kept.index(i.attributes["index"]))
            for i in in_order([root])
            if i.op is GET_TUPLE_ELEMENT and i.operands[0] is old
        }
        return Computation(computation.name, (new,), substitute([root], parts)[0])

    condition, body = loop.attributes["condition"], loop.attributes["body"]
    return while_(
        shorter(condition, condition.root),
        shorter(body, tuple_([body.root.operands[n] for n in kept])),
        tuple_([init.operands[n] for n in kept]),
    )
