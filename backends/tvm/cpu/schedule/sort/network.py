"""Plans sorting networks in vector registers: compare-exchanges and the shuffles between them.

The network is Batcher's bitonic one: for k = 1, 2 … the elements of each block of 2**k are
compared across the block's middle, then at distances 2**(k - 2) … 1. Compared elements must be in
the same lane of two registers, so lanes are exchanged with registers: as late as possible, and
with the register whose elements are needed last.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Shuffle:
    """Replaces two registers by shuffles of their lanes; lanes of ``second`` follow those of
    ``first``.

    Without ``onto_second`` only the first register changes.
    """

    first: int
    second: int
    onto_first: tuple[int, ...]
    onto_second: tuple[int, ...] | None


@dataclass(frozen=True)
class Exchange:
    """The lesser of every lane goes to register ``lesser``, the greater to ``greater``."""

    lesser: int
    greater: int


NetworkStep = Shuffle | Exchange


@dataclass(frozen=True)
class Network:
    """The steps of a sort, and the block of the result that each register finally holds."""

    steps: tuple[NetworkStep, ...]
    order: tuple[int, ...]


@functools.cache
def network(registers: int, lanes: int) -> Network:
    """The network that sorts all elements of ``registers`` (2, 4, 8 …) of ``lanes``,
    in any order.
    """
    made = _Network(registers, lanes)
    return Network(tuple(made.steps), tuple(row[0] // lanes for row in made.places))


class _Network:
    """The state of the plan: ``places[register][lane]`` is the index of an element in
    the result.
    """

    def __init__(self, registers: int, lanes: int) -> None:
        self.lanes = lanes
        # The input is unordered: neighbours begin in the same lane of neighbouring registers.
        self.places = [
            [lane * registers + register for lane in range(lanes)] for register in range(registers)
        ]
        self.steps: list[NetworkStep] = []
        levels = (registers * lanes).bit_length() - 1
        turns = registers.bit_length() - 1
        # Maps each bit of a register's number to a bit of an element's number.
        self.held = list(range(turns))
        self.coming = [bit for level in range(levels) for bit in range(level, -1, -1)]
        for level in range(levels):
            self._compare(level, (2 << level) - 1)
            for bit in range(level - 1, -1, -1):
                self._compare(bit, 1 << bit)
        self._put_in_order()

    def _compare(self, bit: int, across: int) -> None:
        """Compare elements n and n ^ ``across``; ``bit`` is the highest bit of ``across``."""
        self.coming.pop(0)
        if self._is_mixed(bit):
            self._meet(bit, across)
        where = {
            number: (r, lane)
            for r, row in enumerate(self.places)
            for lane, number in enumerate(row)
        }
        for register, row in enumerate(self.places):
            if row[0] & (1 << bit):
                continue
            others = [where[number ^ across] for number in row]
            other = others[0][0]
            self._arrange(other, [lane for _, lane in others])
            self.steps.append(Exchange(register, other))

    def _arrange(self, register: int, order: Sequence[int]) -> None:
        """Permute the lanes of one register."""
        if list(order) == list(range(self.lanes)):
            return
        self.steps.append(Shuffle(register, register, tuple(order), None))
        row = self.places[register]
        self.places[register] = [row[lane] for lane in order]

    def _meet(self, bit: int, across: int) -> None:
        """Move compared elements to the same lane of different registers."""

        def wait(turn: int) -> int:
            held = self.held[turn]
            return self.coming.index(held) if held in self.coming else len(self.coming) + held

        turns = range(len(self.held))
        row = self.places[0]
        apart = next(r for r, other in enumerate(self.places) if row[0] ^ across in other)
        turn = max((t for t in turns if apart >> t & 1 or not apart), key=wait)
        self.held[turn] = bit
        for first in range(len(self.places)):
            if not first >> turn & 1:
                self._split(first, first ^ (apart or 1 << turn), bit, across)

    def _split(self, first: int, second: int, bit: int, across: int) -> None:
        """Move elements without ``bit`` to the first of two registers, their partners to the
        second.
        """
        both = [*self.places[first], *self.places[second]]
        where = {number: lane for lane, number in enumerate(both)}
        partners = [where[number ^ across] for number in both]
        # If a pair is in one register, its lanes take a pair of each register.
        inside = partners[0] if partners[0] < self.lanes else 0
        top = 1 << (inside.bit_length() - 1) if inside else 0
        low, high = [], []
        for lane in range(self.lanes):
            one = self.lanes + (lane ^ top) if lane & top else lane
            pair = (one, partners[one])
            lesser, greater = pair if not both[one] >> bit & 1 else pair[::-1]
            low.append(lesser)
            high.append(greater)
        self._shuffle(first, second, low, high)

    def _shuffle(self, first: int, second: int, low: Sequence[int], high: Sequence[int]) -> None:
        both = [*self.places[first], *self.places[second]]
        self.steps.append(Shuffle(first, second, tuple(low), tuple(high)))
        self.places[first] = [both[lane] for lane in low]
        self.places[second] = [both[lane] for lane in high]

    def _put_in_order(self) -> None:
        """Move element n to lane n % lanes; registers then hold a block of the result each."""
        across = self.lanes.bit_length() - 1
        while mixed := [h for h in range(across, across + len(self.held)) if self._is_mixed(h)]:
            bit = mixed[0]
            for turn in range(len(self.held)):
                if self._agree(turn):
                    break
            for first in range(len(self.places)):
                second = first | 1 << turn
                if first >> turn & 1:
                    continue
                both = [*self.places[first], *self.places[second]]
                order = sorted(range(2 * self.lanes), key=both.__getitem__)
                low = [lane for lane in order if not both[lane] >> bit & 1]
                high = [lane for lane in order if both[lane] >> bit & 1]
                self._shuffle(first, second, low, high)
        for register, row in enumerate(self.places):
            self._arrange(register, sorted(range(self.lanes), key=row.__getitem__))

    def _is_mixed(self, bit: int) -> bool:
        row = self.places[0]
        return any((number ^ row[0]) >> bit & 1 for number in row)

    def _agree(self, turn: int) -> bool:
        """Whether registers that differ in ``turn`` hold elements of the same blocks."""
        blocks = [{number // self.lanes for number in self.places[r]} for r in (0, 1 << turn)]
        return blocks[0] == blocks[1]
