"""Reductions whose order does not matter: along rows, along columns, and few long ones in parts.

    reduce_by_teams(frame, parts, kept, reduced, locate, results)

A team of threads shares a row: neighbours read neighbours, and shuffles join what they have. Warps
read 32 neighbouring columns. Where results are few and long, each is cut into parts for as many
teams, and a second kernel joins those.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tracejit.backends.tvm.analysis.monoids import identities
from tracejit.backends.tvm.codegen.access_analysis import Accesses
from tracejit.backends.tvm.codegen.emitter import Emitter, literal
from tracejit.backends.tvm.codegen.kernel_frame import Frame, memory_buffer
from tracejit.backends.tvm.codegen.root_rules import Results, anchors_of
from tracejit.backends.tvm.codegen.scalar.accumulators import ScalarAccumulators, accumulated
from tracejit.backends.tvm.codegen.scalar.elements import ElementLoops, place
from tracejit.backends.tvm.cuda.blocks import (
    ENOUGH_BLOCKS,
    ENOUGH_THREADS,
    WARP,
    Team,
    barrier,
    blocks,
    power_of_two,
    shared,
)
from tracejit.backends.tvm.ir.affine import Index
from tracejit.backends.tvm.ir.tir import (
    AllocBuffer,
    Expr,
    IfThenElse,
    Stmt,
    const,
    loop,
    seq,
    tirx,
)
from tracejit.graph import Instruction
from tracejit.ops.constants import constant
from tracejit.shapes import Shape

Locate = Callable[[Sequence[Index], Sequence[Index]], list[Index]]

SHORT_COLUMN = 32
"""Columns up to this length have one thread each."""
LEAST_PART = 1 << 12
"""Elements of a part, at least, where long reductions are cut."""


class Combiners:
    """How partial results of several reductions are combined."""

    def __init__(self, parts: Sequence[Instruction]) -> None:
        self._parts = [(part.attributes["to_apply"], len(part.operands) // 2) for part in parts]
        given = [part.operands[: len(part.operands) // 2] for part in parts]
        self.operands = [operand for each in given for operand in each]
        self.initial = [
            v for p, each in zip(parts, given, strict=True) for v in p.operands[len(each) :]
        ]
        self.types = [operand.array_shape.element_type for operand in self.operands]

    def identities(self) -> list[Any] | None:
        """What changes no partial result; None where the order of elements matters."""
        found = [identities(combine) for combine, _ in self._parts]
        return None if None in found else [value for each in found for value in each or ()]

    def begin(self, emitter: Emitter, totals: ScalarAccumulators) -> list[Stmt]:
        """No element combined yet."""
        found = self.identities()
        assert found is not None
        scalars = [constant(v, t) for v, t in zip(found, totals.types, strict=True)]
        return [*totals.allocations, *totals.write(emitter, [literal(s) for s in scalars])]

    def merged(
        self, emitter: Emitter, before: Sequence[object], arrived: Sequence[object]
    ) -> list[object]:
        """Partial results of all parts, combined with others."""
        made: list[object] = []
        for combine, count in self._parts:
            begin, end = len(made), len(made) + count
            made += accumulated(combine, emitter, [*before[begin:end], *arrived[begin:end]])
        return made

    def join(
        self, emitter: Emitter, totals: ScalarAccumulators, arrived: Sequence[object]
    ) -> list[Stmt]:
        """Combines ``totals`` with what arrived."""
        return totals.write(emitter, self.merged(emitter, totals.read(emitter), arrived))

    def join_initial(self, emitter: Emitter, totals: ScalarAccumulators) -> list[Stmt]:
        """Combines the initial values with ``totals``."""
        given = [emitter.value(value, ()) for value in self.initial]
        return totals.write(emitter, self.merged(emitter, given, totals.read(emitter)))


class Reductions:
    """Reductions over the same elements, whose operands' indices ``locate`` gives.

    ``anchors`` are what the reductions make, if not their own results.
    """

    def __init__(
        self,
        frame: Frame,
        parts: Sequence[Instruction],
        kept: Sequence[int],
        reduced: Sequence[int],
        locate: Locate,
        results: Results,
        anchors: Sequence[Instruction] = (),
    ) -> None:
        self.frame, self._locate = frame, locate
        anchors = anchors or [each for part in parts for each in anchors_of(part, results)]
        self.combiners = Combiners(parts)
        self.types = self.combiners.types
        accesses: list[Accesses] = []

        def ask(scope: Accesses, at: Sequence[Index], over: Sequence[Index]) -> None:
            accesses.append(scope)
            for operand in self.combiners.operands:
                scope.value(operand, locate(at, over))
            for value in self.combiners.initial:
                scope.value(value, ())

        self.elements = ElementLoops(frame, kept, reduced, anchors, results, ask)
        self.loads = accesses[-1].loads
        self.rows = math.prod(axis.extent for axis in self.elements.outer_axes)
        self.length = math.prod(axis.extent for axis in self.elements.inner_axes)

    def accumulators(self) -> ScalarAccumulators:
        """Variables for one partial result of each part."""
        return ScalarAccumulators(self.types)

    def begin(self, totals: ScalarAccumulators) -> list[Stmt]:
        """No element combined yet."""
        return self.combiners.begin(self.elements.emitter(), totals)

    def initially(self, totals: ScalarAccumulators) -> list[Stmt]:
        """The initial values alone."""
        emitter = self.elements.emitter()
        return totals.write(emitter, [emitter.value(v, ()) for v in self.combiners.initial])

    def step(self, totals: ScalarAccumulators) -> list[Stmt]:
        """Combines the elements at the current positions."""
        emitter = self.elements.emitter()
        where = self._locate(self.elements.at, self.elements.over)
        arrived = [emitter.value(operand, where) for operand in self.combiners.operands]
        return self.combiners.join(emitter, totals, arrived)

    def joined(self, team: Team, totals: ScalarAccumulators) -> list[Stmt]:
        """Every thread's totals become those of its team."""
        return team.joined(totals, self.elements.emitter, self.combiners.join)

    def finish(self, totals: ScalarAccumulators, joins_initial: bool = True) -> list[Stmt]:
        """Stores the results."""
        made: list[Stmt] = []
        if joins_initial:
            made = self.combiners.join_initial(self.elements.emitter(), totals)
        last = self.elements.emitter()
        values = zip(totals.read(last), self.types, strict=True)
        return [*made, *self.elements.finish([last.settled(value, t) for value, t in values])]

    def stand(self, row: Expr | None = None, number: Expr | None = None) -> None:
        """Sets the positions to a row, and to an element of it, by their numbers."""
        work = self.elements
        if row is not None:
            place(row, work.outer_axes, work.positions, work.dtype)
        if number is not None:
            place(number, work.inner_axes, work.positions, work.dtype)

    def by_threads(self) -> Stmt:
        """A thread for each result, in the order of its elements."""
        totals = self.accumulators()
        return self.elements.kernel(
            lambda: [
                *totals.allocations,
                *self.initially(totals),
                self.elements.steps(lambda: self.step(totals)),
                *self.finish(totals, joins_initial=False),
            ]
        )

    @property
    def are_columns(self) -> bool:
        """Whether neighbours in memory belong to different results."""
        work = self.elements
        if not work.outer_axes or not work.inner_axes:
            return False
        outer, inner = work.outer_axes[-1].last, work.inner_axes[-1].last
        # What all results share is small.
        own = {axis.last for axis in work.outer_axes}
        addresses = [x.address for x in self.loads if x.address.variables & own]
        along = [address.coefficient(inner) for address in addresses]
        across = [address.coefficient(outer) for address in addresses]
        return 1 in across and 1 not in along

    def by_teams(self) -> Stmt:
        """A team for each result."""
        team = Team(self.rows, self.length, dtype=self.frame.index_dtype)

        def body() -> list[Stmt]:
            totals = self.accumulators()
            self.stand(team.row)

            def step(number: Expr) -> list[Stmt]:
                self.stand(number=number)
                return self.step(totals)

            return [
                *self.begin(totals),
                team.steps(step),
                *self.joined(team, totals),
                team.first(self.finish(totals)),
            ]

        return team.kernel(body)

    def by_columns(self) -> Stmt:
        """A warp for each 32 neighbouring results, and several that share their length."""
        dtype = self.frame.index_dtype
        warps = min(power_of_two(-(-self.length // SHORT_COLUMN)), 32)

        def body(block: Expr, thread: Expr) -> list[Stmt]:
            def index(number: Expr) -> Expr:
                return number if dtype == "int32" else tirx.Cast(dtype, number)

            width = const(WARP, "int32")
            lane, warp = tirx.truncmod(thread, width), tirx.truncdiv(thread, width)
            row = index(block) * const(WARP, dtype) + index(lane)
            is_here = row < const(self.rows, dtype)
            self.stand(row)
            totals = self.accumulators()

            def step(number: Expr) -> Stmt:
                at = number * const(warps, dtype) + index(warp)
                self.stand(number=at)
                inside = tirx.And(is_here, at < const(self.length, dtype))
                return IfThenElse(inside, seq(*self.step(totals)), None)

            words = [shared(Shape(t, (warps * WARP,))) for t in totals.types]
            scope = self.elements.emitter()
            put = totals.put(scope, words, thread, totals.read(scope))

            def gather(number: Expr) -> list[Stmt]:
                scope = self.elements.emitter()
                at = (number + const(1, "int32")) * width + lane
                return self.combiners.join(scope, totals, totals.get(scope, words, at))

            is_first = tirx.And(warp < const(1, "int32"), is_here)
            last = [loop(warps - 1, gather), *self.finish(totals)]
            return [
                *self.begin(totals),
                loop(-(-self.length // warps), step, dtype=dtype),
                *(AllocBuffer(word) for word in words),
                *put,
                barrier(),
                IfThenElse(is_first, seq(*last), None),
            ]

        return blocks(-(-self.rows // WARP), warps * WARP, body)

    def in_parts(self, count: int) -> Stmt:
        """A team for each of ``count`` parts of a result; then one that joins the parts."""
        dtype = self.frame.index_dtype
        rows, length = self.rows, self.length
        size = -(-length // count)
        partial = [memory_buffer(Shape(t, (rows * count,))) for t in self.accumulators().types]
        self.frame.scratch += partial
        first, second = Team(rows * count, size, dtype=dtype), Team(rows, count, dtype=dtype)

        def parts() -> list[Stmt]:
            totals = self.accumulators()
            # Neighbours are parts of one result.
            self.stand(tirx.truncdiv(first.row, const(count, dtype)))
            begin = tirx.truncmod(first.row, const(count, dtype)) * const(size, dtype)

            def step(number: Expr) -> list[Stmt]:
                self.stand(number=begin + number)
                inside = begin + number < const(length, dtype)
                return [IfThenElse(inside, seq(*self.step(totals)), None)]

            scope = self.elements.emitter()
            put = totals.put(scope, partial, first.row, totals.read(scope))
            return [
                *self.begin(totals),
                first.steps(step),
                *self.joined(first, totals),
                first.first(put),
            ]

        def whole() -> list[Stmt]:
            totals = self.accumulators()
            self.stand(second.row)

            def step(number: Expr) -> list[Stmt]:
                scope = self.elements.emitter()
                at = second.row * const(count, dtype) + number
                return self.combiners.join(scope, totals, totals.get(scope, partial, at))

            return [
                *self.begin(totals),
                second.steps(step),
                *self.joined(second, totals),
                second.first(self.finish(totals)),
            ]

        return seq(first.kernel(parts), second.kernel(whole))


def reduce_by_teams(work: Reductions) -> Stmt:
    """The kernel of reductions, by the schedule that suits their shape."""
    frame = work.frame
    few = work.rows < ENOUGH_THREADS
    if work.combiners.identities() is None or not work.rows or work.length <= 1:
        frame.schedule = "thread a result"
        return work.by_threads()
    columns = work.are_columns
    busy = -(-work.rows // WARP) if columns else work.rows
    parts = min(ENOUGH_BLOCKS // max(busy, 1), work.length // LEAST_PART)
    if parts > 1:
        frame.schedule = "parts of a result by blocks, then joined"
        return work.in_parts(parts)
    if columns:
        if not few or work.length <= SHORT_COLUMN:
            frame.schedule = "thread a column"
            return work.by_threads()
        frame.schedule = "warps a column"
        return work.by_columns()
    frame.schedule = "team a row"
    return work.by_teams()
