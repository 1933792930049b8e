"""Cumulative reductions: an accumulator runs along an axis and is stored at every step.

If the axis is not the innermost one, accumulators of adjacent elements form a vector. Along an
innermost axis several rows are interleaved, since each step depends on the one before. A few long
rows are cut into parts that are scanned independently; then each is combined with the total of the
parts before it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tracejit.affine import Affine
from tracejit.backends.tvm.analysis.element_rules import Value
from tracejit.backends.tvm.analysis.monoids import identities
from tracejit.backends.tvm.codegen.emitter import Emitter, literal
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.loop_nest import Count, in_vectors, nest
from tracejit.backends.tvm.cpu.kernels.tile import vector_loop
from tracejit.backends.tvm.cpu.schedule.lanes import as_index, side_by_side
from tracejit.backends.tvm.cpu.schedule.reduce.accumulators import Accumulators
from tracejit.backends.tvm.cpu.schedule.reduce.combining import held
from tracejit.backends.tvm.ir.affine import Index, Opaque, row_major_strides
from tracejit.backends.tvm.ir.tir import (
    PARALLEL,
    SERIAL,
    Buffer,
    Expr,
    Stmt,
    const,
    i32,
    loop,
    seq,
)
from tracejit.backends.tvm.tune.knobs import either
from tracejit.graph import Computation, Instruction
from tracejit.ops.constants import constant

# The number of interleaved rows: a step may take ten cycles, and has four operations.
ROWS = 8
# The number of groups of parts of a row that is cut.
GROUPS = 4
LINE_BITS = 512


@dataclass(frozen=True)
class CumulativeReduction:
    """A cumulative reduction of ``operand`` along ``axis``, from its end if ``backwards``.

    ``results`` are the kernel's outputs: (root, buffer) pairs, the ``anchor`` itself or an
    elementwise epilogue of it. A row that is cut has no epilogue.
    """

    operand: Instruction
    initial: Instruction
    combine: Computation
    axis: int
    backwards: bool
    anchor: Instruction
    results: tuple[tuple[Instruction, Buffer], ...]


def cumulative(frame: Frame, work: CumulativeReduction) -> Stmt:
    """The statement of the whole kernel."""
    frame.schedule = "running reduction"
    return _Walk(frame, work).statement()


class _Walk:
    def __init__(self, frame: Frame, work: CumulativeReduction) -> None:
        self.frame = frame
        self.work = work
        self.dtype = frame.index_dtype
        self.visible = frame.inputs.without({work.anchor, *(root for root, _ in work.results)})
        self.shape = work.operand.array_shape
        self.sizes = self.shape.dimensions
        self.at: list[Expr] = [const(0, self.dtype)] * len(self.sizes)
        self.others = [d for d in range(len(self.sizes)) if d != work.axis]

    def statement(self) -> Stmt:
        last = self.others[-1] if self.others else None
        if last is not None and (last < self.work.axis or self.sizes[last] == 1):
            last = None
        outer = [d for d in self.others if d != last]
        counts = [Count(self.sizes[d], self._placing(d)) for d in outer]
        lanes = 1
        rows = None
        if last is None and outer and self._is_side_by_side(self.sizes[outer[-1]]):
            rows = outer[-1]
            counts[-1] = self._blocks(rows, ROWS)
        if last is not None:
            lanes = self.frame.lanes(self.shape.element_type, self.sizes[last])
            counts.append(self._blocks(last, lanes))
        if last is None and rows is None and self._is_cut():
            return nest(counts, self._in_parts, dtype=self.dtype)
        parallel = self.frame.pieces(self.shape.size * max(self.frame.cost - 1, 1))
        return nest(
            counts,
            lambda: self._walk(last, lanes) if rows is None else self._walk_rows(rows),
            parallel=parallel,
            dtype=self.dtype,
        )

    def _is_side_by_side(self, rows: int) -> bool:
        """Whether rows are interleaved; the last group overlaps the one before if they do not
        divide.
        """
        return rows >= ROWS and (rows % ROWS == 0 or not self.frame.apart)

    def _placing(self, dimension: int) -> Callable[[Expr], None]:
        def place(number: Expr) -> None:
            self.at[dimension] = number

        return place

    def _blocks(self, dimension: int, lanes: int) -> Count:
        return in_vectors(self.sizes[dimension], lanes, self.dtype, self._placing(dimension))

    def _walk(self, along: int | None, lanes: int) -> list[Stmt]:
        into = Accumulators([self.shape.element_type], lanes)
        start = None if along is None else self.at[along]

        def vector(body: Callable[[Emitter, Expr], list[Stmt]]) -> list[Stmt]:
            def stand(lane: Expr) -> Emitter:
                if along is not None:
                    self.at[along] = start + as_index(lane, self.dtype)
                return self._emitter(lanes, lane)

            return side_by_side(lanes, stand, body)

        def step(number: Expr) -> list[Stmt]:
            self._stand_at(number)
            return vector(lambda emitter, lane: self._step(emitter, into, lane))

        return [
            *into.allocations,
            *vector(lambda e, lane: into.write(e, lane, [e.value(self.work.initial, ())])),
            loop(self.sizes[self.work.axis], step, dtype=self.dtype),
        ]

    def _emitter(self, lanes: int = 1, lane: Expr | None = None) -> Emitter:
        return Emitter(
            self.visible,
            {},
            lanes=lanes,
            lane=lane,
            uses=self.frame.uses,
            index_dtype=self.dtype,
        )

    def _walk_rows(self, dimension: int) -> list[Stmt]:
        into = Accumulators([self.shape.element_type], ROWS)
        first = self.at[dimension]

        def step(number: Expr) -> list[Stmt]:
            def row(emitter: Emitter, row: int) -> list[Stmt]:
                self.at[dimension] = first + const(row, self.dtype)
                self._stand_at(number)
                return self._step(emitter, into, i32(row))

            return self._each(row)

        def begin(emitter: Emitter, row: int) -> list[Stmt]:
            return into.write(emitter, i32(row), [emitter.value(self.work.initial, ())])

        size, lanes = self.sizes[self.work.axis], self._line()
        lines = size // lanes if lanes > 1 else 0
        done = self._number(lines * lanes)
        return [
            *into.allocations,
            *self._each(begin),
            *(self._scan_lines(dimension, into, lanes, lines) if lines else []),
            loop(size - lines * lanes, lambda number: step(done + number), dtype=self.dtype),
        ]

    def _line(self) -> int:
        """Elements in a cache line; 1 where rows are scanned element by element."""
        element_type = self.shape.element_type
        is_plain = held(element_type) is element_type and not element_type.is_complex
        return LINE_BITS // element_type.bits if is_plain and element_type.bits >= 8 else 1

    def _scan_lines(self, dimension: int, into: Accumulators, lanes: int, lines: int) -> list[Stmt]:
        """The first ``lines`` cache lines of each row, which are loaded, scanned and stored whole.

        Rows whose distance is a multiple of 4 KiB compete for one set of the first-level cache,
        which would lose a line between one of its elements and the next.
        """
        first, end = self.at[dimension], self.sizes[self.work.axis] - lanes
        panel = Accumulators([self.shape.element_type], ROWS * lanes)

        def each_line(number: Expr, body: Callable[[Emitter, Expr], list[Stmt]]) -> list[Stmt]:
            start = number * self._number(lanes)
            if self.work.backwards:
                start = self._number(end) - start

            def stand(row: int, lane: Expr) -> Emitter:
                self.at[dimension] = first + self._number(row)
                self.at[self.work.axis] = start + as_index(lane, self.dtype)
                return self._emitter(lanes, lane)

            def at(row: int, emitter: Emitter, lane: Expr) -> list[Stmt]:
                return body(emitter, row * lanes + lane)

            return [
                statement
                for row in range(ROWS)
                for statement in side_by_side(lanes, partial(stand, row), partial(at, row))
            ]

        def fill(emitter: Emitter, at: Expr) -> list[Stmt]:
            return panel.write(emitter, at, [emitter.value(self.work.operand, self._where())])

        def scan(step: Expr) -> list[Stmt]:
            lane = lanes - 1 - step if self.work.backwards else step

            def one(emitter: Emitter, row: int) -> list[Stmt]:
                at = row * lanes + lane
                values = [into.read(emitter, i32(row))[0], panel.read(emitter, at)[0]]
                made = emitter.accumulate(self.work.combine, values)
                made = emitter.hold(made, self.shape.element_type)
                return [*into.write(emitter, i32(row), [made]), *panel.write(emitter, at, [made])]

            return self._each(one)

        def drain(emitter: Emitter, at: Expr) -> list[Stmt]:
            return self._stored(emitter, panel.read(emitter, at)[0])

        def line(number: Expr) -> list[Stmt]:
            return [*each_line(number, fill), loop(lanes, scan), *each_line(number, drain)]

        return [*panel.allocations, loop(lines, line, dtype=self.dtype)]

    def _each(self, body: Callable[[Emitter, int], list[Stmt]]) -> list[Stmt]:
        """``body`` for each of the interleaved rows."""
        statements: list[Stmt] = []
        allocations: list[Stmt] = []
        for row in range(ROWS):
            emitter = self._emitter()
            made = body(emitter, row)
            allocations += emitter.allocations
            statements += [*emitter.statements, *made]
        return [*allocations, *statements]

    def _is_cut(self) -> bool:
        """Whether rows are cut into parts; depends on shapes only."""
        element_type = self.shape.element_type
        can_be = (
            identities(self.work.combine) is not None
            and held(element_type) is element_type
            and not element_type.is_complex
            and element_type.bits >= 8
        )
        # A step of integers takes one cycle: parts pay only for threads.
        limits = self.frame.limits
        has_threads = limits.threads > 1 and self.shape.size >= limits.parallel_work
        quick = not element_type.is_floating and not has_threads
        pick = self.sizes[self.work.axis] >= limits.cut_cumulative and not quick
        return can_be and self.frame.choices.of("rows", either(pick, "in parts", "whole"))

    def _in_parts(self) -> list[Stmt]:
        """One row: scans each part, then combines it with the total of the parts before."""
        element_type, combine = self.shape.element_type, self.work.combine
        size = self.sizes[self.work.axis] // (ROWS * GROUPS)
        rest = self.sizes[self.work.axis] - size * ROWS * GROUPS
        before = Accumulators([element_type], ROWS * GROUPS)
        total = Accumulators([element_type], 1)
        values = identities(combine)
        assert values is not None
        identity = literal(constant(values[0], element_type))

        def group(g: Expr) -> Stmt:
            into = Accumulators([element_type], ROWS)
            first = self._number(g) * self._number(ROWS)

            def step(number: Expr) -> list[Stmt]:
                def part(emitter: Emitter, row: int) -> list[Stmt]:
                    self._stand_at((first + self._number(row)) * self._number(size) + number)
                    return self._step(emitter, into, i32(row))

                return self._each(part)

            def end(emitter: Emitter, row: int) -> list[Stmt]:
                made = into.read(emitter, i32(row))
                return before.write(emitter, first + self._number(row), made)

            return seq(
                *into.allocations,
                *self._each(lambda e, row: into.write(e, i32(row), [identity])),
                loop(size, step, dtype=self.dtype),
                *self._each(end),
            )

        def shift(part: Expr) -> list[Stmt]:
            """Replaces each part's total by the total of the parts before it (an
            exclusive scan).
            """
            emitter = self._emitter()
            (own,), (known,) = before.read(emitter, part), total.read(emitter, i32(0))
            own, known = emitter.hold(own, element_type), emitter.hold(known, element_type)
            made = emitter.accumulate(combine, [known, own])
            written = [*before.write(emitter, part, [known]), *total.write(emitter, i32(0), [made])]
            return [*emitter.allocations, *emitter.statements, *written]

        def add(part: Expr) -> Stmt:
            start = self._number(part) * self._number(size)
            if self.work.backwards:
                start = self._number(self.sizes[self.work.axis] - size) - start

            ((_, target),) = self.work.results

            def element(i: Expr) -> Stmt:
                emitter = Emitter({}, {}, index_dtype=self.dtype, holding=False)
                self.at[self.work.axis] = start + (i if self.dtype == "int32" else self._number(i))
                address = self._address()
                old = emitter.load(target, address, element_type)
                (known,) = before.read(emitter, part)
                made = emitter.accumulate(combine, [known, old])
                return emitter.store(target, address, made, element_type)

            return vector_loop(size, self.frame.lanes(element_type, size), element)

        def last(number: Expr) -> list[Stmt]:
            self._stand_at(number + self._number(size * ROWS * GROUPS))
            emitter = self._emitter()
            made = self._step(emitter, total, i32(0))
            return [*emitter.allocations, *emitter.statements, *made]

        kind = PARALLEL if self.frame.is_shared(2 * self.shape.size) else SERIAL
        emitter = self._emitter()
        begin = total.write(emitter, i32(0), [emitter.value(self.work.initial, ())])
        return [
            *before.allocations,
            *total.allocations,
            *emitter.allocations,
            loop(GROUPS, group, kind),
            *emitter.statements,
            *begin,
            loop(ROWS * GROUPS, shift),
            loop(ROWS * GROUPS, add, kind),
            loop(rest, last, dtype=self.dtype),
        ]

    def _number(self, value: int | Expr) -> Expr:
        if isinstance(value, int):
            return const(value, self.dtype)
        return as_index(value, self.dtype)

    def _stand_at(self, number: Expr) -> None:
        end = const(self.sizes[self.work.axis] - 1, self.dtype)
        self.at[self.work.axis] = end - number if self.work.backwards else number

    def _step(self, emitter: Emitter, into: Accumulators, lane: Expr) -> list[Stmt]:
        element = emitter.value(self.work.operand, self._where())
        (old,) = into.read(emitter, lane)
        value = emitter.accumulate(self.work.combine, [old, element])
        written = self._stored(emitter, value)
        return [*into.write(emitter, lane, [value]), *written]

    def _where(self) -> list[Index]:
        """The current element of the operand and of the results."""
        return [
            Opaque(number) if size > 1 else Affine()
            for number, size in zip(self.at, self.sizes, strict=True)
        ]

    def _stored(self, emitter: Emitter, value: Value) -> list[Stmt]:
        """Stores the results of the current element, whose cumulative value is known."""
        element_type = self.shape.element_type
        address = self._address()
        settled = emitter.hold(emitter.settled(value, element_type), element_type)
        emitter.given[self.work.anchor] = settled
        written: list[Stmt] = []
        for root, target in self.work.results:
            known = emitter.given.get(root)
            made = emitter.result(root, self._where()) if known is None else known
            stored = emitter.store(target, address, made, root.array_shape.element_type)
            written.extend(stored if isinstance(stored, list) else [stored])
        return written

    def _address(self) -> Expr:
        """The offset of the current element in the result."""
        address = const(0, self.dtype)
        for number, stride in zip(self.at, row_major_strides(self.sizes), strict=True):
            address = address + number * const(stride, self.dtype)
        return address
