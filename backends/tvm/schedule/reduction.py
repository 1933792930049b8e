"""Kernels that combine elements: Reduce, and ReduceWindow over a padded operand.

Loops over kept dimensions surround loops over reduced ones. Where neighbours in memory are
reduced together (rows), vectors of accumulators run along the reduced axis and are combined at the
end; where they are kept apart (columns), vectors run along the kept axis. The order of
combination depends on shapes only, never on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tracejit.backends.tvm.affine import Index, LoopVariable
from tracejit.backends.tvm.reducers import monoid
from tracejit.backends.tvm.schedule.frame import Frame, memory_buffer
from tracejit.backends.tvm.schedule.loops import Axis, Count, Space, merge, nest, settle
from tracejit.backends.tvm.schedule.pointwise import PARALLEL_WORK, identity
from tracejit.backends.tvm.scope import Accesses, Emitter, Value, literal
from tracejit.backends.tvm.tir import (
    VECTORIZED,
    AllocBuffer,
    Buffer,
    Expr,
    Stmt,
    const,
    i32,
    loop,
    seq,
    tirx,
)
from tracejit.graph import Computation, Instruction
from tracejit.ops.computations import identity_value
from tracejit.ops.constants import constant
from tracejit.shapes import ElementType, Shape

# A reduction of at least this many elements to few results is cut into parts that run in parallel.
PARTS_FROM = 1 << 15
PARTS = 8


@dataclass(frozen=True)
class Reducer:
    """What is combined: operands at an index over kept and reduced variables, and how.

    ``locate(kept, reduced)`` gives the operands' indices. ``results`` are the kernel's outputs:
    (root, buffer) pairs evaluated at the kept index with each of ``hearts`` already known.
    """

    operands: tuple[Instruction, ...]
    initial: tuple[Instruction, ...]
    combine: Computation
    kept: tuple[int, ...]
    reduced: tuple[int, ...]
    locate: Callable[[Sequence[Index], Sequence[Index]], list[Index]]
    hearts: tuple[Instruction, ...]
    results: tuple[tuple[Instruction, Buffer], ...]

    @property
    def element_types(self) -> list[ElementType]:
        return [operand.array_shape.element_type for operand in self.operands]


class Accumulators:
    """Local buffers, one per operand, of ``width`` partial results each."""

    def __init__(self, element_types: Sequence[ElementType], width: int) -> None:
        self.element_types = element_types
        self.buffers = [memory_buffer(Shape(_held(t), (width,)), "acc") for t in element_types]
        self.allocations = [AllocBuffer(b) for b in self.buffers]

    def read(self, emitter: Emitter, at: Expr) -> list[Value]:
        pairs = zip(self.buffers, self.element_types, strict=True)
        return [emitter.load(b, at, _held(t)) for b, t in pairs]

    def write(self, emitter: Emitter, at: Expr, values: Sequence[Value]) -> list[Stmt]:
        statements: list[Stmt] = []
        for b, t, value in zip(self.buffers, self.element_types, values, strict=True):
            made = emitter.store(b, at, value, _held(t))
            statements.extend(made if isinstance(made, list) else [made])
        return statements


def _held(element_type: ElementType) -> ElementType:
    """Narrow floats accumulate in f32."""
    if element_type.is_floating and element_type.bits < 32:
        return ElementType.F32
    return element_type


def reduction(frame: Frame, reducer: Reducer, cost: int) -> Stmt:
    """The whole kernel: kept loops outside, reduced loops inside, results stored at the end."""
    return _Reduction(frame, reducer, cost).statement()


class _Reduction:
    def __init__(self, frame: Frame, reducer: Reducer, cost: int) -> None:
        self.frame = frame
        self.reducer = reducer
        self.dtype = frame.index_dtype
        self.kept = Space(reducer.kept)
        self.reduced = Space(reducer.reduced)
        self.visible = frame.inputs.without(
            {*(root for root, _ in reducer.results), *reducer.hearts}
        )
        accesses = settle([self.kept, self.reduced], self._ask, self._is_input)
        addresses = [load.address for load in accesses.loads]
        self.loads = addresses[: self._operand_loads]
        addresses.append(identity(reducer.kept)(self.kept.indices))
        self.kept_axes = merge(self.kept.variables, addresses, accesses.opaque)
        self.reduced_axes = merge(self.reduced.variables, addresses, accesses.opaque)
        self.positions: dict[LoopVariable, Expr] = {}
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
        vectorisable = monoid(self.reducer.combine) is not None
        inner = self.reduced_axes[-1] if self.reduced_axes else None
        if inner is not None and vectorisable and self._runs_along(inner):
            return self._rows(inner)
        outer = self.kept_axes[-1] if self.kept_axes else None
        if outer is not None and self._runs_along(outer):
            return self._columns(outer)
        if inner is not None and vectorisable:
            return self._rows(inner)
        return self._columns(None)

    def _runs_along(self, axis: Axis) -> bool:
        """Whether the loads mostly take neighbours in memory along ``axis``."""
        steps = [address.coefficient(axis.last) for address in self.loads]
        moving = [step for step in steps if step]
        return not moving or sum(step == 1 for step in moving) * 2 > len(moving)

    # Shared pieces

    def emitter(self, lanes: int = 1, lane: Expr | None = None) -> Emitter:
        return Emitter(
            self.visible,
            self.positions,
            lanes=lanes,
            lane=lane,
            uses=self.frame.uses,
            index_dtype=self.dtype,
        )

    def elements(self, emitter: Emitter) -> list[Value]:
        where = self.reducer.locate(self.kept.indices, self.reduced.indices)
        return [emitter.value(operand, where) for operand in self.reducer.operands]

    def combined(
        self, emitter: Emitter, left: Sequence[Value], right: Sequence[Value]
    ) -> list[Value]:
        value = emitter.accumulate(self.reducer.combine, [*left, *right])
        return list(value) if len(self.reducer.operands) > 1 else [value]

    def initial(self, emitter: Emitter) -> list[Value]:
        return [emitter.value(initial, ()) for initial in self.reducer.initial]

    def finish(self, emitter: Emitter, values: Sequence[Value]) -> list[Stmt]:
        """Rounds the results, runs the epilogue and stores."""
        for heart, value, element_type in zip(
            self.reducer.hearts, values, self.reducer.element_types, strict=True
        ):
            emitter.given[heart] = emitter.hold(emitter.settled(value, element_type), element_type)
        address = emitter.expression(identity(self.reducer.kept)(self.kept.indices))
        written: list[Stmt] = []
        for root, target in self.reducer.results:
            known = emitter.given.get(root)
            value = emitter.result(root, self.kept.indices) if known is None else known
            made = emitter.store(target, address, value, root.array_shape.element_type)
            written.extend(made if isinstance(made, list) else [made])
        return written

    def count(self, axis: Axis) -> Count:
        def place(number: Expr) -> None:
            self.positions[axis.last] = number

        return Count(axis.extent, place)

    def parallel(self) -> int:
        return 4 * self.frame.machine.threads if self.work >= PARALLEL_WORK else 1

    def _index(self, lane: Expr) -> Expr:
        return lane if self.dtype == "int32" else tirx.Cast(self.dtype, lane)

    def _number(self, value: int) -> Expr:
        return const(value, self.dtype)

    def _vector(
        self, lanes: int, axis: Axis | None, body: Callable[[Emitter, Expr], list[Stmt]]
    ) -> list[Stmt]:
        """``body`` for every lane, the position on ``axis`` counted from where it stands now."""
        allocations: list[Stmt] = []
        start = None if axis is None else self.positions[axis.last]

        def each(lane: Expr) -> Stmt:
            if axis is not None:
                self.positions[axis.last] = start + self._index(lane)
            emitter = self.emitter(lanes, lane)
            statements = body(emitter, lane)
            allocations.extend(emitter.allocations)
            return seq(*emitter.statements, *statements)

        statement = each(i32(0)) if lanes == 1 else loop(lanes, each, VECTORIZED)
        if axis is not None:
            self.positions[axis.last] = start
        return [*allocations, statement]

    def _step(self, into: Accumulators) -> Callable[[Emitter, Expr], list[Stmt]]:
        """One more element combined into accumulator ``lane``."""

        def step(emitter: Emitter, lane: Expr) -> list[Stmt]:
            values = self.combined(emitter, into.read(emitter, lane), self.elements(emitter))
            return into.write(emitter, lane, values)

        return step

    def _scalar(self, body: Callable[[Emitter, Expr], list[Stmt]]) -> list[Stmt]:
        return self._vector(1, None, body)

    def _finished(self, total: Accumulators) -> list[Stmt]:
        return self._scalar(lambda emitter, at: self.finish(emitter, total.read(emitter, at)))

    # Columns: vectors along the last kept axis, or scalars when there is none

    def _columns(self, axis: Axis | None) -> Stmt:
        lanes = self._lanes(axis.extent) if axis is not None else 1
        counts = [self.count(a) for a in self.kept_axes if a is not axis]
        if axis is not None:
            counts.append(self._blocks(axis, lanes))
        whole = [Range(a, self._number(0), self._number(a.extent)) for a in self.reduced_axes]
        if self._in_parts(len(counts) and _product(counts)):
            return self._column_parts(axis, lanes, counts)

        def block() -> list[Stmt]:
            into = Accumulators(self.reducer.element_types, lanes)
            return [
                *into.allocations,
                *self._vector(lanes, axis, lambda e, lane: into.write(e, lane, self.initial(e))),
                self._over(whole, lambda: self._vector(lanes, axis, self._step(into))),
                *self._vector(lanes, axis, lambda e, lane: self.finish(e, into.read(e, lane))),
            ]

        return nest(counts, block, parallel=self.parallel(), dtype=self.dtype)

    def _column_parts(self, axis: Axis | None, lanes: int, counts: list[Count]) -> Stmt:
        """Each part of the first reduced axis into accumulators of its own; then the parts."""
        partial = Accumulators(self.reducer.element_types, PARTS * _product(counts) * lanes)
        slot: list[Expr] = [self._number(0)]

        def base(number: Expr) -> Expr:
            return (number * self._number(_product(counts)) + slot[0]) * self._number(lanes)

        def fill(number: Expr) -> list[Stmt]:
            into = Accumulators(self.reducer.element_types, lanes)
            ranges = self._part(self.reduced_axes, number)
            first = base(number)
            return [
                *into.allocations,
                *self._vector(lanes, axis, lambda e, lane: into.write(e, lane, self._identity())),
                self._over(ranges, lambda: self._vector(lanes, axis, self._step(into))),
                *self._vector(
                    lanes,
                    axis,
                    lambda e, lane: partial.write(e, first + lane, into.read(e, lane)),
                ),
            ]

        def gather() -> list[Stmt]:
            into = Accumulators(self.reducer.element_types, lanes)

            def add(number: Expr) -> list[Stmt]:
                first = base(number)
                return self._vector(
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
                *self._vector(lanes, axis, lambda e, lane: into.write(e, lane, self.initial(e))),
                loop(PARTS, add, dtype=self.dtype),
                *self._vector(lanes, axis, lambda e, lane: self.finish(e, into.read(e, lane))),
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
            first = number * self._number(lanes)
            if axis.extent % lanes:
                first = tirx.min(first, self._number(axis.extent - lanes))
            self.positions[axis.last] = first

        return Count(-(-axis.extent // lanes), place)

    # Rows: vectors along the last reduced axis

    def _rows(self, axis: Axis) -> Stmt:
        counts = [self.count(a) for a in self.kept_axes]
        if self._in_parts(self.kept_size):
            return self._row_parts(axis, counts)
        ranges = [Range(a, self._number(0), self._number(a.extent)) for a in self.reduced_axes]

        def row() -> list[Stmt]:
            total = Accumulators(self.reducer.element_types, 1)
            return [
                *total.allocations,
                *self._scalar(lambda e, at: total.write(e, at, self.initial(e))),
                *self._row(axis, ranges, total, i32(0)),
                *self._finished(total),
            ]

        return nest(counts, row, parallel=self.parallel(), dtype=self.dtype)

    def _row(
        self, axis: Axis, ranges: Sequence[Range], total: Accumulators, at: Expr
    ) -> list[Stmt]:
        """Combines everything in ``ranges`` into accumulator ``at`` of ``total``."""
        *outer, inner = ranges
        lanes = self._lanes(axis.extent)
        along = Accumulators(self.reducer.element_types, lanes)
        size = self._number(lanes)

        def sweep() -> list[Stmt]:
            blocks = tirx.truncdiv(inner.extent, size)

            def block(number: Expr) -> list[Stmt]:
                self.positions[axis.last] = inner.begin + number * size
                return self._vector(lanes, axis, self._step(along))

            def single(number: Expr) -> list[Stmt]:
                self.positions[axis.last] = inner.begin + blocks * size + number
                return self._scalar(lambda e, lane: self._step(total)(e, at))

            rest = tirx.truncmod(inner.extent, size)
            tail = loop(rest, single, dtype=self.dtype)
            return [loop(blocks, block, dtype=self.dtype), tail]

        def halve(width: int) -> list[Stmt]:
            def pair(emitter: Emitter, lane: Expr) -> list[Stmt]:
                left, right = along.read(emitter, lane), along.read(emitter, lane + width)
                return along.write(emitter, lane, self.combined(emitter, left, right))

            return self._vector(width, None, pair)

        def conclude(emitter: Emitter, lane: Expr) -> list[Stmt]:
            left, right = total.read(emitter, at), along.read(emitter, i32(0))
            return total.write(emitter, at, self.combined(emitter, left, right))

        widths = [lanes >> n for n in range(1, lanes.bit_length())]
        return [
            *along.allocations,
            *self._vector(lanes, None, lambda e, lane: along.write(e, lane, self._identity())),
            self._over(outer, sweep),
            *[statement for width in widths for statement in halve(width)],
            *self._scalar(conclude),
        ]

    def _row_parts(self, axis: Axis, counts: list[Count]) -> Stmt:
        """Each part of the first reduced axis into an accumulator of its own; then the parts."""
        results = _product(counts)
        partial = Accumulators(self.reducer.element_types, PARTS * results)
        slot: list[Expr] = [self._number(0)]

        def fill(number: Expr) -> list[Stmt]:
            at = number * self._number(results) + slot[0]
            total = Accumulators(self.reducer.element_types, 1)
            return [
                *total.allocations,
                *self._scalar(lambda e, lane: total.write(e, lane, self._identity())),
                *self._row(axis, self._part(self.reduced_axes, number), total, i32(0)),
                *self._scalar(lambda e, lane: partial.write(e, at, total.read(e, lane))),
            ]

        def gather() -> list[Stmt]:
            total = Accumulators(self.reducer.element_types, 1)

            def add(number: Expr) -> list[Stmt]:
                at = number * self._number(results) + slot[0]
                return self._scalar(
                    lambda e, lane: total.write(
                        e, lane, self.combined(e, total.read(e, lane), partial.read(e, at))
                    )
                )

            return [
                *total.allocations,
                *self._scalar(lambda e, lane: total.write(e, lane, self.initial(e))),
                loop(PARTS, add, dtype=self.dtype),
                *self._finished(total),
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

    def _lanes(self, extent: int) -> int:
        held = [_held(t) for t in self.reducer.element_types]
        return self.frame.lanes(max(held, key=lambda t: t.dtype.itemsize), extent)

    def _identity(self) -> list[Value]:
        op = monoid(self.reducer.combine)
        assert op is not None
        return [
            literal(constant(identity_value(op.function, t), _held(t)))
            for t in self.reducer.element_types
        ]

    def _in_parts(self, independent: int) -> bool:
        """Whether few results of many elements leave threads idle unless each is cut up."""
        return (
            monoid(self.reducer.combine) is not None
            and independent < 2 * PARTS
            and self.work >= PARTS_FROM
            and bool(self.reduced_axes)
            and self.reduced_axes[0].extent >= PARTS
        )

    def _part(self, axes: Sequence[Axis], number: Expr) -> list[Range]:
        """Part ``number`` of the first axis, and the other axes whole."""
        first, *others = axes
        size = -(-first.extent // PARTS)
        begin = tirx.min(number * self._number(size), self._number(first.extent))
        extent = tirx.min(self._number(size), self._number(first.extent) - begin)
        whole = [Range(a, self._number(0), self._number(a.extent)) for a in others]
        return [Range(first, begin, extent), *whole]

    def _over(self, ranges: Sequence[Range], body: Callable[[], list[Stmt]]) -> Stmt:
        if not ranges:
            return seq(*body())
        first, *rest = ranges

        def inside(number: Expr) -> Stmt:
            self.positions[first.axis.last] = first.begin + number
            return self._over(rest, body)

        return loop(first.extent, inside, dtype=self.dtype)


@dataclass(frozen=True)
class Range:
    """A stretch of an axis: from ``begin``, ``extent`` steps."""

    axis: Axis
    begin: Expr
    extent: Expr


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
