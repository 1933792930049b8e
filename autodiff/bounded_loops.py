"""The derivative of a While with a bounded trip count: it keeps the values for the reverse pass.

A loop inside of another one, whose limits are the other's counter, as the loops over a triangle
are: how many steps it takes differs, how many at most is known (see `ranges`). It is treated like
a Scan of that many steps, but that both loops, forth and back, end where this one ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracejit.autodiff.intervals import is_moving, times
from tracejit.autodiff.reverse import Cotangent
from tracejit.autodiff.rules.scanning import Pair, Reversed, small_parts
from tracejit.autodiff.trip_count import CountedWhile, Counter, most_steps
from tracejit.graph import Instruction
from tracejit.ops.comparison import gt
from tracejit.ops.constants import constant, elements_of, iota, tuple_
from tracejit.ops.control import optimization_barrier
from tracejit.ops.element_types import convert_element_type
from tracejit.ops.elementwise import add, div, max, mul, sub
from tracejit.ops.layout import (
    broadcast_in_dim,
    dynamic_slice,
    dynamic_update_slice,
    full,
    reshape,
)
from tracejit.ops.loops import loop
from tracejit.shapes import ElementType, Shape
from tracejit.traversal import in_order, substitute


def bounded_cotangents(
    counted: CountedWhile, arriving: Sequence[Cotangent], nbytes: int
) -> list[Cotangent] | None:
    """The cotangents of the leaves of a loop's state at first, given those at last.

    None where it is not known how many steps there are at most, or where what is kept takes more
    than ``nbytes``.
    """
    most = most_steps(counted.counter)
    if not most:
        return None
    reverse = _Bounded(counted, most, arriving, nbytes)
    found = reverse.cotangents()
    return None if reverse.is_too_large else found[len(found) - len(arriving) :]


class _Bounded(Reversed):
    def __init__(
        self, counted: CountedWhile, most: int, arriving: Sequence[Cotangent], nbytes: int
    ) -> None:
        # The Scan is never run: it says what a step is.
        super().__init__(counted.scan(most), arriving)
        self.counted = counted
        self.nbytes = nbytes
        self.is_too_large = False
        self.times_around = times()

    @property
    def counter(self) -> Counter:
        return self.counted.counter

    def _times(self) -> int:
        """What is too much for the loops around is computed again: see `_rows`."""
        return self.length

    def _divided(self, wanted: Sequence[Instruction]) -> Sequence[Instruction]:
        """Arrays that are others in each step of the loops around, which would keep them whole."""
        forward = in_order(self.next)
        fixed = zip(self.carries, self.next, self.inits, strict=True)
        found = []
        for carry in (c for c, after, init in fixed if c is after and is_moving(init)):
            parts = small_parts(wanted, [carry], forward)
            size = self.length * sum(part.array_shape.nbytes for part in parts)
            if size < carry.array_shape.nbytes:
                found.append(carry)
        return found

    def _history(self, kept: Sequence[Instruction]) -> Iterator[Instruction]:
        number = self.carries[self.counter.place]
        others = [value for value in kept if value is not number]
        arrays = iter(self._rows(others))
        return iter([self._numbers() if v is number else next(arrays) for v in kept])

    def _numbers(self) -> Instruction:
        """The counter of every step."""
        start, shape = self.counter.start, Shape(ElementType.S64, (self.length,))
        grown = mul(iota(shape), full(shape, self.counter.step))
        whole = shape.with_element_type(start.array_shape.element_type)
        return add(
            broadcast_in_dim(start, whole.dimensions, ()),
            convert_element_type(grown, whole.element_type),
        )

    def _rows(self, kept: Sequence[Instruction]) -> Sequence[Instruction]:
        """What each of these values was at every step; zero behind the last one."""
        shapes = [value.array_shape for value in kept]
        arrays = [full(s.with_dimensions((self.length, *s.dimensions)), 0) for s in shapes]
        size = sum(array.array_shape.nbytes for array in arrays)
        self.is_too_large |= size > self.nbytes
        if not kept:
            return []
        inits = list(self.inits)
        if size * self.times_around > self.nbytes:
            # The loops around would keep all of this for each of their steps.
            inits = list(elements_of(optimization_barrier(tuple_(inits))))
        count = len(kept)

        def goes_on(number: Instruction, *state: Instruction) -> Instruction:
            known = dict(zip(self.counted.state, state[count:], strict=True))
            return substitute([self.counted.test], known)[0]

        def turn(number: Instruction, *state: Instruction) -> list[Instruction]:
            known = dict(zip(self.carries, state[count:], strict=True))
            made = substitute([*kept, *self.next], known)
            rows = zip(state[:count], made[:count], strict=True)
            stored = [_with_row(array, number, value) for array, value in rows]
            return [add(number, _whole(1)), *stored, *made[count:]]

        made = loop(f"{self.step.name}_kept", [_whole(0), *arrays, *inits], goes_on, turn)
        return made[1 : 1 + count]

    def _steps(self) -> Instruction:
        """How many steps there are."""
        start, stop = self.counter.start, self.counter.stop
        start, stop = (convert_element_type(one, ElementType.S64) for one in (start, stop))
        apart, step = (sub(stop, start), self.counter.step)
        if step < 0:
            apart, step = sub(start, stop), -step
        rounding = step if self.counter.direction in ("LE", "GE") else step - 1
        return max(div(add(apart, _whole(rounding)), _whole(step)), _whole(0))

    def _backwards(
        self, inputs: Sequence[Pair], states: Sequence[Pair], root: Instruction
    ) -> Sequence[Instruction]:
        count = len(states)

        def is_left(number: Instruction, *state: Instruction) -> Instruction:
            return gt(number, _whole(0))

        def turn(number: Instruction, *state: Instruction) -> list[Instruction]:
            before = sub(number, _whole(1))
            known = {p: value for (p, _), value in zip(states, state[:count], strict=True)}
            for (p, _), array in zip(inputs, state[count:], strict=True):
                known[p] = _row(array, before)
            (made,) = substitute([root], known)
            return [before, *elements_of(made), *state[count:]]

        init = [self._steps(), *[value for _, value in states], *[array for _, array in inputs]]
        return loop(f"{self.step.name}_gradient", init, is_left, turn)[1 : 1 + count]


def _whole(value: int) -> Instruction:
    return constant(value, ElementType.S64)


def _starts(array: Instruction, place: Instruction) -> list[Instruction]:
    return [place, *[_whole(0)] * (array.array_shape.rank - 1)]


def _row(array: Instruction, place: Instruction) -> Instruction:
    sizes = array.array_shape.dimensions
    return reshape(dynamic_slice(array, _starts(array, place), (1, *sizes[1:])), sizes[1:])


def _with_row(array: Instruction, place: Instruction, value: Instruction) -> Instruction:
    row = reshape(value, (1, *value.array_shape.dimensions))
    return dynamic_update_slice(array, row, _starts(array, place))
