"""While loops over several arrays, written as functions of instructions.

loop("double", [x, limit], lambda x, limit: lt(x, limit), lambda x, limit: [add(x, x), limit])
counted("sum", 10, [total], lambda i, total: ([add(total, i)], ()))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tracejit.graph import Computation, Instruction
from tracejit.ops.comparison import lt
from tracejit.ops.constants import constant, elements_of, parameter, tuple_
from tracejit.ops.control import while_
from tracejit.ops.elementwise import add
from tracejit.shapes import ElementType
from tracejit.traversal import unreached

Values = Sequence[Instruction]
Turn = tuple[Values, Iterable[Instruction]]
"""What one turn of a loop makes: the next state, and the side effects that it has."""


def loop(
    name: str,
    init: Values,
    condition: Callable[..., Instruction],
    body: Callable[..., Values],
) -> list[Instruction]:
    """``init`` replaced by ``body(*state)`` while ``condition(*state)`` holds.

    Both see the state only: what they make of instructions from outside would not belong to the
    loop.
    """
    return _while(name, init, condition, lambda *state: (body(*state), ()))


def counted(name: str, count: int, init: Values, body: Callable[..., Turn]) -> list[Instruction]:
    """``init`` replaced ``count`` times by the values of ``body(number, *state)``.

    ``number`` counts from 0 in s32. The body returns the next state and its side effects, and sees
    nothing but the state.
    """

    def turn(number: Instruction, *state: Instruction) -> Turn:
        following, effects = body(number, *state)
        return [add(number, constant(1, ElementType.S32)), *following], effects

    _, *final = _while(
        name,
        [constant(0, ElementType.S32), *init],
        lambda number, *state: lt(number, constant(count, ElementType.S32)),
        turn,
    )
    return final


def _while(
    name: str,
    init: Values,
    condition: Callable[..., Instruction],
    body: Callable[..., Turn],
) -> list[Instruction]:
    start = tuple_(list(init))
    state = parameter(0, start.shape)
    test = Computation(f"{name}_condition", (state,), condition(*elements_of(state)))
    state = parameter(0, start.shape)
    following, effects = body(*elements_of(state))
    root = tuple_(list(following))
    step = Computation(f"{name}_body", (state,), root, unreached(root, effects))
    return list(elements_of(while_(test, step, start)))
