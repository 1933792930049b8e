"""One iteration of an unrolled loop, and the While that repeats it.

step = UnrolledIteration(graph, run)
step.as_loop({}, lambda computation: computation)     # if step.is_possible
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from tracejit.backends.tvm.passes.reroll.tandem_repeats import IterationRun, Sequenced
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
"""A constant of an iteration, with its values in all iterations."""
Share = Callable[[Computation], Computation]


class UnrolledIteration:
    """One iteration of a run: its loop-carried values and its inputs."""

    def __init__(self, graph: Sequenced, run: IterationRun) -> None:
        self.graph, self.run, self.wanted = graph, run, graph.wanted(run)
        # The second iteration shows which operands come from the one before.
        second = run.start + run.length
        self.template = graph.order[second : second + run.length]
        self.carried: dict[Instruction, Instruction] = {}
        """Loop-carried values: instructions of the first iteration, and their initial values."""
        self.fixed: dict[Instruction, None] = {}
        self.literals: dict[tuple[int, int], Column] = {}
        """The constants of all iterations, by the numbers of instruction and operand."""
        self.is_possible = self._look()

    def _look(self) -> bool:
        """Whether a loop can compute the same."""
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
        """Maps the live instructions of the last iteration to results of the loop.

        ``new`` maps instructions before the run to their replacements; ``share`` returns one
        computation for all equal ones.
        """
        order, place, length = self.graph.order, self.graph.place, self.run.length
        # Maps instructions of the last iteration to those of the first.
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
    """``init`` after ``count`` iterations of ``body(number, state)``, numbered from 0.

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
    """The constants of all iterations, as state of the loop.

    Loop-invariant constants are passed as they are, integers that grow by a constant as their
    first value. The others are in tables by shape, ``[steps, columns, *dimensions]``.
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
        """The state to add to the loop."""
        for shape, table in self._tables.items():
            values = [np.stack([i.attributes["literal"] for i in column]) for column in table]
            self.handed.append(constant(np.stack(values, 1), shape.element_type))

    def read(self, number: Instruction, handed: Sequence[Instruction]) -> dict[Column, Instruction]:
        """The constants of iteration ``number`` (s32), from that state."""
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
    """The increment of a constant per iteration; None if it varies."""
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
    """The constant under a broadcast."""
    while leaf.op is not CONSTANT:
        (leaf,) = leaf.operands
    return leaf


def _dressed(leaf: Instruction, bare: Instruction) -> Instruction:
    """``leaf`` with ``bare`` in place of its constant."""
    if leaf.op is CONSTANT:
        return bare
    return rebuild(leaf, (_dressed(leaf.operands[0], bare),))
