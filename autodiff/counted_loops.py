"""While loops whose number of steps can be told from their text, as Scans.

A counter begins at a constant, grows by a constant and is compared with a constant: as
`fori_loop` makes them. The derivative of such a loop keeps what the way back needs of every step.
"""

from __future__ import annotations

import math

import numpy as np

from tracejit.autodiff.leaves import assembled, leaves
from tracejit.graph import Computation, Instruction
from tracejit.ops.comparison import COMPARE
from tracejit.ops.constants import CONSTANT, TUPLE, parameter, tuple_
from tracejit.ops.elementwise import ADD, SUB
from tracejit.ops.scanning import scan
from tracejit.shapes import Shape
from tracejit.traversal import substitute

_SWAPPED = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "NE": "NE", "EQ": "EQ"}


def as_scan(loop: Instruction, nbytes: int) -> Instruction | None:
    """A Scan without outputs that makes the leaves of the loop's result.

    None where the number of steps is not known, is zero, or so great that keeping all states takes
    more than ``nbytes``.
    """
    condition, body = loop.computations
    if condition.root.reaches_effect or body.root.reaches_effect:
        return None
    (operand,) = loop.operands
    if operand.op is not TUPLE:
        return None
    init = leaves(operand)
    if not all(isinstance(leaf.shape, Shape) and not leaf.shape.is_dynamic for leaf in init):
        return None
    state = [parameter(n, leaf.shape) for n, leaf in enumerate(init)]
    whole = assembled(loop.shape, iter(state))
    (test,) = substitute([condition.root], {condition.parameters[0]: whole})
    (root,) = substitute([body.root], {body.parameters[0]: whole})
    following = leaves(root)
    fixed = {s: value for s, value, new in zip(state, init, following, strict=True) if s is new}
    count = _count(test, state, following, init, fixed)
    moving = sum(s.array_shape.nbytes for s in state if s not in fixed)
    if not count or count * moving > nbytes:
        return None
    return scan([], init, Computation(body.name, tuple(state), tuple_(following)), length=count)


def _count(
    test: Instruction,
    state: list[Instruction],
    following: list[Instruction],
    init: list[Instruction],
    fixed: dict[Instruction, Instruction],
) -> int | None:
    """How often ``test`` holds."""

    def known(number: Instruction) -> int | None:
        number = fixed.get(number, number)
        if number.op is not CONSTANT or not number.array_shape.element_type.is_integral:
            return None
        return int(number.attributes["literal"]) if not number.array_shape.rank else None

    if test.op is not COMPARE:
        return None
    direction = test.attributes["direction"]
    counter, end = test.operands
    if counter not in state or counter in fixed:
        counter, end, direction = end, counter, _SWAPPED[direction]
    if counter not in state or counter in fixed:
        return None
    place = state.index(counter)
    grown = following[place]
    if grown.op not in (ADD, SUB) or counter not in grown.operands:
        return None
    (other,) = [o for o in grown.operands if o is not counter] or [counter]
    start, stop, step = known(init[place]), known(end), known(other)
    if start is None or stop is None or not step:
        return None
    if grown.op is SUB:
        if grown.operands[0] is not counter:
            return None
        step = -step
    count = _steps(direction, start, stop, step)
    limits = np.iinfo(counter.array_shape.dtype)
    if count is None or not limits.min <= start + count * step <= limits.max:
        return None
    return count


def _steps(direction: str, start: int, stop: int, step: int) -> int | None:
    """How many numbers there are from ``start`` on that compare so with ``stop``."""
    if direction == "NE":
        apart = stop - start
        return apart // step if apart % step == 0 and apart // step >= 0 else None
    if direction in ("LE", "GE"):
        stop += int(math.copysign(1, step))
    forwards = direction in ("LT", "LE")
    return len(range(start, stop, step)) if direction != "EQ" and forwards == (step > 0) else None
