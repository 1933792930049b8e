"""Row kernels over strided rows: processes a panel of adjacent columns, one row per lane.

The panel's data stays in cache from the first phase to the last.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.loop_nest import Count, nest
from tracejit.backends.tvm.cpu.machine import machine_of
from tracejit.backends.tvm.cpu.schedule.reduce.accumulators import Accumulators, Range
from tracejit.backends.tvm.cpu.schedule.reduce.combining import held
from tracejit.backends.tvm.cpu.schedule.rows.phases import PhaseSweep, VectorPhases
from tracejit.backends.tvm.fusion.kernel import Fusion
from tracejit.backends.tvm.fusion.row_buffers import RowEmitter
from tracejit.backends.tvm.fusion.row_fusion import RowKernel
from tracejit.backends.tvm.ir.tir import PARALLEL, SERIAL, Buffer, Expr, Stmt, loop, seq, tirx
from tracejit.backends.tvm.tune.knobs import counts as numbers
from tracejit.graph import Instruction

# The most vectors of a panel.
VECTORS = 8


class Columns(VectorPhases):
    """A row kernel whose last kept axis is contiguous, cut into panels of columns."""

    def __init__(
        self, frame: Frame, kernel: RowKernel, stored: Mapping[Instruction, Buffer]
    ) -> None:
        super().__init__(frame, kernel, stored)
        self._first = self._offset = self._base = self.number(0)

    def local_layout(self) -> tuple[int, int]:
        frame, phases, rows = self.frame, self.kernel.phases, self.rows
        *_, self.axis = self.row_axes
        columns = self.axis.extent
        types = [held(i.array_shape.element_type) for p in phases for i in (*p.results, *p.anchors)]
        widest = max(types, key=lambda t: t.dtype.itemsize)
        self.lanes = frame.lanes(widest, columns)
        whole = {r for p in phases for r in p.results if rows.is_whole(r.array_shape.dimensions)}
        arrays = 1 + len(whole.difference(self.stored))
        line = self.lanes * widest.dtype.itemsize * rows.length
        self.vectors = _vectors(frame, columns, self.lanes, line * arrays)
        width = self.lanes * self.vectors
        panels = -(-columns // width) * math.prod(rows.row_sizes) // columns
        self.shares = min(frame.pieces(frame.cost * math.prod(rows.dimensions)), panels)
        return width, self.shares

    def statement(self) -> Stmt:
        """The panels, in parallel shares; each share has its own local buffers."""
        width, extent = self.local.width, self.axis.extent

        def place(number: Expr) -> None:
            first = number * self.number(width)
            if extent % width:
                first = tirx.min(first, self.number(extent - width))
            self._first = first

        counts = [*map(self.count, self.row_axes[:-1]), Count(-(-extent // width), place)]
        panels = math.prod(count.extent for count in counts)
        size = -(-panels // self.shares)

        def share(number: Expr) -> Stmt:
            begin = number * self.number(size)
            self._base = number * self.number(width * self.rows.length)
            left = tirx.max(
                tirx.min(self.number(size), self.number(panels) - begin), self.number(0)
            )
            return loop(left, lambda n: panel(begin + n), dtype=self.dtype)

        def panel(number: Expr) -> list[Stmt]:
            for count in reversed(counts[1:]):
                count.place(tirx.truncmod(number, self.number(count.extent)))
                number = tirx.truncdiv(number, self.number(count.extent))
            counts[0].place(number)
            return self.row()

        stacked = self.frame.allocate(self.local.whole.values())
        kind = PARALLEL if self.shares > 1 else SERIAL
        return seq(*stacked, loop(self.shares, share, kind, dtype=self.dtype))

    def own_buffers(self) -> Iterable[Buffer]:
        return self.local.values.values()

    def emitter(self, phase: Fusion, lanes: int = 1, lane: Expr | None = None) -> RowEmitter:
        made = super().emitter(phase, lanes, lane)
        made.row = self._offset + self.index(made.lane)
        made.base = self._base
        return made

    def _side_by_side(self, vector: Callable[[], list[Stmt]]) -> Stmt:
        """``body`` for each vector of the panel, at the position of its first lane."""

        def one(number: Expr) -> list[Stmt]:
            self._offset = number * self.number(self.lanes)
            self.positions[self.axis.last] = self._first + self._offset
            return vector()

        return loop(self.vectors, one, dtype=self.dtype)

    def reductions(self, phase: Fusion) -> list[Stmt]:
        sweep = PhaseSweep(self, phase)
        into = Accumulators(sweep.reducer.element_types, self.lanes * self.vectors)

        def vectors(body: Callable[[Emitter, Expr], list[Stmt]]) -> Stmt:
            def one() -> list[Stmt]:
                offset = self._offset
                return sweep.vector(
                    self.lanes, self.axis, lambda e, lane: body(e, offset + self.index(lane))
                )

            return self._side_by_side(one)

        def step(emitter: Emitter, at: Expr) -> list[Stmt]:
            return into.write(emitter, at, sweep.joined(emitter, into.read(emitter, at)))

        def finish(emitter: Emitter, at: Expr) -> list[Stmt]:
            sweep.settle(emitter, into.read(emitter, at))
            return self.store(emitter, phase)

        ranges = [Range(a, self.number(0), self.number(a.extent)) for a in self.inner_axes]
        return [
            *into.allocations,
            vectors(lambda e, at: into.write(e, at, sweep.initial(e))),
            sweep.over(ranges, lambda: [vectors(step)]),
            vectors(finish),
        ]

    def elements(self, phase: Fusion) -> list[Stmt]:
        counts = [self.count(a) for a in self.inner_axes]
        return [nest(counts, lambda: self.values(phase), dtype=self.dtype)]

    def values(self, phase: Fusion) -> list[Stmt]:
        return [self._side_by_side(lambda: self.vector(phase, self.axis, self.lanes))]


def _vectors(frame: Frame, columns: int, lanes: int, line: int) -> int:
    """The width of a panel in vectors; a vector takes ``line`` bytes of all arrays.

    As many as fit in cache, with few columns computed twice by the last panel.
    """

    def computed(count: int) -> int:
        """The number of columns that are computed, including those that the last panel repeats."""
        width = count * lanes
        return -(-columns // width) * width

    most = min(VECTORS, columns // lanes, machine_of(frame).l2 // line)
    counts = range(1, max(most, 1) + 1)
    best = min(counts, key=lambda n: (computed(n), -n))
    return frame.choices.of("columns", numbers(best, counts, "vectors"))
