"""Loops that Python has unrolled, rolled up again: repeated steps become one While.

A function that writes ``for _ in range(1000): x = step(x)`` records a thousand copies of the step,
which `repeated_steps` finds. Constants that change from step to step (``x * (1 + k * dt)``) are
collected in tables, of which each turn of the loop reads one row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tracejit.backends.tvm.repeated_steps import Run, Sequenced
from tracejit.graph import Instruction
from tracejit.ops.constants import CONSTANT, constant
from tracejit.ops.layout import dynamic_slice, full, reshape
from tracejit.ops.loops import Turn, counted
from tracejit.shapes import ElementType, Shape
from tracejit.traversal import in_order, rebuild, substitute

# Fewer steps, or fewer instructions in all, are left as they are: straight code runs faster.
LEAST_STEPS = 16
LEAST_INSTRUCTIONS = 512
# Constants up to this many elements are repeated in the loop instead of handed in.
SMALL = 16

Column = tuple[Instruction, ...]
"""A constant of a step, in all steps."""


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
    graph = Sequenced(order)
    for length in graph.lengths():
        run = graph.longest_run(length)
        if run is None or not _is_long(run):
            continue
        run, wanted = _without_kept_steps(graph, roots, run)
        if not _is_long(run):
            continue
        step = _Step(graph, run, wanted)
        if step.is_possible:
            return substitute(roots, step.as_loop())
    return None


def _is_long(run: Run) -> bool:
    return run.steps >= LEAST_STEPS and run.end - run.start >= LEAST_INSTRUCTIONS


def _without_kept_steps(
    graph: Sequenced, roots: Sequence[Instruction], run: Run
) -> tuple[Run, list[Instruction]]:
    """The longest part of ``run`` of whose steps only the last is needed after it.

    Also what of the last step is needed: instructions of earlier ones the loop would have to keep.
    """
    # What the steps before the run left behind may be used anywhere.
    users = (*graph.order[: run.start], *graph.order[run.end :])
    needed = dict.fromkeys([o for i in users for o in i.operands] + list(roots))
    places = [graph.place[i] for i in needed if i in graph.place]
    steps = {(p - run.start) // run.length for p in places if run.start <= p < run.end}
    ends = sorted(steps | {run.steps - 1})
    befores = [-1, *ends[:-1]]
    before, last = max(zip(befores, ends, strict=True), key=lambda pair: pair[1] - pair[0])
    part = run.part(before + 1, last - before)
    if last == run.steps - 1:
        begin = part.end - part.length
        return part, [i for i in needed if begin <= graph.place.get(i, -1) < part.end]
    # The next step goes on from this one.
    following = graph.order[part.end : part.end + 2 * part.length]
    needed |= dict.fromkeys(o for i in following for o in i.operands)
    begin = part.end - part.length
    return part, [i for i in needed if begin <= graph.place.get(i, -1) < part.end]


class _Step:
    """One step of a run, and what it takes from the step before and from outside."""

    def __init__(self, graph: Sequenced, run: Run, wanted: Sequence[Instruction]) -> None:
        self.graph, self.run, self.wanted = graph, run, wanted
        # The second step shows best what comes from the one before.
        second = run.start + run.length
        self.template = graph.order[second : second + run.length]
        self.carried: dict[Instruction, Instruction] = {}
        """What the first step leaves for the second, and what it had in its place itself."""
        self.fixed: dict[Instruction, None] = {}
        self.literals: dict[tuple[int, int], Column] = {}
        """Of an operand, by the numbers of instruction and operand: the constants in all steps."""
        self.is_possible = self._look()

    def _look(self) -> bool:
        """Whether a loop can do the same."""
        graph, run = self.graph, self.run
        first, second = run.start, run.start + run.length
        for n, one in enumerate(self.template):
            before = graph.order[first + n].operands
            for slot, (start, operand) in enumerate(zip(before, one.operands, strict=True)):
                where = graph.place.get(operand, -1)
                if operand in graph.forms and start in graph.forms:
                    steps = graph.order[first + n : run.end : run.length]
                    self.literals[n, slot] = tuple([step.operands[slot] for step in steps])
                elif first <= where < second and operand is not start:
                    self.carried[operand] = start
                elif where < first and operand is start:
                    self.fixed[operand] = None
                elif where < second:
                    return False
        arrays = (*self.carried.values(), *self.fixed, *self.wanted)
        return all(isinstance(i.shape, Shape) and not i.shape.is_dynamic for i in arrays)

    def as_loop(self) -> dict[Instruction, Instruction]:
        """What stands for the wanted instructions of the last step."""
        order, place, length = self.graph.order, self.graph.place, self.run.length
        # Of the last step's instructions, what they are in the first one.
        distance = (self.run.steps - 1) * length
        results = [order[place[w] - distance] for w in self.wanted]
        extra = [r for r in dict.fromkeys(results) if r not in self.carried]
        made = (*self.carried, *extra)
        literals = _Literals(self.literals.values())
        c, f = len(made), len(self.fixed)

        def body(number: Instruction, *state: Instruction) -> Turn:
            new = dict(zip(self.carried, state, strict=False))
            new |= zip(self.fixed, state[c : c + f], strict=True)
            constants = literals.read(number, state[c + f :])
            for n, one in enumerate(self.template):
                operands = [
                    _dressed(self.literals[n, slot][0], constants[self.literals[n, slot]])
                    if (n, slot) in self.literals
                    else new[operand]
                    for slot, operand in enumerate(one.operands)
                ]
                new[one] = rebuild(one, operands)
            following = [new[order[place[i] + length]] for i in made]
            return [*following, *state[c:]], ()

        empty = [full(x.array_shape, 0) for x in extra]
        state = [*self.carried.values(), *empty, *self.fixed, *literals.handed]
        final = dict(zip(made, counted("rolled", self.run.steps, state, body), strict=False))
        return {w: final[r] for w, r in zip(self.wanted, results, strict=True)}


class _Literals:
    """The constants of all steps: of each column the one of the step is read from a table.

    Columns of one shape are side by side in one table, ``[steps, columns, *dimensions]``. Those
    that are the same in all steps stay constants, in the loop where they are small.
    """

    def __init__(self, columns: Iterable[Column]) -> None:
        self._bare = {column: tuple([_undressed(leaf) for leaf in column]) for column in columns}
        self._same = [c for c in dict.fromkeys(self._bare.values()) if len(set(c)) == 1]
        self._large = [c for c in self._same if c[0].array_shape.size > SMALL]
        self._tables: dict[Shape, dict[Column, int]] = {}
        for column in self._bare.values():
            if column not in self._same:
                table = self._tables.setdefault(column[0].array_shape, {})
                table.setdefault(column, len(table))
        self.handed = [column[0] for column in self._large]
        """What the loop must have in its state."""
        for shape, table in self._tables.items():
            values = [np.stack([i.attributes["literal"] for i in column]) for column in table]
            self.handed.append(constant(np.stack(values, 1), shape.element_type))

    def read(self, number: Instruction, handed: Sequence[Instruction]) -> dict[Column, Instruction]:
        """The constants of step ``number`` (s32), out of what was handed in."""
        found = dict(zip(self._large, handed, strict=False))
        for column in self._same:
            if column not in found:
                found[column] = rebuild(column[0], ())
        tables = handed[len(self._large) :]
        for (shape, columns), table in zip(self._tables.items(), tables, strict=True):
            sizes = (1, 1, *shape.dimensions)
            for column, n in columns.items():
                rest = [constant(m, ElementType.S32) for m in (n, *(0 for _ in shape.dimensions))]
                row = dynamic_slice(table, [number, *rest], sizes)
                found[column] = reshape(row, shape.dimensions)
        return {column: found[bare] for column, bare in self._bare.items()}


def _undressed(leaf: Instruction) -> Instruction:
    """The constant that a constant was before it was broadcast."""
    while leaf.op is not CONSTANT:
        (leaf,) = leaf.operands
    return leaf


def _dressed(leaf: Instruction, bare: Instruction) -> Instruction:
    """``leaf`` with ``bare`` in the place of its constant."""
    if leaf.op is CONSTANT:
        return bare
    return rebuild(leaf, (_dressed(leaf.operands[0], bare),))
