"""Python's integers that each step of a loop multiplies: they leave 64 bits within some 60 steps.

r = r * i          grows geometrically         a, b = b, a + b        so do both
s = s + i          does not                    h = (33 * h) % m       nor what is reduced

growing({"r": start}, {"r": end}) gives the names of those that grow and that nothing bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tracejit.graph import Instruction
from tracejit.ops.constants import CONSTANT
from tracejit.traversal import in_order

Growth = dict[str, int]
"""By which factor, at least, a value grows with each variable: 1, or `MANY`."""

MANY = 2
_SAME = frozenset({"broadcast", "copy", "negate", "reshape"})
_BOUNDING = frozenset(
    {"clamp", "compare", "dynamic-slice", "dynamic-update-slice", "gather", "maximum", "minimum"}
)
"""Operations whose operands, if they are compared or are places, some test or array bounds."""


def growing(
    starts: Mapping[str, Instruction],
    ends: Mapping[str, Instruction],
    others: Sequence[Instruction] = (),
) -> set[str]:
    """The variables that a step makes of themselves by multiplication, or by sums of several.

    ``starts`` are their values before a step, integers without dimensions, ``ends`` those after it,
    ``others`` what a step makes beside them. Not those that a step compares, or uses as a place in
    an array.
    """
    known: dict[Instruction, Growth] = {one: {name: 1} for name, one in starts.items()}
    bounded: set[str] = set()
    for at in in_order([*ends.values(), *others]):
        if at in known:
            continue
        of = [known.get(operand, {}) for operand in at.operands]
        if at.op.opcode in _BOUNDING:
            bounded.update(*of)
        known[at] = _grown(at, of)
    edges = {name: known.get(end, {}) for name, end in ends.items()}
    return {name for name in edges if _is_geometric(name, edges)} - bounded


def _grown(at: Instruction, of: list[Growth]) -> Growth:
    """How the result of an operation grows with the variables; not at all, as far as is known."""
    opcode = at.op.opcode
    if opcode in _SAME:
        return of[0]
    if opcode == "convert":
        return of[0] if at.array_shape.element_type.is_integral else {}
    if opcode == "select":
        return _merged(of[1:], max)
    if opcode in ("add", "subtract"):
        return _merged(of, lambda one, other: MANY)
    if opcode == "multiply" and any(map(_is_small, at.operands)):
        return _merged(of, max)
    if opcode in ("multiply", "shift-left", "power"):
        return dict.fromkeys(_merged(of, max), MANY)
    return {}


def _merged(of: list[Growth], join: Callable[[int, int], int]) -> Growth:
    made: Growth = {}
    for growth in of:
        for name, factor in growth.items():
            made[name] = join(made[name], factor) if name in made else factor
    return made


def _is_small(operand: Instruction) -> bool:
    """Whether a factor is 0, 1 or -1."""
    return operand.op is CONSTANT and bool(abs(operand.attributes["literal"]).max(initial=0) <= 1)


def _is_geometric(name: str, edges: Mapping[str, Growth]) -> bool:
    """Whether a variable is computed from itself in more than one way, or times a factor."""
    own = {one for one in edges if one in _behind(name, edges) and name in _behind(one, edges)}
    ways = [factor for one in own for other, factor in edges[one].items() if other in own]
    return len(ways) > len(own) or MANY in ways


def _behind(name: str, edges: Mapping[str, Growth]) -> set[str]:
    """The variables that one is made from, in one step or several."""
    found: set[str] = set()
    waiting = list(edges[name])
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting.extend(edges.get(one, ()))
    return found
