"""Sort under any comparator: a stable merge sort of indices.

Runs of 1, 2, 4 … indices are merged from one half of the scratch into the other. Every index that
is loaded was stored by an earlier pass, so no access leaves its row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracejit.backends.tvm.analysis.element_rules import Value
from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.cpu.schedule.sort.rows import RowSort, Sorting
from tracejit.backends.tvm.ir.tir import (
    AllocBuffer,
    Buffer,
    Expr,
    IfThenElse,
    Stmt,
    buffer,
    loop,
    seq,
    store,
    tirx,
)


class Merging(RowSort):
    """The kernel of a merge sort."""

    def __init__(self, frame: Frame, work: Sorting) -> None:
        super().__init__(frame, work, max(1, work.length.bit_length()))
        # Two halves of indices for every row.
        self.positions = buffer("order", (2 * self.rows * self.length,), self.dtype)

    def scratch(self) -> Sequence[Buffer]:
        return [self.positions]

    def ordered(self, row: Expr, base: Expr) -> tuple[list[Stmt], Callable[[Expr], Expr]]:
        source = row * self.number(2 * self.length)
        target = source + self.number(self.length)
        first = source
        statements = [
            loop(self.length, lambda i: store(self.positions, first + i, i), dtype=self.dtype)
        ]
        width = 1
        while width < self.length:
            statements.append(self._pass(base, source, target, width))
            source, target = target, source
            width *= 2
        return statements, lambda number: self.positions[source + number]

    def _pass(self, base: Expr, source: Expr, target: Expr, width: int) -> Stmt:
        """Merge adjacent runs of ``width``."""
        length = self.number(self.length)
        left = buffer("left", (1,), self.dtype, scope="local")
        right = buffer("right", (1,), self.dtype, scope="local")
        zero = self.number(0)

        def run(number: Expr) -> list[Stmt]:
            begin = number * self.number(2 * width)
            middle = tirx.min(begin + self.number(width), length)
            end = tirx.min(middle + self.number(width), length)

            def place(offset: Expr) -> list[Stmt]:
                # The clamped indices are loaded even if a run is used up; both exist.
                one = self.positions[source + tirx.min(left[zero], length - self.number(1))]
                two = self.positions[source + tirx.min(right[zero], length - self.number(1))]
                emitter = self.emitter()
                passes = self._before(emitter, base, two, one)
                takes = tirx.And(right[zero] < end, tirx.Or(left[zero] >= middle, passes))
                spot = target + begin + offset
                choose = IfThenElse(
                    takes,
                    seq(
                        store(self.positions, spot, two),
                        store(right, zero, right[zero] + self.number(1)),
                    ),
                    store(left, zero, left[zero] + self.number(1)),
                )
                # The verifier sees that every position is stored.
                first_of_two = store(self.positions, spot, one)
                return [*emitter.allocations, *emitter.statements, first_of_two, choose]

            return [
                store(left, zero, begin),
                store(right, zero, middle),
                loop(end - begin, place, dtype=self.dtype),
            ]

        runs = -(-self.length // (2 * width))
        return seq(AllocBuffer(left), AllocBuffer(right), loop(runs, run, dtype=self.dtype))

    def _before(self, emitter: Emitter, base: Expr, first: Expr, second: Expr) -> Value:
        """Whether the element at index ``first`` of the row must precede that at ``second``."""
        arguments = [
            emitter.hold(
                self.load(emitter, operand, base, position), operand.array_shape.element_type
            )
            for operand in self.work.operands
            for position in (first, second)
        ]
        # The comparator does not read operands that were removed.
        unused = len(self.work.comparator.parameters) - len(arguments)
        return emitter.apply(self.work.comparator, [*arguments, *arguments[:1] * unused])
