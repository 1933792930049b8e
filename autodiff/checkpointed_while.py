"""The derivative of a While whose number of steps is known only while running.

The way back needs the state before every step. Of these at most K are kept: a loop like the first
one stores every s-th, s = 1; when K are full it throws away every second one and doubles s. So
after N steps there are between K/2 and K, evenly spaced, whatever N was. On the way back one
stretch of s steps after the other, the last first, is run again from what was kept at its start,
keeping up to K of its states in the same manner, and then differentiated step by step, backwards.

With two times K states in memory, each step is computed three times (forward, to store, to
differentiate) as long as N <= K * K / 2; beyond that a step back runs about N / K**2 steps again.
K follows from the memory budget.

Of a state of few numbers the Jacobian is carried along instead; see `small_loops`. Where the number
of steps is known, and all states fit into the budget, they are kept; see `counted_loops`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracejit.autodiff.budget import current_budget
from tracejit.autodiff.jacobian_loop import Carried, is_small
from tracejit.autodiff.leaves import assembled, flat, leaves, nested, wanted_leaves
from tracejit.autodiff.reverse import (
    Cotangent,
    Nested,
    pullback,
    zero_cotangent,
)
from tracejit.errors import DerivativeError
from tracejit.graph import Instruction
from tracejit.ops import elementwise
from tracejit.ops.comparison import eq, lt
from tracejit.ops.constants import CONSTANT, constant, parameter
from tracejit.ops.elementwise import add, select, sub
from tracejit.ops.layout import (
    concatenate,
    dynamic_slice,
    dynamic_update_slice,
    full,
    reshape,
    slice_in_dim,
)
from tracejit.ops.loops import loop
from tracejit.shapes import ElementType
from tracejit.traversal import substitute

MOST_SLOTS = 256

Values = Sequence[Instruction]
Kept = Callable[[Sequence[Cotangent], int], Sequence[Cotangent] | None]


def while_cotangent(instruction: Instruction, cotangent: Nested, kept: Kept) -> Nested:
    """The cotangent of the loop's operand.

    ``kept(cotangents of the state at last, bytes)`` makes those of the state at first where all
    states can be kept in that number of bytes, and None elsewhere.
    """
    return _Reversed(instruction).cotangent(cotangent, kept)


_OneBack = Callable[[Values, Values, Values], list[Instruction]]
"""From varying parts, fixed parts and cotangents after a step to the cotangents before it."""


def _number(value: int) -> Instruction:
    return constant(value, ElementType.S64)


def _ceil_div(lhs: Instruction, rhs: Instruction) -> Instruction:
    """lhs / rhs, rounded up; both at least 0, rhs above."""
    return elementwise.div(add(lhs, sub(rhs, _number(1))), rhs)


def _apart(values: Values, first: int, second: int) -> tuple[Values, Values, Values]:
    """The values in three parts, the first two of these lengths."""
    return values[:first], values[first : first + second], values[first + second :]


def _starts(buffer: Instruction, place: Instruction) -> list[Instruction]:
    return [place, *[_number(0)] * (buffer.array_shape.rank - 1)]


def _row(buffer: Instruction, place: Instruction) -> Instruction:
    sizes = buffer.array_shape.dimensions
    return reshape(dynamic_slice(buffer, _starts(buffer, place), (1, *sizes[1:])), sizes[1:])


def _stored(
    buffers: Values, values: Values, number: Instruction, apart: Instruction
) -> list[Instruction]:
    """The buffers with ``values`` in the row for step ``number``, if it is one to keep."""
    slot = elementwise.div(number, apart)
    is_kept = eq(elementwise.mul(slot, apart), number)
    made = []
    for buffer, value in zip(buffers, values, strict=True):
        row = select(is_kept, value, _row(buffer, slot))
        whole = reshape(row, (1, *row.array_shape.dimensions))
        made.append(dynamic_update_slice(buffer, whole, _starts(buffer, slot)))
    return made


def _every_second(buffer: Instruction) -> Instruction:
    """Rows 0, 2, 4 … in front, the last half of the buffer as it was."""
    count = buffer.array_shape.dimensions[0]
    front = slice_in_dim(buffer, 0, count, 2, 0)
    return concatenate([front, slice_in_dim(buffer, count // 2, count, 1, 0)], 0)


class _Reversed:
    """A loop taken apart: ``varying`` places in the state that a step changes, and the others."""

    def __init__(self, instruction: Instruction) -> None:
        self.instruction = instruction
        condition, body = instruction.computations
        self.shape = instruction.shape
        (init,) = instruction.operands
        self.init = leaves(init)
        self.state = [parameter(n, leaf.shape) for n, leaf in enumerate(self.init)]
        whole = assembled(self.shape, iter(self.state))
        (root,) = substitute([body.root], {body.parameters[0]: whole})
        self.next = leaves(root)
        (self.test,) = substitute([condition.root], {condition.parameters[0]: whole})
        self.varying = [n for n, s in enumerate(self.state) if self.next[n] is not s]
        self.fixed = [n for n, s in enumerate(self.state) if self.next[n] is s]
        if body.root.reaches_effect or condition.root.reaches_effect:
            raise DerivativeError(
                "while: has no derivative here, because computing it would repeat the side effect "
                "of an op that it calls",
                instruction.source,
            )
        self.slots = self._slots()
        # The cotangent of a part that no step changes goes nowhere else.
        self.wanted = wanted_leaves(init)
        pairs = zip(self.wanted, self.state, self.next, strict=True)
        self.asked = [s for wanted, s, after in pairs if wanted or s is not after]
        self._back_steps: dict[tuple[bool, ...], tuple[list[Cotangent], list[Cotangent]]] = {}

    def _slots(self) -> int:
        nbytes = sum(self.state[n].array_shape.nbytes for n in self.varying)
        fitting = current_budget() // (2 * max(nbytes, 1))
        return max(2, min(fitting, MOST_SLOTS) // 2 * 2)

    def cotangent(self, cotangent: Nested, kept: Kept) -> Nested:
        arriving = flat(self.shape, cotangent)
        active = self._active(arriving)
        if not any(active):
            return None
        carried = self._carried(active)
        found: Sequence[Cotangent] | None
        found = carried.cotangents(arriving) if carried else kept(arriving, current_budget())
        if found is None:
            found = self._way_back(arriving, active)
        return nested(self.shape, iter(found))

    def _carried(self, active: Sequence[bool]) -> Carried | None:
        """The loop with its Jacobian, where the state has few numbers."""
        after, before = self._back_step(active)
        moving = [n for n in self.varying if after[n] is not None]
        fixed = [n for n in self.fixed if active[n] and before[n] is not None]
        # State that begins as a constant, or as an inactive value, needs no derivative.
        begun = [n for n in moving if self.wanted[n] and self.init[n].op is not CONSTANT]
        columns = [*begun, *fixed]
        if not is_small([*self.next, self.test], self.state, moving, columns):
            return None
        return Carried(self.state, self.next, self.test, self.init, moving, columns)

    def _active(self, arriving: Sequence[Cotangent]) -> list[bool]:
        """Which parts of the state have a cotangent at some step."""
        active = [
            c is not None and s in self.asked for c, s in zip(arriving, self.state, strict=True)
        ]
        while True:
            results = self._back_step(active)[1]
            found = [a or r is not None for a, r in zip(active, results, strict=True)]
            if found == active:
                return found
            active = found

    def _back_step(self, active: Sequence[bool]) -> tuple[list[Cotangent], list[Cotangent]]:
        """Parameters for the cotangents after a step, and the cotangents before it.

        For fixed parts, only the step's increment.
        """
        known = self._back_steps.get(tuple(active))
        if known is not None:
            return known
        after: list[Cotangent] = [
            parameter(0, s.shape) if active[n] and s is not self.next[n] else None
            for n, s in enumerate(self.state)
        ]
        outputs = [self.next[n] for n in self.varying]
        found = pullback(outputs, self.asked, [after[n] for n in self.varying])
        of_asked = dict(zip(self.asked, found, strict=True))
        made = after, [of_asked.get(s) for s in self.state]
        self._back_steps[tuple(active)] = made
        return made

    # The parts of the state as they pass through loops: varying ones first, then the fixed.

    def _stepped(self, varying: Values, fixed: Values) -> list[Instruction]:
        """The varying parts after one more step."""
        return substitute([self.next[n] for n in self.varying], self._known(varying, fixed))

    def _known(self, varying: Values, fixed: Values) -> dict[Instruction, Instruction]:
        places = [*self.varying, *self.fixed]
        return {self.state[n]: v for n, v in zip(places, [*varying, *fixed], strict=True)}

    def _buffers(self) -> list[Instruction]:
        shapes = [self.state[n].array_shape for n in self.varying]
        return [full(s.with_dimensions((self.slots, *s.dimensions)), 0) for s in shapes]

    def _recorded(self) -> tuple[list[Instruction], Instruction, Instruction]:
        """The kept states, how many steps there were, and how many steps apart they are."""
        v = len(self.varying)

        def go_on(*state: Instruction) -> Instruction:
            values, fixed = state[2 + v : 2 + 2 * v], state[2 + 2 * v :]
            return substitute([self.test], self._known(values, fixed))[0]

        def fits(*state: Instruction) -> Instruction:
            room = lt(state[0], elementwise.mul(_number(self.slots), state[1]))
            return elementwise.and_(go_on(*state), room)

        def store(*state: Instruction) -> list[Instruction]:
            count, apart = state[:2]
            kept, values, fixed = _apart(state[2:], v, v)
            return [
                add(count, _number(1)),
                apart,
                *_stored(kept, values, count, apart),
                *self._stepped(values, fixed),
                *fixed,
            ]

        def thin(*state: Instruction) -> list[Instruction]:
            after = loop("stretch", state, fits, store)
            count, apart, kept = after[0], after[1], after[2 : 2 + v]
            is_full = eq(count, elementwise.mul(_number(self.slots), apart))
            halves = [_every_second(buffer) for buffer in kept]
            kept = [select(is_full, half, one) for half, one in zip(halves, kept, strict=True)]
            apart = select(is_full, add(apart, apart), apart)
            return [count, apart, *kept, *after[2 + v :]]

        init = [self.init[n] for n in (*self.varying, *self.fixed)]
        made = loop("kept_states", [_number(0), _number(1), *self._buffers(), *init], go_on, thin)
        return made[2 : 2 + v], made[0], made[1]

    def _zero(self, n: int) -> Instruction:
        return zero_cotangent(self.state[n].array_shape)

    def _way_back(self, seeds: Sequence[Cotangent], active: Sequence[bool]) -> list[Cotangent]:
        """The cotangents of all parts of the state at first, given those at last."""
        kept, count, apart = self._recorded()
        after, before = self._back_step(active)
        moving = [n for n in self.varying if after[n] is not None]
        gathering = [n for n in self.fixed if active[n] and before[n] is not None]
        v, m, g = len(self.varying), len(moving), len(gathering)
        fixed = [self.init[n] for n in self.fixed]
        cotangents = [seeds[n] or self._zero(n) for n in (*moving, *gathering)]

        def one_back(
            values: Values,
            held: Values,
            arriving: Values,
        ) -> list[Instruction]:
            standing = [p for p in after if p is not None]
            known = self._known(values, held) | dict(zip(standing, arriving, strict=False))
            made = substitute([before[n] or self._zero(n) for n in (*moving, *gathering)], known)
            sums = [add(a, c) for a, c in zip(arriving[m:], made[m:], strict=True)]
            return [*made[:m], *sums]

        # (stretch number, count, apart, kept, cotangents, fixed)
        def stretches_left(*state: Instruction) -> Instruction:
            return lt(_number(0), state[0])

        def stretch(*state: Instruction) -> list[Instruction]:
            number, steps, distance = sub(state[0], _number(1)), state[1], state[2]
            states, arriving, held = _apart(state[3:], v, m + g)
            first = elementwise.mul(number, distance)
            length = elementwise.min(distance, sub(steps, first))
            skip = elementwise.max(_ceil_div(length, _number(self.slots)), _number(1))
            inner = self._filled([_row(b, number) for b in states], held, length, skip)
            arriving = self._swept(inner, held, arriving, length, skip, one_back)
            return [number, steps, distance, *states, *arriving, *held]

        made = loop(
            "stretches_back",
            [_ceil_div(count, apart), count, apart, *kept, *cotangents, *fixed],
            stretches_left,
            stretch,
        )
        found = dict(zip((*moving, *gathering), made[3 + v : 3 + v + m + g], strict=True))
        return [found.get(n, seeds[n]) for n in range(len(self.state))]

    def _filled(
        self,
        values: Values,
        fixed: Values,
        length: Instruction,
        skip: Instruction,
    ) -> list[Instruction]:
        """The states of one stretch, every ``skip``-th."""
        v = len(values)

        def more(*state: Instruction) -> Instruction:
            return lt(state[0], state[1])

        def step(*state: Instruction) -> list[Instruction]:
            number, end, apart = state[:3]
            kept, now, held = _apart(state[3:], v, v)
            return [
                add(number, _number(1)),
                end,
                apart,
                *_stored(kept, now, number, apart),
                *self._stepped(now, held),
                *held,
            ]

        init = [_number(0), length, skip, *self._buffers(), *values, *fixed]
        return loop("stretch_again", init, more, step)[3 : 3 + v]

    def _swept(
        self,
        kept: Values,
        fixed: Values,
        arriving: Values,
        length: Instruction,
        skip: Instruction,
        one_back: _OneBack,
    ) -> list[Instruction]:
        """The cotangents before one stretch, from those after it."""
        v, c = len(kept), len(arriving)

        def more(*state: Instruction) -> Instruction:
            return lt(_number(0), state[0])

        def step(*state: Instruction) -> list[Instruction]:
            number, apart = sub(state[0], _number(1)), state[1]
            states, cotangents, held = _apart(state[2:], v, c)
            slot = elementwise.div(number, apart)
            values = [_row(buffer, slot) for buffer in states]
            ahead = sub(number, elementwise.mul(slot, apart))
            values = self._advanced(values, held, ahead)
            return [number, apart, *states, *one_back(values, held, cotangents), *held]

        return loop("steps_back", [length, skip, *kept, *arriving, *fixed], more, step)[
            2 + v : 2 + v + c
        ]

    def _advanced(self, values: Values, fixed: Values, steps: Instruction) -> list[Instruction]:
        """The varying parts after some more steps."""
        v = len(values)

        def more(*state: Instruction) -> Instruction:
            return lt(_number(0), state[0])

        def step(*state: Instruction) -> list[Instruction]:
            now, held = state[1 : 1 + v], state[1 + v :]
            return [sub(state[0], _number(1)), *self._stepped(now, held), *held]

        return loop("steps_ahead", [steps, *values, *fixed], more, step)[1 : 1 + v]
