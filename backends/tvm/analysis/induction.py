"""Induction variables: recognises While loops that count by one between affine bounds.

    counted_loop(loop, init)    the induction variable and bounds of a loop, or None
    constant_counter(loop)      the counter of a loop whose bounds are constants, or None
    trip_count(loop)            the number of iterations, if the bounds are constants, or None

If an iteration's indices are affine in counters, its reads and writes can be compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from tracejit.affine import Affine
from tracejit.graph import Computation, Instruction
from tracejit.ops.comparison import COMPARE
from tracejit.ops.constants import CONSTANT, GET_TUPLE_ELEMENT, TUPLE, constant, elements_of
from tracejit.ops.element_types import CONVERT_ELEMENT_TYPE
from tracejit.ops.elementwise import ADD, SELECT, add, mul
from tracejit.shapes import ElementType, Shape
from tracejit.trace.affine_bounds import affine, counting, decided, least
from tracejit.traversal import in_order

_HALF = 1 << 31


@dataclass(frozen=True)
class CountedLoop:
    """A loop whose state element ``counter`` counts up (``step`` 1) or down (-1).

    ``low`` and ``high`` are its least and greatest value in an iteration: if ``high`` is less
    there is no iteration. ``init`` are the state elements before the loop, ``parts`` the ones at
    the beginning of an iteration, ``made`` those at its end.
    """

    body: Computation
    init: Sequence[Instruction]
    parts: Sequence[Instruction]
    made: Sequence[Instruction]
    counter: int
    step: int
    low: Affine
    high: Affine

    @property
    def number(self) -> Instruction:
        """The counter at the beginning of an iteration."""
        return self.parts[self.counter]

    @property
    def place(self) -> Affine:
        """The counter as an index."""
        return Affine.of(self.number)

    def is_kept(self, part: int) -> bool:
        """Whether a state element is loop-invariant."""
        return self.made[part] is self.parts[part]

    @contextmanager
    def known(self) -> Iterator[None]:
        """A context in which the bounds of numbers in the body are known, and there is an
        iteration.
        """
        with ExitStack() as stack:
            for number, part in enumerate(self.parts):
                value = affine(self.init[number]) if self.is_kept(number) else None
                if value is not None and _is_number(part):
                    stack.enter_context(counting(part, value, value))
            stack.enter_context(counting(self.number, self.low, self.high))
            yield

    def outside(self, value: Affine) -> Instruction:
        """A sum of outer counters and invariant state, computed before the loop."""
        before = dict(zip(self.parts, self.init, strict=True))
        total = constant(value.constant, ElementType.S64)
        for leaf, by in value.terms.items():
            term = before.get(leaf, leaf)
            total = add(total, term if by == 1 else mul(term, constant(by, ElementType.S64)))
        return total


def counted_loop(loop: Instruction, operands: Sequence[Instruction]) -> CountedLoop | None:
    """A While without side effects as a counted loop; None if it is not one.

    Its body reads each state element by one GetTupleElement, as canonicalised bodies do.
    """
    condition, body = loop.attributes["condition"], loop.attributes["body"]
    init = elements_of(operands[0])
    if body.root.op is not TUPLE or condition.root.op is not COMPARE:
        return None
    parts: list[Instruction | None] = [None] * len(init)
    for instruction in in_order([body.root]):
        if body.parameters[0] in instruction.operands:
            index = instruction.attributes["index"] if _is_element(instruction) else None
            if index is None or parts[index] is not None:
                return None
            parts[index] = instruction
    left, right = condition.root.operands
    counter = _part_of(left, condition)
    if counter is None or parts[counter] is None or not _is_number(left):
        return None
    made = body.root.operands
    step = _step(made[counter], parts[counter])
    whole = elements_of(body.parameters[0])
    found = [part or whole[n] for n, part in enumerate(parts)]
    limit = _limit(right, condition, init, found, made)
    start = affine(init[counter])
    direction = condition.root.attributes["direction"]
    if start is None or limit is None or (step, direction) not in _INCLUSIVE:
        return None
    # The last counter value that an iteration may see.
    last = limit + _INCLUSIVE[step, direction]
    low, high = (start, last) if step > 0 else (last, start)
    return CountedLoop(body, init, found, made, counter, step, low, high)


_INCLUSIVE = {(1, "LT"): -1, (1, "LE"): 0, (-1, "GT"): 1, (-1, "GE"): 0}


@dataclass(frozen=True)
class Counter:
    """The element ``number`` of a loop's state: ``first``, then ``step`` more in each of ``count``
    iterations.
    """

    number: int
    first: int
    step: int
    count: int

    def at(self, iteration: int) -> int:
        """The counter at the beginning of an iteration."""
        return self.first + self.step * iteration


def constant_counter(loop: Instruction) -> Counter | None:
    """The counter of a While with constant bounds; None if they are unknown."""
    condition, body = loop.attributes["condition"], loop.attributes["body"]
    if condition.root.op is not COMPARE or body.root.op is not TUPLE:
        return None
    left, right = condition.root.operands
    counter = _part_of(left, condition)
    if counter is None or loop.operands[0].op is not TUPLE:
        return None
    made = body.root.operands[counter]
    given = [o for o in made.operands if _part_of(o, body) == counter]
    init = loop.operands[0].operands[counter]
    direction = condition.root.attributes["direction"]
    if not given or any(i.op is not CONSTANT or i.array_shape.rank for i in (init, right)):
        return None
    step = _step(made, given[0])
    if not init.array_shape.element_type.is_integral or (step, direction) not in _INCLUSIVE:
        return None
    first, limit = (int(i.attributes["literal"]) for i in (init, right))
    count = len(range(first, limit + _INCLUSIVE[step, direction] + step, step))
    return Counter(counter, first, step, count)


def trip_count(loop: Instruction) -> int | None:
    """The number of iterations of a While with constant bounds; None if unknown."""
    counter = constant_counter(loop)
    return None if counter is None else counter.count


def _is_number(value: Instruction) -> bool:
    return value.shape == Shape(ElementType.S64)


def _is_element(instruction: Instruction) -> bool:
    return instruction.op is GET_TUPLE_ELEMENT


def _part_of(value: Instruction, computation: Computation) -> int | None:
    """The state element that a value is, or None."""
    if not _is_element(value) or value.operands[0] is not computation.parameters[0]:
        return None
    number: int = value.attributes["index"]
    return number


def _step(made: Instruction, given: Instruction | None) -> int:
    """The increment of the counter; 0 if it is not a known number."""
    if made.op is not ADD or given not in made.operands:
        return 0
    by = made.operands[1 - made.operands.index(given)]
    return int(by.attributes["literal"]) if by.op is CONSTANT else 0


def _limit(
    value: Instruction,
    condition: Computation,
    init: Sequence[Instruction],
    parts: Sequence[Instruction],
    made: Sequence[Instruction],
) -> Affine | None:
    """The bound that the counter is compared with, if it is loop-invariant."""
    if value.op is CONSTANT:
        return affine(value)
    number = _part_of(value, condition)
    if number is not None:
        return affine(init[number]) if made[number] is parts[number] else None
    if value.op is not ADD or value.operands[1].op is not CONSTANT:
        return None
    inner = _limit(value.operands[0], condition, init, parts, made)
    by = affine(value.operands[1])
    return None if inner is None or by is None else inner + by


def place_of(value: Instruction) -> Affine | None:
    """A number as an affine index, also if it is converted, or counted from the end of an array."""
    while True:
        if value.op is CONVERT_ELEMENT_TYPE:
            (inner,) = value.operands
            made = affine(inner)
            if made is None or value.array_shape.element_type is not ElementType.S32:
                return None
            low, room = least(made + _HALF), least(Affine(_HALF - 1) - made)
            fits = low is not None and room is not None and low >= 0 <= room
            return made if fits else None
        choice = decided(value.operands[0]) if value.op is SELECT else None
        if choice is None:
            break
        value = value.operands[1 if choice else 2]
    if value.op is CONSTANT and value.array_shape.element_type is ElementType.S32:
        return Affine(int(value.attributes["literal"]))
    return affine(value)
