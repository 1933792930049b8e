"""The updates of a Scatter: combines one window after the other into its target.

Contiguous elements of a window are combined in vectors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tracejit.affine import Affine
from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.cpu.kernels.sharing import on_workers, share
from tracejit.backends.tvm.cpu.machine import machine_of
from tracejit.backends.tvm.cpu.schedule.lanes import as_index
from tracejit.backends.tvm.ir.affine import Index, LoopVariable, row_major_strides
from tracejit.backends.tvm.ir.dtypes import register_dtype
from tracejit.backends.tvm.ir.tir import (
    VECTORIZED,
    Buffer,
    Expr,
    IfThenElse,
    Stmt,
    const,
    i32,
    loop,
    seq,
    tirx,
)
from tracejit.graph import Computation, Instruction


@dataclass(frozen=True)
class Scattering:
    """The operands and attributes of a Scatter.

    ``window_dims`` maps the updates' window dimensions to the operands'.
    """

    operands: Sequence[Instruction]
    indices: Instruction
    updates: Sequence[Instruction]
    targets: Sequence[Buffer]
    combine: Computation
    window_dims: dict[int, int]
    index_map: Sequence[int]
    index_vector_dim: int
    batching: Sequence[tuple[int, int]]

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.operands[0].array_shape.dimensions

    @property
    def update_sizes(self) -> tuple[int, ...]:
        return self.updates[0].array_shape.dimensions

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """The row-major strides of the operands' dimensions."""
        return tuple(row_major_strides(self.sizes))

    @cached_property
    def outer(self) -> list[int]:
        """The updates' dimensions that count windows."""
        return [d for d in range(len(self.update_sizes)) if d not in self.window_dims]

    @property
    def is_single(self) -> bool:
        """Whether windows are single elements, along at least one dimension."""
        sizes = self.update_sizes
        return bool(self.outer) and math.prod(sizes[d] for d in self.window_dims) == 1

    @property
    def has_wide_windows(self) -> bool:
        """Whether windows have enough columns for threads to share: two vectors or more."""
        if not self.window_dims or not self.outer:
            return False
        last = [*self.window_dims][-1]
        return self.strides[self.window_dims[last]] == 1 and self.update_sizes[last] >= 32


@dataclass(frozen=True)
class ScatterBuffer:
    """The buffer of combined results: ``copies`` of ``size`` elements from ``first`` on."""

    buffer: Buffer
    first: Expr | None = None
    copies: int = 1
    size: int = 0

    def start(self, number: Expr, dtype: str) -> Expr:
        """The offset of the copy for update ``number``."""
        first = const(0, dtype) if self.first is None else self.first
        if self.copies == 1:
            return first
        copy = tirx.bitwise_and(number, const(self.copies - 1, dtype))
        return first + copy * const(self.size, dtype)


