"""One step of an unrolled loop, and the While that takes it as often as it was written.

step = Step(graph, run)
step.as_loop({}, lambda computation: computation)     # where step.is_possible
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from tracejit.backends.tvm.passes.reroll.tandem_repeats import Run, Sequenced
from tracejit.graph import Computation, Instruction
from tracejit.ops.comparison import lt
from tracejit.ops.constants import CONSTANT, constant, elements_of, parameter, tuple_
from tracejit.ops.control import while_
from tracejit.ops.element_types import convert_element_type
from tracejit.ops.elementwise import add, mul
from tracejit.ops.layout import dynamic_slice, full, reshape
from tracejit.shapes import ElementType, Shape
from tracejit.traversal import rebuild

Column = tuple[Instruction, ...]
"""A constant of a step, in all steps."""
Share = Callable[[Computation], Computation]


class Step:
    """One step of a run, and what it takes from the step before and from outside."""

    def __init__(self, graph: Sequenced, run: Run) -> None:
        self.graph, self.run, self.wanted = graph, run, graph.wanted(run)
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

    def as_loop(
        self, new: Mapping[Instruction, Instruction], share: Share
    ) -> dict[Instruction, Instruction]:
        """What stands for the wanted instructions of the last step.

        ``new`` has what stands for instructions before the run, where that is another; ``share``
        one computation for all that are like it.
        """
        order, place, length = self.graph.order, self.graph.place, self.run.length
        # Of the last step's instructions, what they are in the first one.
        distance = (self.run.steps - 1) * length
        results = [order[place[w] - distance] for w in self.wanted]
        extra = [r for r in dict.fromkeys(results) if r not in self.carried]
        made = (*self.carried, *extra)
        literals = _Literals(self.literals.values())
        c, f = len(made), len(self.fixed)

        def body(number: Instruction, state: Sequence[Instruction]) -> list[Instruction]:
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
            return [*[new[order[place[i] + length]] for i in made], *state[c:]]

        empty = [full(x.array_shape, 0) for x in extra]
        given = [new.get(i, i) for i in (*self.carried.values(), *self.fixed)]
        state = [*given[: len(self.carried)], *empty, *given[len(self.carried) :], *literals.handed]
        final = dict(zip(made, _repeated(self.run.steps, state, body, share), strict=False))
        return {w: final[r] for w, r in zip(self.wanted, results, strict=True)}


def _repeated(
    count: int,
    init: Sequence[Instruction],
    body: Callable[[Instruction, Sequence[Instruction]], Sequence[Instruction]],
    share: Share,
) -> list[Instruction]:
    """``init`` replaced ``count`` times by ``body(number, state)``, the number counted from 0.

    The count is part of the state, so that loops of other counts have equal computations.
    """
    start = tuple_([constant(0, ElementType.S32), constant(count, ElementType.S32), *init])
    whole = parameter(0, start.shape)
    number, limit, *_ = elements_of(whole)
    test = Computation("rolled_condition", (whole,), lt(number, limit))
    whole = parameter(0, start.shape)
    number, limit, *state = elements_of(whole)
    following = [add(number, constant(1, ElementType.S32)), limit, *body(number, state)]
    step = Computation("rolled_body", (whole,), tuple_(following))
    _, _, *final = elements_of(while_(share(test), share(step), start))
    return final


class _Literals:
    """The constants of all steps, out of what the loop is handed in its state.

    Those that are the same in all steps are handed in themselves, of integers that grow by the same
    number in each step the first one. Of others there is a table of those of one shape, side by
    side, ``[steps, columns, *dimensions]``.
    """

    def __init__(self, columns: Iterable[Column]) -> None:
        self._bare = {column: tuple([_undressed(leaf) for leaf in column]) for column in columns}
        self._growth: dict[Column, int] = {}
        self._tables: dict[Shape, dict[Column, int]] = {}
        for column in self._bare.values():
            growth = _growth(column)
            if growth is not None:
                self._growth[column] = growth
            else:
                table = self._tables.setdefault(column[0].array_shape, {})
                table.setdefault(column, len(table))
        self.handed = [column[0] for column in self._growth]
        """What the loop must have in its state."""
        for shape, table in self._tables.items():
            values = [np.stack([i.attributes["literal"] for i in column]) for column in table]
            self.handed.append(constant(np.stack(values, 1), shape.element_type))

    def read(self, number: Instruction, handed: Sequence[Instruction]) -> dict[Column, Instruction]:
        """The constants of step ``number`` (s32), out of what was handed in."""
        found = {}
        for (column, growth), first in zip(self._growth.items(), handed, strict=False):
            found[column] = first
            if growth:
                element_type = first.array_shape.element_type
                wide = convert_element_type(number, element_type)
                by = wide if growth == 1 else mul(wide, constant(growth, element_type))
                found[column] = add(first, by)
        tables = handed[len(self._growth) :]
        for (shape, columns), table in zip(self._tables.items(), tables, strict=True):
            sizes = (1, 1, *shape.dimensions)
            for column, n in columns.items():
                rest = [constant(m, ElementType.S32) for m in (n, *(0 for _ in shape.dimensions))]
                row = dynamic_slice(table, [number, *rest], sizes)
                found[column] = reshape(row, shape.dimensions)
        return {column: found[bare] for column, bare in self._bare.items()}


def _growth(column: Column) -> int | None:
    """By how much a constant grows in each step; None where that differs."""
    if all(one is column[0] for one in column):
        return 0
    shape = column[0].array_shape
    values = [one.attributes["literal"] for one in column]
    if len({value.tobytes() for value in values}) == 1:
        return 0
    if shape.rank or shape.element_type not in (ElementType.S32, ElementType.S64):
        return None
    numbers = [int(value) for value in values]
    steps = {after - before for before, after in itertools.pairwise(numbers)}
    return steps.pop() if len(steps) == 1 else None


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
