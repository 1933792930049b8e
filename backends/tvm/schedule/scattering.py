"""Scatter: the operands copied, then one window of updates after the other combined into them.

Where the results lie in the operands' memory nothing is copied. Windows run in the order of the
indices, so that updates of one place meet in that order. A window that does not lie inside the
operand is skipped whole; only then is nothing written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tracejit.backends.tvm.affine import Affine, Index, Opaque, row_major_strides
from tracejit.backends.tvm.schedule.frame import Frame
from tracejit.backends.tvm.schedule.loops import Count, nest
from tracejit.backends.tvm.schedule.pointwise import Store, pointwise
from tracejit.backends.tvm.scope import Emitter
from tracejit.backends.tvm.tir import (
    VECTORIZED,
    Buffer,
    Expr,
    IfThenElse,
    Stmt,
    const,
    loop,
    seq,
    tirx,
)
from tracejit.backends.tvm.types import register_dtype
from tracejit.graph import Computation, Instruction


@dataclass(frozen=True)
class Scattering:
    """A Scatter's parts. ``window_dims`` maps the updates' window dimensions to the operands'."""

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


def scattering(frame: Frame, work: Scattering) -> Stmt:
    """The whole kernel."""
    copied = []
    frame.schedule = "scatter in place" if frame.in_place else "scatter"
    if not frame.in_place:
        pairs = zip(work.operands, work.targets, strict=True)
        stores = [Store(operand, target, compute=False) for operand, target in pairs]
        copied.append(pointwise(frame, work.sizes, stores, 1))
    if work.updates[0].array_shape.size == 0:
        return seq(*copied)
    return seq(*copied, _Updates(frame, work).statement())


class _Updates:
    def __init__(self, frame: Frame, work: Scattering) -> None:
        self.frame = frame
        self.work = work
        self.dtype = frame.index_dtype
        self.zero = const(0, self.dtype)
        self.at: list[Expr] = [self.zero] * len(work.update_sizes)
        self.outer = [d for d in range(len(work.update_sizes)) if d not in work.window_dims]
        self.strides = row_major_strides(work.sizes)

    def statement(self) -> Stmt:
        counts = [Count(self.work.update_sizes[d], self._placing(d)) for d in self.outer]
        return nest(counts, self._window, dtype=self.dtype)

    def _placing(self, dimension: int) -> Callable[[Expr], None]:
        def place(number: Expr) -> None:
            self.at[dimension] = number

        return place

    def _emitter(self, lanes: int = 1, lane: Expr | None = None) -> Emitter:
        return Emitter(
            self.frame.inputs,
            {},
            lanes=lanes,
            lane=lane,
            uses=self.frame.uses,
            index_dtype=self.dtype,
        )

    def _extent(self, operand_dim: int) -> int:
        """How far a window reaches in a dimension of the operand."""
        for update_dim, dim in self.work.window_dims.items():
            if dim == operand_dim:
                return self.work.update_sizes[update_dim]
        return 1

    def _window(self) -> list[Stmt]:
        emitter = self._emitter()
        inside: Expr = const(True, "bool")
        start = self.zero
        batch: list[Index] = [Opaque(self.at[d]) for d in self.outer]
        element_type = self.work.indices.array_shape.element_type
        dtype = register_dtype(element_type)
        highest = 2 ** (element_type.bits - element_type.is_signed) - 1
        vector_dim = self.work.index_vector_dim
        for number, dim in enumerate(self.work.index_map):
            where = list(batch)
            if vector_dim < self.work.indices.array_shape.rank:
                where.insert(vector_dim, Affine(number))
            index = emitter.hold(emitter.value(self.work.indices, where), element_type)
            limit = min(self.work.sizes[dim] - self._extent(dim), highest)
            fits = tirx.And(index >= const(0, dtype), index <= const(limit, dtype))
            inside = tirx.And(inside, fits)
            start = start + tirx.Cast(self.dtype, index) * const(self.strides[dim], self.dtype)
        for operand_dim, indices_dim in self.work.batching:
            position = self.outer[indices_dim - (indices_dim > vector_dim)]
            start = start + self.at[position] * const(self.strides[operand_dim], self.dtype)
        return [
            *emitter.allocations,
            *emitter.statements,
            IfThenElse(inside, self._elements(start), None),
        ]

    def _elements(self, start: Expr) -> Stmt:
        """Every element of one window, in vectors where the last dimension is contiguous."""
        *others, last = [*self.work.window_dims] or [-1]
        counts = [Count(self.work.update_sizes[d], self._placing(d)) for d in others]
        if last < 0:
            return seq(*self._combine(start, 1, None))
        extent = self.work.update_sizes[last]
        widest = max(
            (o.array_shape.element_type for o in self.work.operands),
            key=lambda t: t.dtype.itemsize,
        )
        contiguous = self.strides[self.work.window_dims[last]] == 1
        lanes = self.frame.lanes(widest, extent) if contiguous else 1
        rest = extent % lanes if lanes > 1 else extent

        def sweep() -> list[Stmt]:
            def block(number: Expr) -> list[Stmt]:
                return self._vector(start, last, number * const(lanes, self.dtype), lanes)

            def single(number: Expr) -> list[Stmt]:
                self.at[last] = number + const(extent - rest, self.dtype)
                return self._combine(start, 1, None)

            vectors = [loop(extent // lanes, block, dtype=self.dtype)] if lanes > 1 else []
            return [*vectors, loop(rest, single, dtype=self.dtype)]

        return nest(counts, sweep, dtype=self.dtype)

    def _vector(self, start: Expr, dimension: int, first: Expr, lanes: int) -> list[Stmt]:
        outside: list[Stmt] = []

        def each(lane: Expr) -> Stmt:
            offset = lane if self.dtype == "int32" else tirx.Cast(self.dtype, lane)
            self.at[dimension] = first + offset
            allocations, statements = self._combination(start, lanes, lane)
            outside.extend(allocations)
            return seq(*statements)

        body = loop(lanes, each, VECTORIZED)
        return [*outside, body]

    def _combine(self, start: Expr, lanes: int, lane: Expr | None) -> list[Stmt]:
        allocations, statements = self._combination(start, lanes, lane)
        return [*allocations, *statements]

    def _combination(
        self, start: Expr, lanes: int, lane: Expr | None
    ) -> tuple[list[Stmt], list[Stmt]]:
        """Loads, combines and stores one element (or a vector) of every operand."""
        emitter = self._emitter(lanes, lane)
        address = start
        for update_dim, dim in self.work.window_dims.items():
            address = address + self.at[update_dim] * const(self.strides[dim], self.dtype)
        places: list[Index] = [Opaque(number) for number in self.at]
        types = [operand.array_shape.element_type for operand in self.work.operands]
        old = [
            emitter.load(target, address, t)
            for target, t in zip(self.work.targets, types, strict=True)
        ]
        new = [emitter.value(update, places) for update in self.work.updates]
        combined = emitter.apply(self.work.combine, [*old, *new])
        values = combined if len(self.work.operands) > 1 else [combined]
        held = [emitter.hold(v, t) for v, t in zip(values, types, strict=True)]
        written: list[Stmt] = []
        for target, value, element_type in zip(self.work.targets, held, types, strict=True):
            made = emitter.store(target, address, value, element_type)
            written.extend(made if isinstance(made, list) else [made])
        return emitter.allocations, [*emitter.statements, *written]
