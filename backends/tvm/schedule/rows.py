"""Row kernels: several reductions and pointwise steps over each row while it is in cache.

The loop over rows is outside and runs in parallel; inside, the phases follow one another. What only
they themselves read stays in local buffers: one element for a value per row, a row's worth for
an array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from tracejit.backends.tvm.accesses import Accesses, Load
from tracejit.backends.tvm.affine import (
    Affine,
    Index,
    LoopVariable,
    Opaque,
    linear,
    split_row_major,
)
from tracejit.backends.tvm.emitter import Emitter
from tracejit.backends.tvm.fused import Kernel
from tracejit.backends.tvm.rows import RowKernel, Rows, ask_phase
from tracejit.backends.tvm.schedule.frame import Frame, memory_buffer
from tracejit.backends.tvm.schedule.loops import Axis, Count, merge, nest, settle
from tracejit.backends.tvm.schedule.pointwise import identity
from tracejit.backends.tvm.schedule.sweep import Accumulators, Range, Reducer, Sweep
from tracejit.backends.tvm.scope import Value
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
from tracejit.graph import Instruction
from tracejit.shapes import Shape

# Bytes of local arrays that one row kernel may have; beyond, they go to memory.
LOCAL_BYTES = 128 << 10


def row_kernel(
    frame: Frame, kernel: RowKernel, results: Sequence[tuple[Instruction, Buffer]]
) -> Stmt:
    """The whole kernel."""
    frame.schedule = "row by row"
    return _RowKernel(frame, kernel, dict(results)).statement()


class _Locals:
    """The local buffers of results that only the kernel itself reads."""

    def __init__(self, kernel: RowKernel, stored: Mapping[Instruction, Buffer]) -> None:
        self.rows = kernel.rows
        self.buffers: dict[Instruction, Buffer] = {}
        for phase in kernel.phases:
            for result in phase.results:
                if self.is_whole(result) and result in stored:
                    continue
                size = 1
                if self.is_whole(result):
                    for each in self.rows.inner_sizes:
                        size *= each
                shape = Shape(result.array_shape.element_type, (size,))
                self.buffers[result] = memory_buffer(shape, "row")

    def is_whole(self, result: Instruction) -> bool:
        return bool(self.rows.is_whole(result.array_shape.dimensions))

    def address(self, instruction: Instruction, affine: Affine, opaque: Sequence[Opaque]) -> Affine:
        """Where in its local buffer the element with this row-major address lies."""
        if not self.is_whole(instruction):
            return Affine()
        dimensions = instruction.array_shape.dimensions
        parts = None if opaque else split_row_major(affine, dimensions)
        assert parts is not None, "a row kernel reads across rows"
        wide = iter(p for p, size in zip(parts, dimensions, strict=True) if size != 1)
        whole: list[Index] = [
            Affine() if size == 1 else next(wide) for size in self.rows.dimensions
        ]
        inner = [whole[d] for d in self.rows.inner]
        return linear(inner, self.rows.inner_sizes)[0]


class _RowAccesses(Accesses):
    """Accesses of which those to local buffers are counted by their place in the row."""

    def __init__(self, is_input: Callable[[Instruction], bool], local: _Locals) -> None:
        super().__init__(is_input)
        self._local = local

    def load(self, instruction: Instruction, address: Affine, opaque: list[Opaque]) -> None:
        if instruction in self._local.buffers:
            address = self._local.address(instruction, address, opaque)
            self.loads.append(Load(instruction, address, True))
            return
        super().load(instruction, address, opaque)


class _RowEmitter(Emitter):
    """An emitter that finds earlier phases' results in local buffers."""

    local: _Locals

    def fetch(
        self, instruction: Instruction, indices: Sequence[Index], dimensions: Sequence[int]
    ) -> Value:
        if instruction not in self.local.buffers:
            return super().fetch(instruction, indices, dimensions)
        at = self.local.address(instruction, *linear(indices, dimensions))
        element_type = instruction.array_shape.element_type
        return self.load(self.local.buffers[instruction], self.expression(at), element_type)


