"""Cumulative reductions: one accumulator walks along an axis and stores at every step.

Where the axis is not the innermost one, a vector of accumulators walks, one for each neighbour.
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
        if last is not None:
            lanes = self.frame.lanes(self.shape.element_type, self.sizes[last])
            counts.append(self._blocks(last, lanes))
        parallel = self.frame.pieces(self.shape.size)
        return nest(
            counts,
            lambda: self._walk(last, lanes),
            parallel=parallel,
            dtype=self.dtype,
        )

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
                emitter = Emitter(
                    self.frame.inputs,
                    {},
                    lanes=lanes,
                    lane=lane,
                    uses=self.frame.uses,
                    index_dtype=self.dtype,
                )
                statements = body(emitter, lane)
                allocations.extend(emitter.allocations)
                return seq(*emitter.statements, *statements)

            statement = each(i32(0)) if lanes == 1 else loop(lanes, each, VECTORIZED)
            return [*allocations, statement]

        def step(number: Expr) -> list[Stmt]:
            end = const(self.sizes[self.work.axis] - 1, self.dtype)
            self.at[self.work.axis] = end - number if self.work.backwards else number
            return vector(lambda emitter, lane: self._step(emitter, into, lane))

        return [
            *into.allocations,
            *vector(lambda e, lane: into.write(e, lane, [e.value(self.work.initial, ())])),
            loop(self.sizes[self.work.axis], step, dtype=self.dtype),
        ]

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
