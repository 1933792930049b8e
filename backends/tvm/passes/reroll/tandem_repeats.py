"""Finds tandem repeats in a graph: equal iterations, one after the other in order of creation.

Two instructions are alike if they have the same op and attributes, and their operands are one
iteration apart, or are loop-invariant, or are constants (of one shape, with any values).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracejit.attributes import attribute_key
from tracejit.graph import Instruction
from tracejit.ops.constants import CONSTANT, GET_TUPLE_ELEMENT, PARAMETER
from tracejit.ops.element_types import CONVERT_ELEMENT_TYPE
from tracejit.ops.layout import BROADCAST_IN_DIM, RESHAPE, TRANSPOSE
from tracejit.traversal import in_order

# The number of iteration lengths that are tried, and of iterations after which operands may return
# to a place: two for a pair of arrays that are swapped.
TRIALS = 8
PERIODS = (1, 2, 3, 4, 5, 6)
# The longest iteration that is searched by all of its instructions.
FARTHEST = 2048
# Ops on a constant that leave it a constant.
DRESSES = (BROADCAST_IN_DIM, RESHAPE, TRANSPOSE, CONVERT_ELEMENT_TYPE)
# The distance by which an operand moves from one iteration to the next; UNLIKE if it varies.
UNLIKE, FIXED, MOVING, LITERAL = range(4)


@dataclass(frozen=True)
class IterationRun:
    """``steps`` iterations of ``length`` instructions each that are alike, from position
    ``start``.
    """

    start: int
    length: int
    steps: int

    @property
    def end(self) -> int:
        return self.start + self.length * self.steps

    def part(self, first: int, steps: int) -> IterationRun:
        """``steps`` of the iterations, from number ``first`` on."""
        return IterationRun(self.start + first * self.length, self.length, steps)


class Sequenced:
    """Instructions in order of creation, without constants, which may vary between iterations."""

    def __init__(self, roots: Sequence[Instruction]) -> None:
        self.forms: dict[Instruction, int] = {}
        """Equal numbers for constants, broadcast or not, that differ in values only."""
        numbers: dict[Hashable, int] = {}
        self.order: list[Instruction] = []
        for instruction in in_order(roots):
            form = self._form(instruction)
            if form is None:
                self.order.append(instruction)
            else:
                self.forms[instruction] = numbers.setdefault(form, len(numbers))
        self.place = {instruction: n for n, instruction in enumerate(self.order)}
        kinds: dict[Hashable, int] = {}
        self.kinds = np.array(
            [kinds.setdefault(_kind(i), len(kinds)) for i in self.order], np.int64
        )
        shapes: dict[Hashable, int] = {}
        self._shapes = np.array(
            [shapes.setdefault(i.shape, len(shapes)) for i in self.order], np.int64
        )
        self._repeatable = np.array(
            [not (i.has_effect or i.op is PARAMETER) for i in self.order], bool
        )
        # The operands of all instructions in one array: their positions, negative for constants.
        self._arity = np.array([len(i.operands) for i in self.order], np.int64)
        self._first = np.concatenate([[0], np.cumsum(self._arity)])
        operands = [o for i in self.order for o in i.operands]
        self._where = np.array([self.place.get(o, -1) for o in operands], np.int64)
        self._forms = np.array([self.forms.get(o, -1) for o in operands], np.int64)
        # For each instruction, the position of its last user; roots are live at the end.
        self._last_use = np.full(len(self.order), -1, np.int64)
        users = np.repeat(np.arange(len(self.order)), self._arity)
        np.maximum.at(self._last_use, self._where[self._where >= 0], users[self._where >= 0])
        for root in roots:
            if root in self.place:
                self._last_use[self.place[root]] = len(self.order)

    def _form(self, instruction: Instruction) -> Hashable | None:
        if instruction.op is CONSTANT:
            return instruction.shape
        if instruction.op in DRESSES and instruction.operands[0] in self.forms:
            return (_kind(instruction), self.forms[instruction.operands[0]])
        return None

    def lengths(self) -> Iterator[int]:
        """Candidate lengths of an iteration, the likeliest first."""
        kinds = self.kinds.astype(np.int32)
        # The number of instructions whose kind recurs at each distance.
        most = min(len(kinds) // TRIALS, FARTHEST)
        alike = [np.count_nonzero(kinds[n:] == kinds[:-n]) for n in range(1, most + 1)]
        likely = (np.argsort(-np.array(alike, np.int64), kind="stable")[:TRIALS] + 1).tolist()
        # Longer iterations are found by kinds that occur once in each.
        last: dict[int, int] = {}
        distances: Counter[int] = Counter()
        for number, kind in enumerate(kinds.tolist()):
            if kind in last:
                distances[number - last[kind]] += 1
            last[kind] = number
        likely += [d for d, count in distances.most_common(4 * TRIALS) if count >= TRIALS][:TRIALS]
        yield from dict.fromkeys(length * period for period in PERIODS for length in likely)

    def runs(self, length: int) -> list[IterationRun]:
        """The runs of iterations of this length, the longest first; they may overlap."""
        count = len(self.order)
        if 2 * length > count:
            return []
        modes = self._modes(length)
        alike = np.zeros(count - length, bool)
        candidates = self._alike_kinds(length)
        operands, owners = self._operands(candidates)
        unlike = np.bincount(owners, modes[operands] == UNLIKE, len(candidates))
        alike[candidates[unlike == 0]] = True
        # A run ends where an operand that moved stays.
        pairs = np.flatnonzero(alike[:-length] & alike[length:])
        operands, owners = self._operands(pairs)
        later = operands + np.repeat(
            self._first[pairs + length] - self._first[pairs], self._arity[pairs]
        )
        changed = np.bincount(owners, modes[operands] != modes[later], len(pairs))
        turns = pairs[changed != 0] + length
        found: list[tuple[int, int]] = []
        edges = np.flatnonzero(np.diff(np.concatenate([[False], alike, [False]]).astype(np.int8)))
        for start, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            first = start
            for turn in turns[np.searchsorted(turns, start) : np.searchsorted(turns, end)].tolist():
                if turn - length >= first:
                    found.append((turn - first, first))
                    first = turn - length + 1
            found.append((end - first, first))
        return [
            self._with_whole_tuples(
                self._with_first_step(IterationRun(start, length, size // length + 1))
            )
            for size, start in sorted(found, reverse=True)
            if size >= length
        ]

    def _with_whole_tuples(self, run: IterationRun) -> IterationRun:
        """The run from the first instruction on that reads no element of an earlier tuple."""
        start = run.start
        while start < run.start + run.length and self.order[start].op is GET_TUPLE_ELEMENT:
            start += 1
        return run if start == run.start else IterationRun(start, run.length, run.steps - 1)

    def without_kept_steps(self, run: IterationRun) -> IterationRun:
        """The longest part of ``run`` in which only the last iteration is live afterwards.

        A loop would have to keep live instructions of earlier iterations.
        """
        needed = np.flatnonzero(self._last_use[run.start : run.end] >= run.end) // run.length
        ends = sorted({*needed.tolist(), run.steps - 1})
        befores = [-1, *ends[:-1]]
        before, last = max(zip(befores, ends, strict=True), key=lambda pair: pair[1] - pair[0])
        return run.part(before + 1, last - before)

    def wanted(self, run: IterationRun) -> list[Instruction]:
        """The live instructions of the last iteration of ``run``."""
        begin = run.end - run.length
        needed = np.flatnonzero(self._last_use[begin : run.end] >= run.end)
        return [self.order[begin + n] for n in needed.tolist()]

    def _alike_kinds(self, length: int) -> NDArray[np.int64]:
        """The positions of instructions whose kind recurs one iteration later."""
        same = (self.kinds[length:] == self.kinds[:-length]) & self._repeatable[:-length]
        return np.flatnonzero(same)

    def _modes(self, length: int) -> NDArray[np.int64]:
        """For each operand, its distance to the operand one iteration later."""
        modes = np.full(len(self._where), UNLIKE)
        here, owners = self._operands(self._alike_kinds(length))
        starts = self._alike_kinds(length)[owners]
        there = here + self._first[starts + length] - self._first[starts]
        one, other = self._where[here], self._where[there]
        arrays = (one >= 0) & (other >= 0)
        made = np.where(arrays & (one == other), FIXED, UNLIKE)
        moving = arrays & (other - one == length) & (self._shapes[one] == self._shapes[other])
        made = np.where(moving, MOVING, made)
        literals = (self._forms[here] >= 0) & (self._forms[here] == self._forms[there])
        modes[here] = np.where(literals, LITERAL, made)
        return modes

    def _operands(self, places: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The positions in the operand array of some instructions' operands, and the owner of
        each.
        """
        arity = self._arity[places]
        owners = np.repeat(np.arange(len(places)), arity)
        before = np.cumsum(arity) - arity
        return np.arange(len(owners)) - before[owners] + self._first[places][owners], owners

    def _with_first_step(self, run: IterationRun) -> IterationRun:
        """``run`` extended by the iteration before, if it differs only in its initial values."""
        begin = run.start - run.length
        if run.steps < 2 or begin < 0:
            return run
        if not np.array_equal(self.kinds[begin : run.start], self.kinds[run.start :][: run.length]):
            return run
        longer = IterationRun(begin, run.length, run.steps + 1)
        if not self._repeatable[begin : run.start].all():
            return run
        starts: dict[Instruction, Instruction] = {}
        for place in range(begin, run.start):
            one, other = self.order[place], self.order[place + run.length]
            then = self.order[place + 2 * run.length]
            for first, second, third in zip(
                one.operands, other.operands, then.operands, strict=True
            ):
                where = self.place.get(second, -1)
                if second in self.forms and third in self.forms:
                    fits = self.forms.get(first) == self.forms[second]
                elif second is third:
                    fits = first is second
                elif where >= run.start:
                    fits = self.place.get(first) == where - run.length
                else:
                    outside = self.place.get(first, -1) < begin
                    same = starts.setdefault(second, first) is first
                    fits = outside and same and first.shape == second.shape
                if not fits:
                    return run
        return longer


def _kind(instruction: Instruction) -> Hashable:
    """A key, equal for instructions that may correspond in two iterations."""
    attributes = tuple([attribute_key(value) for value in instruction.attributes.values()])
    return (instruction.op, attributes, instruction.shape, len(instruction.operands))
