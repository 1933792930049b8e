"""Loops that Python has unrolled, rolled up again: repeated steps become one While.

A function that writes ``for _ in range(1000): x = step(x)`` records a thousand copies of the step.
They are found by what they look like, one after the other in the order of creation: the same op
with the same attributes, whose operands lie one step further on or are the same for all steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tracejit.attributes import attribute_key
from tracejit.graph import Instruction
from tracejit.ops.comparison import lt
from tracejit.ops.constants import CONSTANT, PARAMETER, constant
from tracejit.ops.elementwise import add
from tracejit.ops.layout import full
from tracejit.ops.loops import loop
from tracejit.shapes import ElementType, Shape
from tracejit.traversal import in_order, rebuild, substitute

# Fewer steps, or fewer instructions in all, are left as they are: straight code runs faster.
LEAST_STEPS = 16
LEAST_INSTRUCTIONS = 512
# How many different lengths of a step are tried.
TRIALS = 8
# Constants up to this many elements are repeated in the loop instead of handed in.
SMALL = 16


@dataclass(frozen=True)
class Run:
    """``steps`` times ``length`` instructions that look alike, from position ``start``."""

    start: int
    length: int
    steps: int

    @property
    def end(self) -> int:
        return self.start + self.length * self.steps


def rolled(roots: Sequence[Instruction]) -> list[Instruction]:
    """Equal ``roots`` in which long runs of equal steps are loops."""
    found = list(roots)
    while True:
        made = _rolled_once(found)
        if made is None:
            return found
        found = made


def _rolled_once(roots: Sequence[Instruction]) -> list[Instruction] | None:
    order = in_order(roots)
    if len(order) < LEAST_INSTRUCTIONS:
        return None
    graph = _Graph(roots, order)
    for length in graph.lengths():
        run = graph.longest_run(length)
        if run is None or run.steps < LEAST_STEPS or run.end - run.start < LEAST_INSTRUCTIONS:
            continue
        replaced = graph.as_loop(run)
        if replaced is not None:
            return substitute(roots, replaced)
    return None


class _Graph:
    def __init__(self, roots: Sequence[Instruction], order: Sequence[Instruction]) -> None:
        self.roots = roots
        self.order = order
        self.place = {instruction: n for n, instruction in enumerate(order)}
        numbers: dict[Hashable, int] = {}
        self.kinds = np.array([numbers.setdefault(_kind(i), len(numbers)) for i in order])

    def lengths(self) -> Iterator[int]:
        """How long a step may be, the likeliest first: the distances between alike instructions."""
        last: dict[int, int] = {}
        distances: Counter[int] = Counter()
        for number, kind in enumerate(self.kinds.tolist()):
            if kind in last:
                distances[number - last[kind]] += 1
            last[kind] = number
        # A step may hold several of a kind, so that its length is a sum of distances.
        likely = [d for d, count in distances.most_common(4 * TRIALS) if count >= LEAST_STEPS]
        rare = Counter(self.kinds.tolist())
        for kind, count in sorted(rare.items(), key=lambda item: item[1]):
            if count >= LEAST_STEPS:
                places = np.flatnonzero(self.kinds == kind)
                likely.insert(0, int(np.median(np.diff(places))))
                break
        tried = list(dict.fromkeys(likely))[:TRIALS]
        # A step that looks back over two of its kind is one of twice the length.
        yield from dict.fromkeys(length * times for length in tried for times in (1, 2, 3))

    def longest_run(self, length: int) -> Run | None:
        """The longest run of steps of this length."""
        count = len(self.order)
        if 2 * length > count:
            return None
        alike = np.zeros(count - length + 1, bool)
        for n in np.flatnonzero(self.kinds[length:] == self.kinds[:-length]).tolist():
            alike[n] = self._follows(self.order[n], self.order[n + length], length)
        edges = np.flatnonzero(np.diff(np.concatenate([[False], alike, [False]]).astype(np.int8)))
        starts, ends = edges[::2], edges[1::2]
        if not len(starts):
            return None
        best = int(np.argmax(ends - starts))
        start, end = int(starts[best]), int(ends[best])
        return Run(start, length, (end - start) // length + 1)

    def _follows(self, one: Instruction, other: Instruction, length: int) -> bool:
        """Whether operands of ``other`` lie one step after those of ``one``, or are the same."""
        if one.has_effect or one.op is PARAMETER:
            return False
        return all(
            a is b or self.place[b] - self.place[a] == length
            for a, b in zip(one.operands, other.operands, strict=True)
        )

    def as_loop(self, run: Run) -> dict[Instruction, Instruction] | None:
        """What stands for the last step's instructions; None where a loop cannot do the same."""
        first, second = run.start, run.start + run.length
        step = self.order[first:second]
        moving: dict[Instruction, None] = {}
        fixed: dict[Instruction, None] = {}
        for one, next_one in zip(step, self.order[second : second + run.length], strict=True):
            for operand, later in zip(one.operands, next_one.operands, strict=True):
                place = self.place[operand]
                if operand is later:
                    if place >= first:
                        return None
                    fixed[operand] = None
                elif place < first - run.length:
                    return None
                elif place < first:
                    moving[operand] = None
        wanted = self._needed_after(run)
        if wanted is None:
            return None
        if any(not isinstance(i.shape, Shape) for i in (*moving, *fixed, *wanted)):
            return None
        return self._loop(run, list(moving), list(fixed), wanted)

    def _needed_after(self, run: Run) -> list[Instruction] | None:
        """The last step's instructions that something after the run needs.

        None when an earlier step's is needed too, which the loop would have to keep.
        """
        inside = set(self.order[run.start : run.end])
        last = run.end - run.length
        used = [o for i in self.order[run.end :] for o in i.operands]
        # What the steps before the run left behind may be used anywhere.
        outside = self.order[: run.start]
        used += [o for i in outside for o in i.operands]
        needed = dict.fromkeys(i for i in (*used, *self.roots) if i in inside)
        if any(self.place[i] < last for i in needed):
            return None
        return list(needed)

    def _loop(
        self,
        run: Run,
        moving: Sequence[Instruction],
        fixed: Sequence[Instruction],
        wanted: Sequence[Instruction],
    ) -> dict[Instruction, Instruction]:
        step = self.order[run.start : run.start + run.length]
        after = [self.order[self.place[m] + run.length] for m in moving]
        distance = (run.steps - 1) * run.length
        # Of the last step's instructions, what they are in the first one.
        results = [self.order[self.place[w] - distance] for w in wanted]
        extra = [r for r in dict.fromkeys(results) if r not in after]
        handed = [f for f in fixed if not _is_small(f)]
        m, e = len(moving), len(extra)
        zero = constant(0, ElementType.S32)

        def more(*state: Instruction) -> Instruction:
            return lt(state[0], constant(run.steps, ElementType.S32))

        def body(*state: Instruction) -> list[Instruction]:
            new = dict(zip(moving, state[1 : 1 + m], strict=True))
            new |= dict(zip(handed, state[1 + m + e :], strict=True))
            for f in fixed:
                if f not in new:
                    new[f] = rebuild(f, ())
            for one in step:
                new[one] = rebuild(one, [new[o] for o in one.operands])
            count = add(state[0], constant(1, ElementType.S32))
            made = [new[i] for i in (*after, *extra)]
            return [count, *made, *state[1 + m + e :]]

        empty = [full(x.array_shape, 0) for x in extra]
        made = loop("rolled", [zero, *moving, *empty, *handed], more, body)
        final = dict(zip((*after, *extra), made[1 : 1 + m + e], strict=True))
        return {w: final[r] for w, r in zip(wanted, results, strict=True)}


def _kind(instruction: Instruction) -> Hashable:
    """Equal for instructions that may be the same one in two steps."""
    attributes = tuple(attribute_key(value) for value in instruction.attributes.values())
    return (instruction.op, attributes, str(instruction.shape), len(instruction.operands))


def _is_small(instruction: Instruction) -> bool:
    return instruction.op is CONSTANT and instruction.array_shape.size <= SMALL
