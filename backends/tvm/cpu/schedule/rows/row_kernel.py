"""Row kernels over contiguous rows: several reductions and pointwise phases over each row."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.loop_nest import Axis, in_vectors, nest
from tracejit.backends.tvm.cpu.schedule.reduce.accumulators import Accumulators, Range
from tracejit.backends.tvm.cpu.schedule.rows.column_kernel import Columns
from tracejit.backends.tvm.cpu.schedule.rows.phases import PhaseSweep, VectorPhases
from tracejit.backends.tvm.fusion.kernel import Fusion
from tracejit.backends.tvm.fusion.row_fusion import RowKernel
from tracejit.backends.tvm.ir.tir import Buffer, Expr, Stmt, i32
from tracejit.graph import Instruction


def row_kernel(
    frame: Frame, kernel: RowKernel, results: Sequence[tuple[Instruction, Buffer]]
) -> Stmt:
    """The statement of the whole kernel."""
    stored = dict(results)
    if kernel.rows.are_columns:
        frame.schedule = "columns side by side"
        return Columns(frame, kernel, stored).statement()
    frame.schedule = "row by row"
    return _AlongRows(frame, kernel, stored).statement()


class _AlongRows(VectorPhases):
    def statement(self) -> Stmt:
        counts = [self.count(axis) for axis in self.row_axes]
        return nest(counts, self.row, parallel=self.pieces, dtype=self.dtype)

    def reductions(self, phase: Fusion) -> list[Stmt]:
        sweep = PhaseSweep(self, phase)
        total = Accumulators(sweep.reducer.element_types, 1)

        def finish(emitter: Emitter, at: Expr) -> list[Stmt]:
            sweep.settle(emitter, total.read(emitter, at))
            return self.store(emitter, phase)

        ranges = [Range(a, self.number(0), self.number(a.extent)) for a in self.inner_axes]
        return [
            *total.allocations,
            *sweep.scalar(lambda e, at: total.write(e, at, sweep.initial(e))),
            *sweep.row(self.inner_axes[-1], ranges, total, i32(0)),
            *sweep.scalar(finish),
        ]

    def elements(self, phase: Fusion) -> list[Stmt]:
        """In vectors along the last axis; the last may overlap the one before."""
        *outer, axis = self.inner_axes or [Axis((), 1)]
        widest = max(
            (r.array_shape.element_type for r in phase.results), key=lambda t: t.dtype.itemsize
        )
        lanes = self.frame.lanes(widest, axis.extent)
        counts = [self.count(a) for a in outer]

        def place(first: Expr) -> None:
            if axis.members:
                self.positions[axis.last] = first

        counts.append(in_vectors(axis.extent, lanes, self.dtype, place))
        return [nest(counts, lambda: self.vector(phase, axis, lanes), dtype=self.dtype)]

    def values(self, phase: Fusion) -> list[Stmt]:
        emitter = self.emitter(phase)
        stores = self.store(emitter, phase)
        return [*emitter.allocations, *emitter.statements, *stores]
