"""While loops over several arrays, written as functions of instructions.

loop("count", [zero, limit], lambda i, n: lt(i, n), lambda i, n: [add(i, one), n])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracejit.graph import Computation, Instruction
from tracejit.ops.constants import elements_of, parameter, tuple_
from tracejit.ops.control import while_

Values = Sequence[Instruction]


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
    start = tuple_(list(init))
    state = parameter(0, start.shape)
    test = Computation(f"{name}_condition", (state,), condition(*elements_of(state)))
    state = parameter(0, start.shape)
    step = Computation(f"{name}_body", (state,), tuple_(list(body(*elements_of(state)))))
    return list(elements_of(while_(test, step, start)))
