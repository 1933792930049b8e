"""Kernels that combine elements: Reduce, and ReduceWindow over a padded operand.

Loops over kept dimensions surround loops over reduced ones. Where neighbours in memory are
reduced together (rows), vectors of accumulators run along the reduced axis and are combined at the
end; where they are kept apart (columns), vectors run along the kept axis. The order of
combination depends on shapes only, never on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tracejit.backends.tvm.accesses import Accesses
from tracejit.backends.tvm.choices import either
from tracejit.backends.tvm.emitter import Emitter
from tracejit.backends.tvm.schedule.frame import Frame
from tracejit.backends.tvm.schedule.loops import Axis, Count, Space, merge, nest, settle
from tracejit.backends.tvm.schedule.pointwise import identity
from tracejit.backends.tvm.schedule.row_kernels import WholeRows, row_in_text
from tracejit.backends.tvm.schedule.sweep import Accumulators, Range, Reducer, Sweep
from tracejit.backends.tvm.scope import Value
from tracejit.backends.tvm.tir import Expr, Stmt, const, i32, importing, loop, seq, tirx
from tracejit.graph import Instruction

# A reduction of at least this many elements to few results is cut into parts that run in parallel.
PARTS_FROM = 1 << 15
PARTS = 8
# Columns are reduced this many vectors at a time, and this many rows at a step.
VECTORS = 8
ROWS = 8


def reduction(frame: Frame, reducer: Reducer, cost: int) -> Stmt:
    """The whole kernel: kept loops outside, reduced loops inside, results stored at the end."""
    return _Reduction(frame, reducer, cost).statement()


class _Reduction(Sweep):
    def __init__(self, frame: Frame, reducer: Reducer, cost: int) -> None:
        super().__init__(frame, reducer, Space(reducer.kept), Space(reducer.reduced), {})
        self.visible = frame.inputs.without(
            {*(root for root, _ in reducer.results), *reducer.hearts}
        )
        accesses = settle([self.kept, self.reduced], self._ask, self._is_input)
        addresses = [load.address for load in accesses.loads]
        self.loads = addresses[: self._operand_loads]
        addresses.append(identity(reducer.kept)(self.kept.indices))
        self.kept_axes = merge(self.kept.variables, addresses, accesses.opaque)
        self.reduced_axes = merge(self.reduced.variables, addresses, accesses.opaque)
        self.kept_size = _size(self.kept_axes)
        self.reduced_size = _size(self.reduced_axes)
        self.work = cost * self.kept_size * self.reduced_size

    def _is_input(self, instruction: Instruction) -> bool:
        return instruction in self.visible

    def _ask(self, scope: Accesses) -> None:
        where = self.reducer.locate(self.kept.indices, self.reduced.indices)
        for operand in self.reducer.operands:
            scope.value(operand, where)
        self._operand_loads = len(scope.loads)
        for initial in self.reducer.initial:
            scope.value(initial, ())
        scope.known.update(self.reducer.hearts)
        for root, _ in self.reducer.results:
            if root not in scope.known:
                scope.result(root, self.kept.indices)

    # Choosing

    def statement(self) -> Stmt:
        vectorisable = self.reducer.has_identities
        inner = self.reduced_axes[-1] if self.reduced_axes else None
        outer = self.kept_axes[-1] if self.kept_axes else None
        ways: dict[str, Callable[[], Stmt]] = {}
        if inner is not None and vectorisable:
            ways["rows"] = lambda: self._rows(inner)
        if outer is not None:
            ways["columns"] = lambda: self._columns(outer)
        if "rows" in ways and self._runs_along(inner):
            pick = "rows"
        elif self._runs_along(outer):
            pick = "columns"
        else:
            pick = "rows" if "rows" in ways else "numbers"
            ways["numbers"] = lambda: self._columns(None)
        names = dict.fromkeys((pick, *ways))
        return self.frame.choices.of("vectors along", ((n, ways[n]) for n in names))()

    def _runs_along(self, axis: Axis | None) -> bool:
        """Whether the loads mostly take neighbours in memory along ``axis``."""
        if axis is None:
            return False
        steps = [address.coefficient(axis.last) for address in self.loads]
        moving = [step for step in steps if step]
        return not moving or sum(step == 1 for step in moving) * 2 > len(moving)

    def parallel(self) -> int:
        return self.frame.pieces(self.work)

    def emitter(self, lanes: int = 1, lane: Expr | None = None) -> Emitter:
        return Emitter(
            self.visible,
            self.positions,
            lanes=lanes,
            lane=lane,
            uses=self.frame.uses,
            index_dtype=self.dtype,
        )

    def finish(self, emitter: Emitter, values: Sequence[Value]) -> list[Stmt]:
        """Rounds the results, runs the epilogue and stores."""
        self.settle(emitter, values)
        address = emitter.expression(identity(self.reducer.kept)(self.kept.indices))
        written: list[Stmt] = []
        for root, target in self.reducer.results:
            known = emitter.given.get(root)
            value = emitter.result(root, self.kept.indices) if known is None else known
            made = emitter.store(target, address, value, root.array_shape.element_type)
            written.extend(made if isinstance(made, list) else [made])
        return written

    def finished(self, total: Accumulators) -> list[Stmt]:
        return self.scalar(lambda emitter, at: self.finish(emitter, total.read(emitter, at)))

    # Columns: vectors along the last kept axis, or scalars when there is none

    def _columns(self, axis: Axis | None) -> Stmt:
        self.frame.schedule = "column reduction"
        lanes = self.lanes(axis.extent) if axis is not None else 1
        counts = [self.count(a) for a in self.kept_axes if a is not axis]
        if axis is not None and self._is_wide(axis, lanes):
            return self._wide_columns(axis, lanes, counts)
        if axis is not None:
            counts.append(self._blocks(axis, lanes))
        whole = [Range(a, self.number(0), self.number(a.extent)) for a in self.reduced_axes]
        if self._in_parts(len(counts) and _product(counts)):
            return self._column_parts(axis, lanes, counts)

        def block() -> list[Stmt]:
            into = Accumulators(self.reducer.element_types, lanes)
            return [
                *into.allocations,
                *self.vector(lanes, axis, lambda e, lane: into.write(e, lane, self.initial(e))),
                self.over(whole, lambda: self.vector(lanes, axis, self.step(into))),
                *self.vector(lanes, axis, lambda e, lane: self.finish(e, into.read(e, lane))),
            ]

        return nest(counts, block, parallel=self.parallel(), dtype=self.dtype)

    def _is_wide(self, axis: Axis, lanes: int) -> bool:
        """Whether columns are many enough to be taken `VECTORS` vectors at a time."""
        can_be = (
            self.reducer.has_identities
            and bool(self.reduced_axes)
            and axis.extent % (lanes * VECTORS) == 0
        )
        pick = self.kept_size >= 2 * lanes * VECTORS
        return can_be and self.frame.choices.of("columns", either(pick, "in tiles", "vectors"))

    def _wide_columns(self, axis: Axis, lanes: int, counts: list[Count]) -> Stmt:
        """Tiles of several vectors of columns; down a tile, several rows at a step.

        A row of a tile is contiguous, which the processor foresees, and the accumulators are read
        and written once for `ROWS` rows.
        """
        width = lanes * VECTORS
        first: list[Expr] = [self.number(0)]
        *outer, last = self.reduced_axes
        ranges = [Range(a, self.number(0), self.number(a.extent)) for a in outer]

        def place(number: Expr) -> None:
            first[:] = [number * self.number(width)]

        def tile() -> list[Stmt]:
            into = Accumulators(self.reducer.element_types, width)
            start = first[0]

            def vectors(body: Callable[[Emitter, Expr], list[Stmt]]) -> Stmt:
                def one(number: Expr) -> list[Stmt]:
                    offset = number * self.number(lanes)
                    self.positions[axis.last] = start + offset
                    return self.vector(lanes, axis, lambda e, lane: body(e, offset + lane))

                return loop(VECTORS, one, dtype=self.dtype)

            def rows(count: int) -> Callable[[Expr], Stmt]:
                def step(number: Expr) -> Stmt:
                    top = number * self.number(count)
                    if count == 1:
                        top = number + self.number(last.extent - last.extent % ROWS)
                    return vectors(lambda e, at: self._down(e, into, at, last, top, count))

                return step

            def sweep() -> list[Stmt]:
                return [
                    loop(last.extent // ROWS, rows(ROWS), dtype=self.dtype),
                    loop(last.extent % ROWS, rows(1), dtype=self.dtype),
                ]

            return [
                *into.allocations,
                vectors(lambda e, at: into.write(e, at, self.initial(e))),
                self.over(ranges, sweep),
                vectors(lambda e, at: self.finish(e, into.read(e, at))),
            ]

        counts.append(Count(axis.extent // width, place))
        return nest(counts, tile, parallel=self.parallel(), dtype=self.dtype)

    def _down(
        self, emitter: Emitter, into: Accumulators, at: Expr, axis: Axis, top: Expr, count: int
    ) -> list[Stmt]:
        """``count`` elements of one column, from ``top`` on, combined into accumulator ``at``."""
        values = into.read(emitter, at)
        for row in range(count):
            self.positions[axis.last] = top + self.number(row)
            inner = emitter.anew()
            values = self.joined(inner, values, once=False)
        return into.write(emitter, at, values)

    def _column_parts(self, axis: Axis | None, lanes: int, counts: list[Count]) -> Stmt:
        """Each part of the first reduced axis into accumulators of its own; then the parts."""
        partial = Accumulators(self.reducer.element_types, PARTS * _product(counts) * lanes)
        slot: list[Expr] = [self.number(0)]

        def base(number: Expr) -> Expr:
            return (number * self.number(_product(counts)) + slot[0]) * self.number(lanes)

        def fill(number: Expr) -> list[Stmt]:
            into = Accumulators(self.reducer.element_types, lanes)
            ranges = self._part(self.reduced_axes, number)
            first = base(number)
            return [
                *into.allocations,
                *self.vector(lanes, axis, lambda e, lane: into.write(e, lane, self.identity())),
                self.over(ranges, lambda: self.vector(lanes, axis, self.step(into))),
                *self.vector(
                    lanes,
                    axis,
                    lambda e, lane: partial.write(e, first + lane, into.read(e, lane)),
                ),
            ]

        def gather() -> list[Stmt]:
            into = Accumulators(self.reducer.element_types, lanes)

            def add(number: Expr) -> list[Stmt]:
                first = base(number)
                return self.vector(
                    lanes,
                    axis,
                    lambda e, lane: into.write(
                        e,
                        lane,
                        self.combined(e, into.read(e, lane), partial.read(e, first + lane)),
                    ),
                )

            return [
                *into.allocations,
                *self.vector(lanes, axis, lambda e, lane: into.write(e, lane, self.initial(e))),
                loop(PARTS, add, dtype=self.dtype),
                *self.vector(lanes, axis, lambda e, lane: self.finish(e, into.read(e, lane))),
            ]

        number: list[Expr] = []
        slots = _slots(counts, slot, self.dtype)
        parts = Count(PARTS, lambda n: number.__setitem__(slice(None), [n]))
        return seq(
            *self.frame.allocate(partial.buffers),
            nest([parts, *slots], lambda: fill(number[0]), parallel=PARTS, dtype=self.dtype),
            nest(_slots(counts, slot, self.dtype), gather, dtype=self.dtype),
        )

    def _blocks(self, axis: Axis, lanes: int) -> Count:
        def place(number: Expr) -> None:
            first = number * self.number(lanes)
            if axis.extent % lanes:
                first = tirx.min(first, self.number(axis.extent - lanes))
            self.positions[axis.last] = first

        return Count(-(-axis.extent // lanes), place)

    # Rows: vectors along the last reduced axis

    def _rows(self, axis: Axis) -> Stmt:
        self.frame.schedule = "row reduction" if self.kept_axes else "full reduction"
        whole = self._whole_rows(axis)
        if whole is not None:
            return whole
        counts = [self.count(a) for a in self.kept_axes]
        if self._in_parts(self.kept_size):
            return self._row_parts(axis, counts)
        ranges = [Range(a, self.number(0), self.number(a.extent)) for a in self.reduced_axes]

        def row() -> list[Stmt]:
            return self._combined_row(axis, ranges, self.initial, self.finish)

        return nest(counts, row, parallel=self.parallel(), dtype=self.dtype)

    def _whole_rows(self, axis: Axis) -> Stmt | None:
        """All rows at once, where that is possible."""
        if len(self.loads) != 1 or len(self.reduced_axes) != 1 or len(self.kept_axes) > 1:
            return None
        kept = self.kept_axes[0] if self.kept_axes else None
        parts = PARTS if self._in_parts(self.kept_size) else 1
        return WholeRows(self, axis, kept, self.loads[0], parts, self.work).statement()

    def _combined_row(
        self,
        axis: Axis,
        ranges: Sequence[Range],
        start: Callable[[Emitter], list[Value]],
        use: Callable[[Emitter, list[Value]], list[Stmt]],
    ) -> list[Stmt]:
        """``use`` of what all in ``ranges`` make, combined with ``start``."""
        text = row_in_text(self, ranges[0]) if len(ranges) == 1 else None
        if text is not None:
            code, first = text

            def called(emitter: Emitter, at: Expr) -> list[Stmt]:
                made = code.called(tirx.address_of(first), ranges[0].extent, *start(emitter))
                return use(emitter, [made])

            return [importing(code.text, seq(*self.scalar(called)))]
        total = Accumulators(self.reducer.element_types, 1)
        return [
            *total.allocations,
            *self.scalar(lambda e, at: total.write(e, at, start(e))),
            *self.row(axis, ranges, total, i32(0)),
            *self.scalar(lambda e, at: use(e, total.read(e, at))),
        ]

    def _row_parts(self, axis: Axis, counts: list[Count]) -> Stmt:
        """Each part of the first reduced axis into an accumulator of its own; then the parts."""
        results = _product(counts)
        partial = Accumulators(self.reducer.element_types, PARTS * results)
        slot: list[Expr] = [self.number(0)]

        def fill(number: Expr) -> list[Stmt]:
            at = number * self.number(results) + slot[0]
            return self._combined_row(
                axis,
                self._part(self.reduced_axes, number),
                lambda emitter: self.identity(),
                lambda emitter, values: partial.write(emitter, at, values),
            )

        def gather() -> list[Stmt]:
            total = Accumulators(self.reducer.element_types, 1)

            def add(number: Expr) -> list[Stmt]:
                at = number * self.number(results) + slot[0]
                return self.scalar(
                    lambda e, lane: total.write(
                        e, lane, self.combined(e, total.read(e, lane), partial.read(e, at))
                    )
                )

            best = self.best_of(1) if results == 1 else None
            if best is None:
                gathered = [loop(PARTS, add, dtype=self.dtype)]
            else:
                # In every place then, of which the first is added.
                find = self.found_at
                gathered = self.vector(PARTS, None, lambda e, at: find(e, best, [partial], at))
                gathered += add(self.number(0))
            return [
                *total.allocations,
                *self.scalar(lambda e, lane: total.write(e, lane, self.initial(e))),
                *gathered,
                *self.finished(total),
            ]

        number: list[Expr] = []
        parts = Count(PARTS, lambda n: number.__setitem__(slice(None), [n]))
        slots = _slots(counts, slot, self.dtype)
        return seq(
            *self.frame.allocate(partial.buffers),
            nest([parts, *slots], lambda: fill(number[0]), parallel=PARTS, dtype=self.dtype),
            nest(_slots(counts, slot, self.dtype), gather, dtype=self.dtype),
        )

    # What both share

    def _in_parts(self, independent: int) -> bool:
        """Whether few results of many elements leave threads idle unless each is cut up."""
        can_be = (
            self.reducer.has_identities
            and independent < 2 * PARTS
            and bool(self.reduced_axes)
            and self.reduced_axes[0].extent >= PARTS
        )
        pick = self.work >= PARTS_FROM
        return can_be and self.frame.choices.of("sums", either(pick, f"{PARTS} parts", "whole"))

    def _part(self, axes: Sequence[Axis], number: Expr) -> list[Range]:
        """Part ``number`` of the first axis, and the other axes whole."""
        first, *others = axes
        size = -(-first.extent // PARTS)
        begin, extent = number * self.number(size), self.number(size)
        if first.extent % PARTS and self.may_repeat:
            begin = tirx.min(begin, self.number(first.extent - size))
        elif first.extent % PARTS:
            begin = tirx.min(begin, self.number(first.extent))
            extent = tirx.min(extent, self.number(first.extent) - begin)
        whole = [Range(a, self.number(0), self.number(a.extent)) for a in others]
        return [Range(first, begin, extent), *whole]


def _size(axes: Sequence[Axis]) -> int:
    return math.prod(axis.extent for axis in axes)


def _product(counts: Sequence[Count]) -> int:
    return math.prod(count.extent for count in counts)


def _slots(counts: Sequence[Count], slot: list[Expr], dtype: str) -> list[Count]:
    """``counts`` that also keep in ``slot`` the number of the combination they stand at."""
    if not counts:
        slot[0] = const(0, dtype)
        return []
    places: list[Expr] = [const(0, dtype)] * len(counts)

    def counting(position: int, count: Count) -> Count:
        def place(number: Expr) -> None:
            places[position] = number
            count.place(number)
            total = const(0, dtype)
            for each, size in zip(places, counts, strict=True):
                total = total * const(size.extent, dtype) + each
            slot[0] = total

        return Count(count.extent, place)

    return [counting(i, count) for i, count in enumerate(counts)]
