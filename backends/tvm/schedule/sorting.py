"""Sort under any comparator: a stable merge sort of positions, row by row, then one gather.

Runs of 1, 2, 4 … positions are merged from one half of the scratch into the other. Every position
loaded is one that a pass before has stored, so no index leaves its row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tracejit.backends.tvm.affine import row_major_strides
from tracejit.backends.tvm.schedule.frame import Frame
from tracejit.backends.tvm.schedule.loops import Count, nest
from tracejit.backends.tvm.schedule.pointwise import PARALLEL_WORK
from tracejit.backends.tvm.scope import Emitter, Value
from tracejit.backends.tvm.tir import (
    AllocBuffer,
    Buffer,
    Expr,
    IfThenElse,
    Stmt,
    buffer,
    const,
    loop,
    seq,
    store,
    tirx,
)
from tracejit.graph import Computation, Instruction


@dataclass(frozen=True)
class Sorting:
    """What is sorted: ``operands`` together along ``dimension``.

    ``targets`` pairs each result's buffer with the operand it is a permutation of, or None for
    the positions themselves. Of each row the first ``kept`` places are stored.
    """

    operands: Sequence[Instruction]
    dimension: int
    comparator: Computation
    targets: Sequence[tuple[Buffer, Instruction | None]]
    kept: int

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.operands[0].array_shape.dimensions


def sorting(frame: Frame, work: Sorting) -> Stmt:
    """The whole kernel."""
    return _Rows(frame, work).statement()


class _Rows:
    def __init__(self, frame: Frame, work: Sorting) -> None:
        self.frame = frame
        self.work = work
        self.dtype = frame.index_dtype
        self.length = work.sizes[work.dimension]
        self.others = [d for d in range(len(work.sizes)) if d != work.dimension]
        self.at: dict[int, Expr] = {}
        rows = 1
        for d in self.others:
            rows *= work.sizes[d]
        # Two halves of positions for every row.
        self.positions = buffer("order", (2 * rows * self.length,), self.dtype)
        self.in_memory = {operand: frame.inputs[operand] for operand in work.operands}
        self.strides = row_major_strides(work.sizes)
        result = list(work.sizes)
        result[work.dimension] = work.kept
        self.result_strides = row_major_strides(result)
        self.steps = rows * self.length * max(1, self.length.bit_length())

    def number(self, value: int) -> Expr:
        return const(value, self.dtype)

    def statement(self) -> Stmt:
        counts = [Count(self.work.sizes[d], self._placing(d)) for d in self.others]
        parallel = 4 * self.frame.machine.threads if self.steps * 8 >= PARALLEL_WORK else 1
        body = nest(counts, self._row, parallel=parallel, dtype=self.dtype)
        return seq(*self.frame.allocate([self.positions]), body)

    def _placing(self, dimension: int) -> Callable[[Expr], None]:
        def place(number: Expr) -> None:
            self.at[dimension] = number

        return place

    def _base(self, strides: Sequence[int]) -> Expr:
        total = self.number(0)
        for d in self.others:
            total = total + self.at[d] * self.number(strides[d])
        return total

    def _row(self) -> list[Stmt]:
        row = self.number(0)
        for d in self.others:
            row = row * self.number(self.work.sizes[d]) + self.at[d]
        first = row * self.number(2 * self.length)
        second = first + self.number(self.length)
        base = self._base(self.strides)
        started = loop(self.length, lambda i: store(self.positions, first + i, i), dtype=self.dtype)
        statements = [started]
        source, target = first, second
        width = 1
        while width < self.length:
            statements.append(self._pass(base, source, target, width))
            source, target = target, source
            width *= 2
        statements.append(self._stored(base, source))
        return statements

    def _pass(self, base: Expr, source: Expr, target: Expr, width: int) -> Stmt:
        """Merges neighbouring runs of ``width``."""
        length = self.number(self.length)
        left = buffer("left", (1,), self.dtype, scope="local")
        right = buffer("right", (1,), self.dtype, scope="local")
        zero = self.number(0)

        def run(number: Expr) -> list[Stmt]:
            begin = number * self.number(2 * width)
            middle = tirx.min(begin + self.number(width), length)
            end = tirx.min(middle + self.number(width), length)

            def place(offset: Expr) -> list[Stmt]:
                # The clamped positions are loaded even when a run is used up; both exist.
                one = self.positions[source + tirx.min(left[zero], length - self.number(1))]
                two = self.positions[source + tirx.min(right[zero], length - self.number(1))]
                emitter = Emitter(self.in_memory, {}, uses=self.frame.uses, index_dtype=self.dtype)
                passes = self._before(emitter, base, two, one)
                takes = tirx.And(right[zero] < end, tirx.Or(left[zero] >= middle, passes))
                spot = target + begin + offset
                choose = IfThenElse(
                    takes,
                    seq(
                        store(self.positions, spot, two),
                        store(right, zero, right[zero] + self.number(1)),
                    ),
                    seq(
                        store(self.positions, spot, one),
                        store(left, zero, left[zero] + self.number(1)),
                    ),
                )
                return [*emitter.allocations, *emitter.statements, choose]

            return [
                store(left, zero, begin),
                store(right, zero, middle),
                loop(end - begin, place, dtype=self.dtype),
            ]

        runs = -(-self.length // (2 * width))
        return seq(AllocBuffer(left), AllocBuffer(right), loop(runs, run, dtype=self.dtype))

    def _before(self, emitter: Emitter, base: Expr, first: Expr, second: Expr) -> Value:
        """Whether the element at position ``first`` of the row must precede that at ``second``."""
        stride = self.number(self.strides[self.work.dimension])
        arguments = []
        for operand in self.work.operands:
            element_type = operand.array_shape.element_type
            for position in (first, second):
                address = base + position * stride
                value = emitter.load(self.in_memory[operand], address, element_type)
                arguments.append(emitter.hold(value, element_type))
        return emitter.apply(self.work.comparator, arguments)

    def _stored(self, base: Expr, source: Expr) -> Stmt:
        stride = self.number(self.strides[self.work.dimension])
        result_base = self._base(self.result_strides)
        result_stride = self.number(self.result_strides[self.work.dimension])

        def one(number: Expr) -> list[Stmt]:
            emitter = Emitter(self.in_memory, {}, index_dtype=self.dtype)
            position = self.positions[source + number]
            address = result_base + number * result_stride
            written: list[Stmt] = []
            for target, operand in self.work.targets:
                if operand is None:
                    written.append(store(target, address, tirx.Cast("int32", position)))
                    continue
                element_type = operand.array_shape.element_type
                value = emitter.load(
                    self.in_memory[operand], base + position * stride, element_type
                )
                made = emitter.store(target, address, value, element_type)
                written.extend(made if isinstance(made, list) else [made])
            return [*emitter.allocations, *emitter.statements, *written]

        return loop(self.work.kept, one, dtype=self.dtype)