class Updates:
    """Statements for the updates of one Scatter."""

    def __init__(self, frame: Frame, work: Scattering, targets: Sequence[ScatterBuffer]) -> None:
        self.frame = frame
        self.work = work
        self.targets = targets
        self.dtype = frame.index_dtype
        self.variables = [LoopVariable(f"d{i}", n) for i, n in enumerate(work.update_sizes)]
        self.places: list[Index] = [v.index for v in self.variables]
        self.types = [operand.array_shape.element_type for operand in work.operands]
        self.at: dict[LoopVariable, Expr] = dict.fromkeys(self.variables, const(0, self.dtype))
        self.columns: tuple[Expr, Expr, Expr] | None = None

    def in_order(self, part: tuple[Expr, Expr] | None = None) -> Stmt:
        """All updates, or those whose first index is in ``part``: (first, count)."""
        work = self.work
        if part is None and work.has_wide_windows:
            return self._by_columns()
        return self._windows(part)

    def _by_columns(self) -> Stmt:
        """All updates, with the columns of each window shared by threads."""
        *_, last = self.work.window_dims
        extent = self.work.update_sizes[last]
        lanes = self._lanes(extent)
        work = self.work.updates[0].array_shape.size * max(self.frame.cost, 2)
        workers = 1
        if self.frame.is_shared(work):
            workers = min(machine_of(self.frame).threads, extent // lanes)
        if workers == 1:
            return self._windows(None)

        def worker(w: Expr) -> Stmt:
            first, count = share(w, extent // lanes, workers)
            self.columns = self._number(first), self._number(count), w == workers - 1
            return self._windows(None)

        statement = on_workers(workers, worker)
        self.columns = None
        return statement

    def _windows(self, part: tuple[Expr, Expr] | None) -> Stmt:
        outer = self.work.outer

        def nest(depth: int) -> Stmt:
            if depth == len(outer):
                return seq(*self._window())
            variable = self.variables[outer[depth]]
            first: Expr = const(0, self.dtype)
            count: Expr = const(variable.extent, self.dtype)
            if depth == 0 and part is not None:
                first, count = map(self._number, part)

            def inside(number: Expr) -> Stmt:
                self.at[variable] = first + number
                return nest(depth + 1)

            return loop(count, inside, dtype=self.dtype)

        return nest(0)

    def _number(self, value: Expr) -> Expr:
        return as_index(value, self.dtype)

    def _lanes(self, extent: int) -> int:
        types = [o.array_shape.element_type for o in self.work.operands]
        return self.frame.lanes(max(types, key=lambda t: t.dtype.itemsize), extent)

    def _emitter(self, lanes: int = 1, lane: Expr | None = None) -> Emitter:
        return Emitter(
            self.frame.inputs,
            self.at,
            lanes=lanes,
            lane=lane,
            uses=self.frame.uses,
            index_dtype=self.dtype,
        )

    def _extent(self, operand_dim: int) -> int:
        """The size of a window in a dimension of the operand."""
        for update_dim, dim in self.work.window_dims.items():
            if dim == operand_dim:
                return self.work.update_sizes[update_dim]
        return 1

    def _start(self, emitter: Emitter) -> tuple[Expr, Expr]:
        """Whether a window is inside the operands, and its offset if so."""
        work = self.work
        inside: Expr = const(True, "bool")
        start: Expr = const(0, self.dtype)
        batch = [self.places[d] for d in work.outer]
        element_type = work.indices.array_shape.element_type
        dtype = register_dtype(element_type)
        highest = 2 ** (element_type.bits - element_type.is_signed) - 1
        vector_dim = work.index_vector_dim
        for number, dim in enumerate(work.index_map):
            where = list(batch)
            if vector_dim < work.indices.array_shape.rank:
                where.insert(vector_dim, Affine(number))
            index = emitter.hold(emitter.value(work.indices, where), element_type)
            limit = min(work.sizes[dim] - self._extent(dim), highest)
            fits = tirx.And(index >= const(0, dtype), index <= const(limit, dtype))
            inside = tirx.And(inside, fits)
            start = start + tirx.Cast(self.dtype, index) * const(work.strides[dim], self.dtype)
        for operand_dim, indices_dim in work.batching:
            position = self.variables[work.outer[indices_dim - (indices_dim > vector_dim)]]
            start = start + self.at[position] * const(work.strides[operand_dim], self.dtype)
        return inside, start

    def _window(self) -> list[Stmt]:
        emitter = self._emitter()
        inside, start = self._start(emitter)
        return [
            *emitter.allocations,
            *emitter.statements,
            IfThenElse(inside, self._elements(start), None),
        ]

    def _elements(self, start: Expr) -> Stmt:
        """Every element of one window, in vectors if the last dimension is contiguous."""
        work = self.work
        *others, last = [*work.window_dims] or [-1]
        if last < 0:
            return seq(*self._combine(start))
        extent = work.update_sizes[last]
        lanes = self._lanes(extent) if work.strides[work.window_dims[last]] == 1 else 1
        rest = extent % lanes if lanes > 1 else extent
        first: Expr = const(0, self.dtype)
        blocks: Expr = const(extent // lanes, self.dtype)
        has_rest: Expr | None = None
        if self.columns is not None:
            first, blocks, has_rest = self.columns

        def block(number: Expr) -> list[Stmt]:
            return self._vector(start, last, (first + number) * const(lanes, self.dtype), lanes)

        def single(number: Expr) -> list[Stmt]:
            self.at[self.variables[last]] = number + const(extent - rest, self.dtype)
            return self._combine(start)

        def sweep() -> Stmt:
            vectors = [loop(blocks, block, dtype=self.dtype)] if lanes > 1 else []
            singles = loop(rest, single, dtype=self.dtype) if rest else None
            if singles is not None and has_rest is not None:
                singles = IfThenElse(has_rest, singles, None)
            return seq(*vectors, singles)

        def nest(depth: int) -> Stmt:
            if depth == len(others):
                return sweep()

            def inside(number: Expr) -> Stmt:
                self.at[self.variables[others[depth]]] = number
                return nest(depth + 1)

            return loop(work.update_sizes[others[depth]], inside, dtype=self.dtype)

        return nest(0)

    def _vector(self, start: Expr, dimension: int, first: Expr, lanes: int) -> list[Stmt]:
        outside: list[Stmt] = []

        def each(lane: Expr) -> Stmt:
            self.at[self.variables[dimension]] = first + self._number(lane)
            allocations, statements = self._combination(start, lanes, lane)
            outside.extend(allocations)
            return seq(*statements)

        body = loop(lanes, each, VECTORIZED)
        return [*outside, body]

    def _combine(self, start: Expr) -> list[Stmt]:
        allocations, statements = self._combination(start, 1, None)
        return [*allocations, *statements]

    def _combination(
        self, start: Expr, lanes: int, lane: Expr | None
    ) -> tuple[list[Stmt], list[Stmt]]:
        """Load, combine and store one element (or a vector) of every operand."""
        emitter = self._emitter(lanes, lane)
        address = start
        for update_dim, dim in self.work.window_dims.items():
            at = self.at[self.variables[update_dim]]
            address = address + at * const(self.work.strides[dim], self.dtype)
        number = self.at[self.variables[self.work.outer[-1]]] if self.work.outer else i32(0)
        places = [address + target.start(number, self.dtype) for target in self.targets]
        trios = [*zip(self.targets, places, self.types, strict=True)]
        old = [emitter.load(target.buffer, place, t) for target, place, t in trios]
        new = [emitter.value(update, self.places) for update in self.work.updates]
        combined = emitter.apply(self.work.combine, [*old, *new])
        values = combined if len(self.targets) > 1 else [combined]
        held = [emitter.hold(v, t) for v, t in zip(values, self.types, strict=True)]
        written: list[Stmt] = []
        for (target, place, element_type), value in zip(trios, held, strict=True):
            made = emitter.store(target.buffer, place, value, element_type)
            written.extend(made if isinstance(made, list) else [made])
        return emitter.allocations, [*emitter.statements, *written]
