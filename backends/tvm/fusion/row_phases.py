"""Base class of row kernels: the phases of a row in order, for any target.

The parallel loop over rows is outside; inside, the phases follow one another. Results that only
phases read stay in local buffers: one element for a value per row, a row for an array.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping

from tracejit.backends.tvm.analysis.element_rules import Value
from tracejit.backends.tvm.codegen.access_analysis import Accesses
from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.loop_nest import Axis, Count, merge, settle
from tracejit.backends.tvm.codegen.stores import identity
from tracejit.backends.tvm.fusion.kernel import Fusion
from tracejit.backends.tvm.fusion.row_buffers import (
    LocalBuffers,
    RowAccesses,
    RowEmitter,
    VisibleBuffers,
)
from tracejit.backends.tvm.fusion.row_fusion import RowKernel, RowSpace, ask_phase
from tracejit.backends.tvm.ir.affine import LoopVariable, linear
from tracejit.backends.tvm.ir.tir import (
    AllocBuffer,
    Buffer,
    Expr,
    Stmt,
    const,
)
from tracejit.graph import Instruction


class RowPhases(ABC):
    """A row kernel under construction."""

    def __init__(
        self, frame: Frame, kernel: RowKernel, stored: Mapping[Instruction, Buffer]
    ) -> None:
        self.frame = frame
        self.dtype = frame.index_dtype
        self.kernel = kernel
        self.rows: RowSpace = kernel.rows
        self.stored = stored
        self.row_space, self.inner_space = self.rows.spaces()
        self.positions: dict[LoopVariable, Expr] = {}
        self.local = LocalBuffers(kernel, stored)
        self.known = self._visible()
        self._merge()
        # Axes merge independently of the layout of local buffers, but the layout depends on the
        # axes.
        self.local = LocalBuffers(kernel, stored, *self.local_layout())
        self.known = self._visible()

    def local_layout(self) -> tuple[int, int]:
        """The number of adjacent rows in local buffers, and the number of copies of the buffers.

        Called once, after the axes are merged: panels are cut from an axis, not from a dimension
        of the array, which reads may have split into several axes.
        """
        return 1, 1

    def _visible(self) -> dict[int, VisibleBuffers]:
        """The buffers that each phase reads; its own results do not hide those of others."""
        made = {**self.stored, **self.local.buffers}
        return {
            id(phase): VisibleBuffers(made, self.frame.inputs, {*phase.results, *phase.anchors})
            for phase in self.kernel.phases
        }

    def _merge(self) -> None:
        current: list[Fusion] = []

        def ask(scope: Accesses) -> None:
            for phase in self.kernel.phases:
                current[:] = [phase]
                scope.known -= scope.known
                ask_phase(scope, phase, self.rows, self.row_space, self.inner_space)
                scope.forget()

        accesses = settle(
            [self.row_space, self.inner_space],
            ask,
            lambda i: i in self.known[id(current[0])],
            lambda is_input: RowAccesses(is_input, self.local),
        )
        self.accesses = accesses
        addresses = [load.address for load in accesses.loads]
        whole = self.rows.whole(self.row_space, self.inner_space)
        addresses.append(linear(whole, self.rows.dimensions)[0])
        addresses.append(linear(self.inner_space.indices, self.rows.inner_sizes)[0])
        addresses.append(linear(self.row_space.indices, self.rows.row_sizes)[0])
        self.row_axes = merge(self.row_space.variables, addresses, accesses.opaque)
        self.inner_axes = merge(self.inner_space.variables, addresses, accesses.opaque)

    def count(self, axis: Axis) -> Count:
        return axis.count(self.positions)

    def row(self) -> list[Stmt]:
        """All phases, at the current position of the row."""
        statements: list[Stmt] = [AllocBuffer(buffer) for buffer in self.own_buffers()]
        for phase in self.kernel.phases:
            if phase.anchors:
                statements += self.reductions(phase)
            elif self.rows.is_whole(phase.dimensions):
                statements += self.elements(phase)
            else:
                statements += self.values(phase)
        return statements

    def own_buffers(self) -> Iterable[Buffer]:
        """The local buffers that are private to a row."""
        return self.local.buffers.values()

    @abstractmethod
    def reductions(self, phase: Fusion) -> list[Stmt]:
        """Reductions over the row, and their epilogue."""

    @abstractmethod
    def elements(self, phase: Fusion) -> list[Stmt]:
        """A pointwise phase over the elements of the row."""

    @abstractmethod
    def values(self, phase: Fusion) -> list[Stmt]:
        """A pointwise phase with one value per row."""

    def emitter(self, phase: Fusion, lanes: int = 1, lane: Expr | None = None) -> RowEmitter:
        made = RowEmitter(
            self.known[id(phase)],
            self.positions,
            lanes=lanes,
            lane=lane,
            uses=self.frame.uses,
            index_dtype=self.dtype,
        )
        made.local = self.local
        return made

    def number(self, value: int) -> Expr:
        return const(value, self.dtype)

    def store(self, emitter: Emitter, phase: Fusion) -> list[Stmt]:
        """Store a phase's results: to local buffers, to memory, or both."""
        statements: list[Stmt] = []
        for result in phase.results:
            value, places = self.computed(emitter, result)
            for target, at in places:
                made = emitter.store(target, at, value, result.array_shape.element_type)
                statements.extend(made if isinstance(made, list) else [made])
        return statements

    def computed(
        self, emitter: Emitter, result: Instruction
    ) -> tuple[Value, list[tuple[Buffer, Expr]]]:
        """The element of a result at the current position, and where it is to be stored."""
        assert isinstance(emitter, RowEmitter)
        dimensions = result.array_shape.dimensions
        where = self.rows.place(dimensions, self.row_space, self.inner_space)
        known = emitter.given.get(result)
        value = emitter.result(result, where) if known is None else known
        places = []
        if result in self.local.buffers:
            at = emitter.place(result, where, dimensions)
            places.append((self.local.buffers[result], at))
        if result in self.stored:
            places.append((self.stored[result], emitter.expression(identity(dimensions)(where))))
        return value, places
