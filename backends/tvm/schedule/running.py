"""Cumulative reductions: one accumulator walks along an axis and stores at every step.

Where the axis is not the innermost one, a vector of accumulators walks, one for each neighbour. Of
an innermost axis several rows are walked side by side, since each step waits for the one before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tracejit.backends.tvm.affine import Affine, Index, Opaque, row_major_strides
from tracejit.backends.tvm.schedule.frame import Frame
from tracejit.backends.tvm.schedule.loops import Count, nest
from tracejit.backends.tvm.schedule.sweep import Accumulators
from tracejit.backends.tvm.scope import Emitter
from tracejit.backends.tvm.tir import (
    VECTORIZED,
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

# Rows that are walked side by side: a step may take ten cycles, and does four things.
ROWS = 8


@dataclass(frozen=True)
class Running:
    """A cumulative reduction of ``operand`` along ``axis``, from its end if ``backwards``."""

    operand: Instruction
    initial: Instruction
    combine: Computation
    axis: int
    backwards: bool
    target: Buffer


def running(frame: Frame, work: Running) -> Stmt:
    """The whole kernel."""
    frame.schedule = "running reduction"
    return _Walk(frame, work).statement()


class _Walk:
    def __init__(self, frame: Frame, work: Running) -> None:
        self.frame = frame
        self.work = work
        self.dtype = frame.index_dtype
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
        parallel = self.frame.pieces(self.shape.size)
        return nest(
            counts,
            lambda: self._walk(last, lanes) if rows is None else self._walk_rows(rows),
            parallel=parallel,
            dtype=self.dtype,
        )

    def _is_side_by_side(self, rows: int) -> bool:
        """Whether rows are walked together; the last of them twice where they do not divide."""
        return rows >= ROWS and (rows % ROWS == 0 or not self.frame.apart)

    def _placing(self, dimension: int) -> Callable[[Expr], None]:
        def place(number: Expr) -> None:
            self.at[dimension] = number

        return place

    def _blocks(self, dimension: int, lanes: int) -> Count:
        size = self.sizes[dimension]

        def place(number: Expr) -> None:
            first = number * const(lanes, self.dtype)
            if size % lanes:
                first = tirx.min(first, const(size - lanes, self.dtype))
            self.at[dimension] = first

        return Count(-(-size // lanes), place)

    def _walk(self, along: int | None, lanes: int) -> list[Stmt]:
        into = Accumulators([self.shape.element_type], lanes)
        start = None if along is None else self.at[along]

        def vector(body: Callable[[Emitter, Expr], list[Stmt]]) -> list[Stmt]:
            allocations: list[Stmt] = []

            def each(lane: Expr) -> Stmt:
                if along is not None:
                    offset = lane if self.dtype == "int32" else tirx.Cast(self.dtype, lane)
                    self.at[along] = start + offset
                emitter = self._emitter(lanes, lane)
                statements = body(emitter, lane)
                allocations.extend(emitter.allocations)
                return seq(*emitter.statements, *statements)

            statement = each(i32(0)) if lanes == 1 else loop(lanes, each, VECTORIZED)
            return [*allocations, statement]

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
            self.frame.inputs,
            {},
            lanes=lanes,
            lane=lane,
            uses=self.frame.uses,
            index_dtype=self.dtype,
        )

    def _walk_rows(self, dimension: int) -> list[Stmt]:
        into = Accumulators([self.shape.element_type], ROWS)
        first = self.at[dimension]

        def each(body: Callable[[Emitter, Expr], list[Stmt]]) -> list[Stmt]:
            emitters = [self._emitter() for _ in range(ROWS)]
            statements = []
            for number, emitter in enumerate(emitters):
                self.at[dimension] = first + const(number, self.dtype)
                made = body(emitter, i32(number))
                statements += [*emitter.statements, *made]
            self.at[dimension] = first
            return [*(a for emitter in emitters for a in emitter.allocations), *statements]

        def step(number: Expr) -> list[Stmt]:
            self._stand_at(number)
            return each(lambda emitter, row: self._step(emitter, into, row))

        return [
            *into.allocations,
            *each(lambda e, row: into.write(e, row, [e.value(self.work.initial, ())])),
            loop(self.sizes[self.work.axis], step, dtype=self.dtype),
        ]

    def _stand_at(self, number: Expr) -> None:
        end = const(self.sizes[self.work.axis] - 1, self.dtype)
        self.at[self.work.axis] = end - number if self.work.backwards else number

    def _step(self, emitter: Emitter, into: Accumulators, lane: Expr) -> list[Stmt]:
        where: list[Index] = [
            Opaque(number) if size > 1 else Affine()
            for number, size in zip(self.at, self.sizes, strict=True)
        ]
        element = emitter.value(self.work.operand, where)
        (old,) = into.read(emitter, lane)
        value = emitter.accumulate(self.work.combine, [old, element])
        element_type = self.shape.element_type
        address = const(0, self.dtype)
        for number, stride in zip(self.at, row_major_strides(self.sizes), strict=True):
            address = address + number * const(stride, self.dtype)
        settled = emitter.hold(emitter.settled(value, element_type), element_type)
        made = emitter.store(self.work.target, address, settled, element_type)
        written = made if isinstance(made, list) else [made]
        return [*into.write(emitter, lane, [value]), *written]