class _Known(Mapping[Instruction, Buffer]):
    """Earlier phases' results before what lies in memory; a phase's own are hidden."""

    def __init__(
        self,
        made: Mapping[Instruction, Buffer],
        memory: Mapping[Instruction, Buffer],
        hidden: set[Instruction],
    ) -> None:
        self._made = made
        self._memory = memory
        self._hidden = hidden

    def __contains__(self, instruction: object) -> bool:
        known = instruction in self._made or instruction in self._memory
        return known and instruction not in self._hidden

    def __getitem__(self, instruction: Instruction) -> Buffer:
        if instruction in self._hidden:
            raise KeyError(instruction)
        if instruction in self._made:
            return self._made[instruction]
        return self._memory[instruction]

    def __iter__(self) -> Iterator[Instruction]:
        return iter((*self._made, *self._memory))

    def __len__(self) -> int:
        return len(self._made) + len(self._memory)


class _RowKernel:
    def __init__(
        self, frame: Frame, kernel: RowKernel, stored: Mapping[Instruction, Buffer]
    ) -> None:
        self.frame = frame
        self.dtype = frame.index_dtype
        self.kernel = kernel
        self.rows: Rows = kernel.rows
        self.stored = stored
        self.local = _Locals(kernel, stored)
        self.made = {**stored, **self.local.buffers}
        self.row_space, self.inner_space = self.rows.spaces()
        self.positions: dict[LoopVariable, Expr] = {}
        # A phase's operands must not be hidden from later phases, so each is asked on its own.
        self.known = {
            id(phase): _Known(self.made, frame.inputs, _own(phase)) for phase in kernel.phases
        }
        self._merge()

    def _merge(self) -> None:
        current: list[Kernel] = []

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
            lambda is_input: _RowAccesses(is_input, self.local),
        )
        addresses = [load.address for load in accesses.loads]
        whole = self.rows.whole(self.row_space, self.inner_space)
        addresses.append(linear(whole, self.rows.dimensions)[0])
        addresses.append(linear(self.inner_space.indices, self.rows.inner_sizes)[0])
        addresses.append(linear(self.row_space.indices, self.rows.row_sizes)[0])
        self.row_axes = merge(self.row_space.variables, addresses, accesses.opaque)
        self.inner_axes = merge(self.inner_space.variables, addresses, accesses.opaque)

    def statement(self) -> Stmt:
        size = self.frame.cost
        for extent in self.rows.dimensions:
            size *= extent
        parallel = self.frame.pieces(size)
        counts = [self.count(axis) for axis in self.row_axes]
        return nest(counts, self._row, parallel=parallel, dtype=self.dtype)

    def count(self, axis: Axis) -> Count:
        def place(number: Expr) -> None:
            self.positions[axis.last] = number

        return Count(axis.extent, place)

    def _row(self) -> list[Stmt]:
        statements = [AllocBuffer(buffer) for buffer in self.local.buffers.values()]
        for phase in self.kernel.phases:
            if phase.heart is not None:
                statements += _PhaseSweep(self, phase).statements()
            elif self.rows.is_whole(phase.dimensions):
                statements += self._elements(phase)
            else:
                emitter = self.emitter(phase)
                stores = self.store(emitter, phase)
                statements += [*emitter.allocations, *emitter.statements, *stores]
        return statements

    def emitter(self, phase: Kernel, lanes: int = 1, lane: Expr | None = None) -> Emitter:
        made = _RowEmitter(
            self.known[id(phase)],
            self.positions,
            lanes=lanes,
            lane=lane,
            uses=self.frame.uses,
            index_dtype=self.dtype,
        )
        made.local = self.local
        return made

    def store(self, emitter: Emitter, phase: Kernel) -> list[Stmt]:
        """Stores a phase's results: locally, to memory, or both."""
        statements: list[Stmt] = []
        for result in phase.results:
            shape = result.array_shape
            where = self.rows.place(shape.dimensions, self.row_space, self.inner_space)
            known = emitter.given.get(result)
            value = emitter.result(result, where) if known is None else known
            targets = []
            if result in self.local.buffers:
                at = self.local.address(result, *linear(where, shape.dimensions))
                targets.append((self.local.buffers[result], at))
            if result in self.stored:
                targets.append((self.stored[result], identity(shape.dimensions)(where)))
            for target, at in targets:
                address = emitter.expression(at)
                made = emitter.store(target, address, value, shape.element_type)
                statements.extend(made if isinstance(made, list) else [made])
        return statements

    def _elements(self, phase: Kernel) -> list[Stmt]:
        """A pointwise phase over the row, in vectors along the last axis; the last may overlap."""
        *outer, axis = self.inner_axes or [Axis((), 1)]
        widest = max(
            (r.array_shape.element_type for r in phase.results), key=lambda t: t.dtype.itemsize
        )
        lanes = self.frame.lanes(widest, axis.extent)
        counts = [self.count(a) for a in outer]

        def place(number: Expr) -> None:
            first = number * const(lanes, self.dtype)
            if axis.extent % lanes:
                first = tirx.min(first, const(axis.extent - lanes, self.dtype))
            if axis.members:
                self.positions[axis.last] = first

        def vector() -> list[Stmt]:
            allocations: list[Stmt] = []
            start = self.positions[axis.last] if axis.members else None

            def each(lane: Expr) -> Stmt:
                if start is not None:
                    offset = lane if self.dtype == "int32" else tirx.Cast(self.dtype, lane)
                    self.positions[axis.last] = start + offset
                emitter = self.emitter(phase, lanes, lane)
                stores = self.store(emitter, phase)
                allocations.extend(emitter.allocations)
                return seq(*emitter.statements, *stores)

            body = each(i32(0)) if lanes == 1 else loop(lanes, each, VECTORIZED)
            return [*allocations, body]

        counts.append(Count(-(-axis.extent // lanes), place))
        return [nest(counts, vector, dtype=self.dtype)]


def _own(phase: Kernel) -> set[Instruction]:
    return {*phase.results, *([phase.heart] if phase.heart is not None else [])}


class _PhaseSweep(Sweep):
    """One reduction of the row."""

    def __init__(self, owner: _RowKernel, phase: Kernel) -> None:
        heart = phase.heart
        assert heart is not None
        rows = owner.rows
        order = (*rows.outer, *rows.inner)

        def locate(at: Sequence[Index], over: Sequence[Index]) -> list[Index]:
            where = dict(zip(order, (*at, *over), strict=True))
            return [where[d] for d in range(len(order))]

        reducer = Reducer(
            operands=heart.operands[:1],
            initial=heart.operands[1:],
            combine=heart.attributes["to_apply"],
            kept=rows.row_sizes,
            reduced=rows.inner_sizes,
            locate=locate,
            hearts=(heart,),
            results=(),
        )
        super().__init__(owner.frame, reducer, owner.row_space, owner.inner_space, owner.positions)
        self.owner = owner
        self.phase = phase

    def emitter(self, lanes: int = 1, lane: Expr | None = None) -> Emitter:
        return self.owner.emitter(self.phase, lanes, lane)

    def statements(self) -> list[Stmt]:
        axes = self.owner.inner_axes
        total = Accumulators(self.reducer.element_types, 1)

        def finish(emitter: Emitter, at: Expr) -> list[Stmt]:
            self.settle(emitter, total.read(emitter, at))
            return self.owner.store(emitter, self.phase)

        ranges = [Range(a, self.number(0), self.number(a.extent)) for a in axes]
        return [
            *total.allocations,
            *self.scalar(lambda e, at: total.write(e, at, self.initial(e))),
            *self.row(axes[-1], ranges, total, i32(0)),
            *self.scalar(finish),
        ]
