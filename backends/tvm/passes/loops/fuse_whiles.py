"""Fuses While loops with equal iterations.

    while(i, x): f(x); while(i, x, dx): f(x), df(x, dx)        while(i, x, dx): f(x), df(x, dx)

A derivative carries a Jacobian through a loop like the first one. If the second loop's state
begins with the first one's whole state, it computes all its results, and the first is removed.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.backends.tvm.passes.canonicalize.canonicalize import canonicalize
from tracejit.graph import Computation, Instruction
from tracejit.ops.constants import GET_TUPLE_ELEMENT, TUPLE, get_tuple_element
from tracejit.ops.control import WHILE
from tracejit.traversal import in_order, rebuild, substitute


def fuse_whiles(roots: Sequence[Instruction]) -> list[Instruction]:
    """Equal ``roots`` in which no While is a part of another one.

    The operands of loops must be Tuple instructions.
    """
    hosts = _hosts(roots)
    if not hosts:
        return list(roots)
    # The remaining loop may have been created after users of the one that it replaces.
    replaced = {
        i: get_tuple_element(hosts[i.operands[0]], i.attributes["index"])
        for i in in_order(roots)
        if i.op is GET_TUPLE_ELEMENT and i.operands[0] in hosts
    }
    return _replaced(roots, replaced)


def _replaced(
    roots: Sequence[Instruction], replaced: dict[Instruction, Instruction]
) -> list[Instruction]:
    """``roots`` with each key replaced by its value, whichever was created first."""
    done: dict[Instruction, Instruction] = {}
    stack = list(roots)
    while stack:
        instruction = stack[-1]
        target = replaced.get(instruction, instruction)
        missing = [o for o in target.operands if o not in done]
        if missing and instruction not in done:
            stack.extend(missing)
            continue
        stack.pop()
        operands = [done[o] for o in target.operands]
        changed = any(a is not b for a, b in zip(operands, target.operands, strict=True))
        done.setdefault(instruction, rebuild(target, operands) if changed else target)
    return [done[root] for root in roots]


def _hosts(roots: Sequence[Instruction]) -> dict[Instruction, Instruction]:
    """Maps each loop to the loop that covers it."""
    order = in_order(roots)
    loops = [i for i in order if i.op is WHILE and not i.has_effect and _is_flat(i)]
    if len(loops) < 2:
        return {}
    whole = {o for i in order if i.op is not GET_TUPLE_ELEMENT for o in i.operands} | {*roots}
    hosts: dict[Instruction, Instruction] = {}
    for small in loops:
        for large in loops:
            if large is small or large in hosts or small in whole or not _covers(large, small):
                continue
            if small not in in_order([large]):
                hosts[small] = large
                break
    return hosts


def _is_flat(loop: Instruction) -> bool:
    return loop.operands[0].op is TUPLE and loop.attributes["body"].root.op is TUPLE


def _covers(large: Instruction, small: Instruction) -> bool:
    """Whether the first state elements of the larger loop are the smaller loop's state."""
    given, wanted = large.operands[0].operands, small.operands[0].operands
    count = len(wanted)
    if len(given) <= count or given[:count] != wanted:
        return False
    pairs = []
    for name in ("condition", "body"):
        theirs, own = large.attributes[name], small.attributes[name]
        pairs.append((_results(own, theirs, count), _roots(theirs)[:count]))
    same = [both for mine, other in pairs for both in zip(mine, other, strict=True)]
    simple = canonicalize([i for both in same for i in both])
    return all(a is b for a, b in zip(simple[::2], simple[1::2], strict=True))


def _roots(computation: Computation) -> Sequence[Instruction]:
    root = computation.root
    return root.operands if root.op is TUPLE else [root]


def _results(own: Computation, other: Computation, count: int) -> list[Instruction]:
    """The results of a computation, applied to the other's parameter."""
    (old,), (new,) = own.parameters, other.parameters
    roots = _roots(own)
    parts = {
        i: get_tuple_element(new, i.attributes["index"])
        for i in in_order(roots)
        if i.op is GET_TUPLE_ELEMENT and i.operands[0] is old
    }
    return substitute(roots, parts)
