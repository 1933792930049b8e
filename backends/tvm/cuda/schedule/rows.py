"""Row kernels: softmax, normalisations and losses in one launch, a team of threads for each row.

What is one value for each row is in registers of all its threads. Arrays of a row that only this
kernel reads are in registers where each thread reads its own elements, else in shared memory.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.codegen.kernel_frame import Frame, memory_buffer
from tracejit.backends.tvm.codegen.root_rules import Results
from tracejit.backends.tvm.codegen.scalar.accumulators import ScalarAccumulators
from tracejit.backends.tvm.codegen.scalar.elements import place
from tracejit.backends.tvm.cuda.blocks import UNROLLED_TURNS, Team, shared
from tracejit.backends.tvm.cuda.schedule.reduce import Combiners
from tracejit.backends.tvm.fusion.kernel import Fusion
from tracejit.backends.tvm.fusion.row_buffers import RowEmitter
from tracejit.backends.tvm.fusion.row_fusion import RowKernel
from tracejit.backends.tvm.fusion.row_phases import RowPhases
from tracejit.backends.tvm.ir.affine import Index, linear
from tracejit.backends.tvm.ir.tir import Buffer, Expr, Stmt, nbytes
from tracejit.graph import Instruction
from tracejit.shapes import Shape

LARGEST = 512
"""Threads of a team: more of them leave fewer registers to each."""


def row_kernel(frame: Frame, kernel: RowKernel, results: Results) -> Stmt:
    """The statement of the whole kernel."""
    frame.schedule = "team a row, in phases"
    return _Rows(frame, kernel, dict(results)).statement()


class _Emitter(RowEmitter):
    """Reads arrays in registers by the thread's turn."""

    rows: _Rows

    def place(
        self, instruction: Instruction, indices: Sequence[Index], dimensions: Sequence[int]
    ) -> Expr:
        if instruction in self.rows.private:
            return self.rows.team.turn
        return super().place(instruction, indices, dimensions)


class _Rows(RowPhases):
    def __init__(
        self, frame: Frame, kernel: RowKernel, stored: Mapping[Instruction, Buffer]
    ) -> None:
        self.private: set[Instruction] = set()
        super().__init__(frame, kernel, stored)
        for result, memory in self.local.whole.items():
            shape = result.array_shape
            size = int(memory.shape[0]) // memory_buffer(Shape(shape.element_type, (1,))).shape[0]
            if result in self.private:
                made = memory_buffer(Shape(shape.element_type, (self.team.count,)), "own")
            else:
                made = shared(Shape(shape.element_type, (int(size),)))
            self.local.whole[result] = self.local.buffers[result] = made
        self.known = self._visible()

    def local_layout(self) -> tuple[int, int]:
        rows, length = math.prod(self.rows.row_sizes), self.rows.length
        team = Team(rows, length, dtype=self.dtype, most=LARGEST)
        own = linear(self.inner_space.indices, self.rows.inner_sizes)[0]
        whole = self.rows.whole(self.row_space, self.inner_space)
        own_stored = linear(whole, self.rows.dimensions)[0]
        self.crossed = {
            load.instruction
            for load in self.accesses.loads
            if not load.known
            or load.address != (own if load.instruction in self.local.whole else own_stored)
        }
        if team.count <= UNROLLED_TURNS:
            self.private = set(self.local.whole) - self.crossed
        bytes_of_row = sum(
            nbytes(memory) for r, memory in self.local.whole.items() if r not in self.private
        )
        self.team = Team(rows, length, bytes_of_row, self.dtype, LARGEST)
        return 1, self.team.side_by_side

    def emitter(self, phase: Fusion, lanes: int = 1, lane: Expr | None = None) -> RowEmitter:
        made = _Emitter(
            self.known[id(phase)], self.positions, uses=self.frame.uses, index_dtype=self.dtype
        )
        made.local, made.rows = self.local, self
        if self.team.side_by_side > 1:
            made.base = self.team.number * self.number(self.rows.length)
        return made

    def statement(self) -> Stmt:
        def body() -> list[Stmt]:
            place(self.team.row, self.row_axes, self.positions, self.dtype)
            return self.row()

        return self.team.kernel(body)

    def reductions(self, phase: Fusion) -> list[Stmt]:
        combiners = Combiners(phase.anchors)
        totals = ScalarAccumulators(combiners.types)
        whole = self.rows.whole(self.row_space, self.inner_space)

        def step(number: Expr) -> list[Stmt]:
            place(number, self.inner_axes, self.positions, self.dtype)
            emitter = self.emitter(phase)
            arrived = [emitter.value(operand, whole) for operand in combiners.operands]
            return combiners.join(emitter, totals, arrived)

        swept = self.team.steps(step)
        joined = self.team.joined(totals, lambda: self.emitter(phase), combiners.join)
        last = self.emitter(phase)
        values = zip(phase.anchors, totals.read(last), combiners.types, strict=True)
        for anchor, value, element_type in values:
            last.given[anchor] = last.settled(value, element_type)
        return [
            *combiners.begin(self.emitter(phase), totals),
            swept,
            *joined,
            self.team.guarded(combiners.join_initial(self.emitter(phase), totals)),
            *self._values(phase, last),
        ]

    def elements(self, phase: Fusion) -> list[Stmt]:
        def step(number: Expr) -> list[Stmt]:
            place(number, self.inner_axes, self.positions, self.dtype)
            emitter = self.emitter(phase)
            stores = self.store(emitter, phase)
            return [*emitter.allocations, *emitter.statements, *stores]

        made = [self.team.steps(step)]
        return [*made, self.team.meet()] if self.crossed.intersection(phase.results) else made

    def values(self, phase: Fusion) -> list[Stmt]:
        return self._values(phase, self.emitter(phase))

    def _values(self, phase: Fusion, emitter: Emitter) -> list[Stmt]:
        """A phase with one value for each row: in the registers of all threads, stored by one."""
        assert isinstance(emitter, RowEmitter)
        kept: list[Stmt] = []
        stored: list[Stmt] = []
        for result in phase.results:
            value, places = self.computed(emitter, result)
            for target, at in places:
                made = emitter.store(target, at, value, result.array_shape.element_type)
                to = kept if target is self.local.values[result] else stored
                to += made if isinstance(made, list) else [made]
        inside = [*emitter.statements, *kept]
        if stored:
            inside.append(self.team.first(stored))
        return [*emitter.allocations, self.team.guarded(inside)]
