"""Cumulative reductions, where the order of elements is kept.

    cumulative(frame, instruction, results, axis, backwards)

Threads of a warp or a block scan tiles of a row, each a few neighbouring elements; shuffles carry
totals from lane to lane and shared memory from warp to warp. A long row is cut into parts: blocks
reduce the parts, one block scans their totals, and blocks scan the parts (reduce, then scan). That
reads the row twice, where a look-back between running blocks reads it once; but no block waits for
another, and the sums are the same bits in each run. Rows that are columns in memory have a thread
for each column and part, so that neighbours read neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tracejit.affine import Affine
from tracejit.backends.tvm.codegen.access_analysis import Accesses
from tracejit.backends.tvm.codegen.kernel_frame import Frame, memory_buffer
from tracejit.backends.tvm.codegen.root_rules import Results, anchors_of
from tracejit.backends.tvm.codegen.scalar.accumulators import ScalarAccumulators
from tracejit.backends.tvm.codegen.scalar.elements import ElementLoops, place, shared_loop
from tracejit.backends.tvm.cuda.blocks import (
    ALL_LANES,
    BLOCK_OF_TEAMS,
    ENOUGH_BLOCKS,
    ENOUGH_THREADS,
    LARGEST,
    WARP,
    barrier,
    blocks,
    shared,
)
from tracejit.backends.tvm.cuda.schedule.reduce import Combiners
from tracejit.backends.tvm.ir.affine import Index
from tracejit.backends.tvm.ir.tir import (
    AllocBuffer,
    Buffer,
    Expr,
    IfThenElse,
    Stmt,
    const,
    loop,
    seq,
    store,
    tirx,
)
from tracejit.graph import Instruction
from tracejit.shapes import Shape

ELEMENTS = 4
"""Neighbouring elements of a thread in a tile."""
LONGEST_OF_WARPS = 1024
"""Rows up to this length have a warp each."""
LEAST_PART, LEAST_PART_OF_COLUMNS = 1 << 12, 32
"""Elements of a part of a row, at least; of a column."""


def cumulative(
    frame: Frame, instruction: Instruction, results: Results, axis: int, backwards: bool
) -> Stmt:
    """The kernel of a cumulative reduction whose combiner has an identity."""
    work = _Scan(frame, instruction, results, axis, backwards)
    rows, length = work.rows, work.length
    if work.are_columns:
        parts = min(ENOUGH_THREADS // rows, length // LEAST_PART_OF_COLUMNS)
        frame.schedule = "scan by thread a column, in parts"
        return work.by_columns(max(parts, 1))
    parts = min(ENOUGH_BLOCKS // rows, length // LEAST_PART)
    if parts > 1:
        frame.schedule = "scan in parts: reduce, then scan"
        return work.in_parts(parts)
    frame.schedule = "scan by block a row" if length > LONGEST_OF_WARPS else "scan by warp a row"
    return work.by_rows()


class _Scan:
    """A kernel under construction."""

    def __init__(
        self, frame: Frame, instruction: Instruction, results: Results, axis: int, backwards: bool
    ) -> None:
        self.frame, self.dtype = frame, frame.index_dtype
        self.combiners = Combiners([instruction])
        self.types = self.combiners.types
        sizes = instruction.operands[0].array_shape.dimensions
        kept = [*sizes[:axis], *sizes[axis + 1 :]]
        self.rows, self.length = math.prod(kept), sizes[axis]
        self.are_columns = math.prod(sizes[axis + 1 :]) >= WARP

        def where(at: Sequence[Index], over: Sequence[Index]) -> list[Index]:
            (step,) = over
            assert isinstance(step, Affine)
            along = step * -1 + (self.length - 1) if backwards else step
            return [*at[:axis], along, *at[axis:]]

        def ask(scope: Accesses, at: Sequence[Index], over: Sequence[Index]) -> None:
            for operand in self.combiners.operands:
                scope.value(operand, where(at, over))
            for value in self.combiners.initial:
                scope.value(value, ())

        anchors = anchors_of(instruction, results)
        self.elements = ElementLoops(frame, kept, [self.length], anchors, results, ask, where)

    def c(self, number: int) -> Expr:
        return const(number, self.dtype)

    def index(self, number: Expr) -> Expr:
        return number if self.dtype == "int32" else tirx.Cast(self.dtype, number)

    def stand(self, row: Expr) -> None:
        """Sets the positions to a row."""
        work = self.elements
        place(row, work.outer_axes, work.positions, work.dtype)

    def initial(self, totals: ScalarAccumulators) -> list[Stmt]:
        """Totals that begin with the initial values."""
        emitter = self.elements.emitter()
        given = [emitter.value(value, ()) for value in self.combiners.initial]
        return totals.write(emitter, given)

    def identities(self, totals: ScalarAccumulators) -> list[Stmt]:
        """Totals of no element."""
        return self.combiners.begin(self.elements.emitter(), totals)[len(totals.allocations) :]

    def copied(self, target: ScalarAccumulators, source: ScalarAccumulators) -> list[Stmt]:
        emitter = self.elements.emitter()
        return target.write(emitter, source.read(emitter))

    def merged(
        self, target: ScalarAccumulators, before: ScalarAccumulators, after: ScalarAccumulators
    ) -> list[Stmt]:
        """``target`` becomes ``before`` combined with ``after``, in this order."""
        emitter = self.elements.emitter()
        made = self.combiners.merged(emitter, before.read(emitter), after.read(emitter))
        return target.write(emitter, made)

    def element(self, target: ScalarAccumulators, at: Expr) -> list[Stmt]:
        """``target`` becomes the row's element."""
        work = self.elements
        place(at, work.inner_axes, work.positions, work.dtype)
        emitter = work.emitter()
        values = [emitter.value(operand, work.place) for operand in self.combiners.operands]
        return target.write(emitter, values)

    def result(self, at: Expr, totals: ScalarAccumulators) -> list[Stmt]:
        """Stores the row's result."""
        work = self.elements
        place(at, work.inner_axes, work.positions, work.dtype)
        emitter = work.emitter()
        pairs = zip(totals.read(emitter), self.types, strict=True)
        return [*work.finish([emitter.settled(value, t) for value, t in pairs])]

    def by_rows(self) -> Stmt:
        """A warp or a block for each row."""
        length = self.length
        group = _Group(self, LARGEST if length > LONGEST_OF_WARPS else WARP)

        def body() -> list[Stmt]:
            carry = ScalarAccumulators(self.types)
            self.stand(group.row)
            return [
                *carry.allocations,
                *self.initial(carry),
                group.scan(
                    self.c(0), self.length, self.c(self.length), carry, self.element, self.result
                ),
            ]

        return group.kernel(self.rows, body)

    def in_parts(self, count: int) -> Stmt:
        """Blocks reduce parts of each row, one scans the totals, blocks scan the parts."""
        size = -(-self.length // count)
        count = -(-self.length // size)
        partial = self._partial(self.rows * count)
        group, one = _Group(self, LARGEST), _Group(self, LARGEST)

        def split(row: Expr) -> tuple[Expr, Expr, Expr]:
            part = tirx.truncmod(row, self.c(count))
            self.stand(tirx.truncdiv(row, self.c(count)))
            begin = part * self.c(size)
            return part, begin, tirx.min(begin + self.c(size), self.c(self.length))

        def total_of_part() -> list[Stmt]:
            carry = ScalarAccumulators(self.types)
            _, begin, end = split(group.row)
            begins = self.combiners.begin(self.elements.emitter(), carry)
            reduced = group.scan(begin, size, end, carry, self.element, None)
            scope = self.elements.emitter()
            put = carry.put(scope, partial, group.row, carry.read(scope))
            return [*begins, reduced, group.first(put)]

        def totals() -> list[Stmt]:
            carry = ScalarAccumulators(self.types)
            self.stand(one.row)

            def given(target: ScalarAccumulators, at: Expr) -> list[Stmt]:
                emitter = self.elements.emitter()
                where = one.row * self.c(count) + at
                return target.write(emitter, target.get(emitter, partial, where))

            def kept(at: Expr, made: ScalarAccumulators) -> list[Stmt]:
                emitter = self.elements.emitter()
                where = one.row * self.c(count) + at
                return made.put(emitter, partial, where, made.read(emitter))

            scanned = one.scan(self.c(0), count, self.c(count), carry, given, kept)
            return [*carry.allocations, *self.initial(carry), scanned]

        def parts() -> list[Stmt]:
            carry = ScalarAccumulators(self.types)
            part, begin, end = split(group.row)
            emitter = self.elements.emitter()
            before = carry.write(emitter, carry.get(emitter, partial, group.row - self.c(1)))
            begins = IfThenElse(part > self.c(0), seq(*before), seq(*self.initial(carry)))
            scanned = group.scan(begin, size, end, carry, self.element, self.result)
            return [*carry.allocations, begins, scanned]

        return seq(
            group.kernel(self.rows * count, total_of_part),
            one.kernel(self.rows, totals),
            group.kernel(self.rows * count, parts),
        )

    def by_columns(self, count: int) -> Stmt:
        """A thread for each column and part."""
        size = -(-self.length // count)
        count = -(-self.length // size)
        rows = self.c(self.rows)
        partial = self._partial(self.rows * count) if count > 1 else []

        def steps(begin: Expr, carry: ScalarAccumulators, stores: bool) -> Stmt:
            own = ScalarAccumulators(self.types)

            def step(number: Expr) -> Stmt:
                at = begin + number
                made = [*own.allocations, *self.element(own, at), *self.merged(carry, carry, own)]
                if stores:
                    made += self.result(at, carry)
                if count * size == self.length:
                    return seq(*made)
                return IfThenElse(at < self.c(self.length), seq(*made), None)

            return loop(size, step, dtype=self.dtype)

        def total_of_part(number: Expr) -> list[Stmt]:
            carry = ScalarAccumulators(self.types)
            self.stand(tirx.truncmod(number, rows))
            begins = self.combiners.begin(self.elements.emitter(), carry)
            begin = tirx.truncdiv(number, rows) * self.c(size)
            reduced = steps(begin, carry, False)
            scope = self.elements.emitter()
            return [*begins, reduced, *carry.put(scope, partial, number, carry.read(scope))]

        def part(number: Expr) -> list[Stmt]:
            carry, own = ScalarAccumulators(self.types), ScalarAccumulators(self.types)
            self.stand(tirx.truncmod(number, rows))
            which = tirx.truncdiv(number, rows)
            made = [*carry.allocations, *self.initial(carry)]
            if count > 1:
                row = tirx.truncmod(number, rows)

                def earlier(other: Expr) -> Stmt:
                    emitter = self.elements.emitter()
                    got = own.get(emitter, partial, other * rows + row)
                    joined = [*own.write(emitter, got), *self.merged(carry, carry, own)]
                    return IfThenElse(other < which, seq(*joined), None)

                made += [*own.allocations, loop(count - 1, earlier, dtype=self.dtype)]
            return [*made, steps(which * self.c(size), carry, True)]

        last = shared_loop(self.rows * count, part, self.dtype)
        if count == 1:
            return last
        return seq(shared_loop(self.rows * count, total_of_part, self.dtype), last)

    def _partial(self, size: int) -> list[Buffer]:
        made = [memory_buffer(Shape(t, (size,))) for t in ScalarAccumulators(self.types).types]
        self.frame.scratch += made
        return made


class _Group:
    """The threads that scan a row: a warp among others of its block, or a block."""

    def __init__(self, work: _Scan, threads: int) -> None:
        self.work, self.threads = work, threads
        self.warps = threads // WARP
        self.side_by_side = BLOCK_OF_TEAMS // WARP if threads == WARP else 1
        self.row = self.thread = self.lane = self.warp = const(0, "int32")
        self.here: Expr | None = None

    def kernel(self, rows: int, body: Callable[[], Sequence[Stmt]]) -> Stmt:
        """The grid: a group for each row."""
        count = self.side_by_side
        width = const(WARP, "int32")

        def thread(block: Expr, number: Expr) -> Sequence[Stmt]:
            self.thread = number
            self.lane = tirx.truncmod(number, width)
            self.warp = tirx.truncdiv(number, width)
            self.row = self.work.index(block)
            if count == 1:
                return body()
            self.thread = self.lane
            self.row = self.row * self.work.c(count) + self.work.index(self.warp)
            # Warps without a row leave together.
            here = self.row < self.work.c(rows)
            return body() if rows % count == 0 else [IfThenElse(here, seq(*body()), None)]

        return blocks(-(-rows // count), self.threads * count, thread)

    def first(self, statements: Sequence[Stmt]) -> Stmt:
        return IfThenElse(self.thread < const(1, "int32"), seq(*statements), None)

    def scan(
        self,
        begin: Expr,
        size: int,
        end: Expr,
        carry: ScalarAccumulators,
        element: Callable[[ScalarAccumulators, Expr], Sequence[Stmt]],
        result: Callable[[Expr, ScalarAccumulators], Sequence[Stmt]] | None,
    ) -> Stmt:
        """Scans up to ``size`` elements from ``begin`` on, those before ``end``.

        ``carry`` goes in front, and is combined with all of them in the end.
        """
        work, types = self.work, self.work.types
        mine = [ScalarAccumulators(types) for _ in range(ELEMENTS)]
        total, other, prefix = (ScalarAccumulators(types) for _ in range(3))
        words = [shared(Shape(t, (self.warps,))) for t in total.types] if self.warps > 1 else []
        tile = self.threads * ELEMENTS
        tiles = -(-size // tile)

        def step(number: Expr) -> Stmt:
            first = begin + number * work.c(tile) + work.index(self.thread) * work.c(ELEMENTS)
            places = [first + work.c(k) for k in range(ELEMENTS)]
            made: list[Stmt] = []
            for at, own in zip(places, mine, strict=True):
                absent = work.identities(own)
                made.append(IfThenElse(at < end, seq(*element(own, at)), seq(*absent)))
            for own, left in zip(mine[1:], mine, strict=False):
                made += work.merged(own, left, own)
            made += work.copied(total, mine[-1])
            distance = 1
            while distance < WARP:
                made += self._from_lane(other, total, distance)
                joined = work.merged(total, other, total)
                made.append(IfThenElse(self._has_lane(distance), seq(*joined), None))
                distance *= 2
            made += self._from_lane(other, total, 1)  # the lanes before this one
            made += work.copied(prefix, carry)
            if words:
                made += self._from_warps(words, total, prefix, carry)
            joined = work.merged(prefix, prefix, other)
            made.append(IfThenElse(self._has_lane(1), seq(*joined), None))
            if not words:
                made += self._from_last_lane(other, total)
                made += work.merged(carry, carry, other)
            if result is not None:
                for at, own in zip(places, mine, strict=True):
                    stored = [*work.merged(own, prefix, own), *result(at, own)]
                    made.append(IfThenElse(at < end, seq(*stored), None))
            if words and tiles > 1:
                made.append(barrier())  # before the next tile's totals take the place of these
            return seq(*made)

        used = [*mine, total, other, prefix]
        allocations = [each for own in used for each in own.allocations]
        allocations += [AllocBuffer(word) for word in words]
        return seq(*allocations, loop(tiles, step, dtype=work.dtype))

    def _has_lane(self, distance: int) -> Expr:
        return self.lane >= const(distance, "int32")

    def _from_lane(
        self, target: ScalarAccumulators, source: ScalarAccumulators, distance: int
    ) -> list[Stmt]:
        """What the lane ``distance`` before this one has; its own where there is none."""
        return _shuffled("__shfl_up_sync", target, source, const(distance, "uint32"))

    def _from_last_lane(self, target: ScalarAccumulators, source: ScalarAccumulators) -> list[Stmt]:
        return _shuffled("__shfl_sync", target, source, const(WARP - 1, "int32"))

    def _from_warps(
        self,
        words: Sequence[Buffer],
        total: ScalarAccumulators,
        prefix: ScalarAccumulators,
        carry: ScalarAccumulators,
    ) -> list[Stmt]:
        """Combines ``prefix`` with the totals of the warps before, ``carry`` with those of all."""
        work = self.work
        scope = work.elements.emitter()
        puts = total.put(scope, words, self.warp, total.read(scope))
        is_last = self.lane >= const(WARP - 1, "int32")
        word = ScalarAccumulators(work.types)

        def step(number: Expr) -> Stmt:
            scope = work.elements.emitter()
            got = word.write(scope, word.get(scope, words, number))
            joined = seq(*work.merged(prefix, prefix, word))
            before = IfThenElse(number < self.warp, joined, None)
            return seq(*got, before, *work.merged(carry, carry, word))

        return [
            *word.allocations,
            IfThenElse(is_last, seq(*puts), None),
            barrier(),
            loop(self.warps, step),
        ]


def _shuffled(
    function: str, target: ScalarAccumulators, source: ScalarAccumulators, lane: Expr
) -> list[Stmt]:
    """All lanes exchange the parts of ``source``."""
    made: list[Stmt] = []
    mask = const(ALL_LANES, "uint32")
    for given, taken in zip(source.buffers, target.buffers, strict=True):
        for part in range(int(given.shape[0])):
            at = const(part, "int32")
            call = tirx.call_extern(str(given.dtype), function, mask, given[at], lane)
            made.append(store(taken, at, call))
    return made
