"""Elementwise kernels: a thread for each element, for 16 bytes of them, or tiles that transpose.

    pointwise(frame, dimensions, stores)

Neighbouring threads compute neighbours in the result. Large arrays whose neighbours are also loaded
or stored side by side move 128 bits at once. What is loaded across the result's rows goes through a
tile of shared memory, so that memory is read along its own rows, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tracejit.affine import Affine
from tracejit.backends.tvm.analysis.element_rules import Value
from tracejit.backends.tvm.codegen.access_analysis import Load
from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.codegen.kernel_frame import Frame, memory_buffer
from tracejit.backends.tvm.codegen.loop_nest import Axis, Space
from tracejit.backends.tvm.codegen.scalar.elements import Positions, place, shared_loop
from tracejit.backends.tvm.codegen.stores import Store, settled_stores
from tracejit.backends.tvm.cuda.blocks import ENOUGH_THREADS, barrier, blocks, shared
from tracejit.backends.tvm.ir.affine import Index, linear
from tracejit.backends.tvm.ir.tir import (
    UNROLLED,
    AllocBuffer,
    Buffer,
    Evaluate,
    Expr,
    IfThenElse,
    Stmt,
    const,
    loop,
    seq,
    tirx,
)
from tracejit.graph import Instruction
from tracejit.shapes import Shape

VECTOR_BYTES = 16
"""What a thread loads or stores at once."""
TILE, LINES = 32, 8
"""Rows and columns of a transposing tile, and the rows that its threads handle at once."""
LEAST_SIDE = 8
"""Shorter rows or columns are not worth a tile."""


def pointwise(frame: Frame, dimensions: Sequence[int], stores: Sequence[Store]) -> Stmt:
    """All ``stores`` for each element of ``dimensions``."""
    return _Nest(frame, dimensions, stores).statement()


class _Held(Emitter):
    """Takes elements that were loaded before from where they are held."""

    held: Mapping[tuple[Instruction, Affine], tuple[Buffer, Expr]]

    def fetch(
        self, instruction: Instruction, indices: Sequence[Index], dimensions: Sequence[int]
    ) -> Value:
        address, opaque = linear(indices, dimensions)
        found = None if opaque else self.held.get((instruction, address))
        if found is None:
            return super().fetch(instruction, indices, dimensions)
        return self.load(*found, instruction.array_shape.element_type)


class _Nest:
    """A kernel under construction."""

    def __init__(self, frame: Frame, dimensions: Sequence[int], stores: Sequence[Store]) -> None:
        self.frame, self.stores, self.dtype = frame, stores, frame.index_dtype
        self.space = Space(dimensions)
        self.visible = frame.inputs.without({store.value for store in stores if store.compute})
        accesses, self.axes = settled_stores(self.space, stores, self.visible)
        self.loads = [load for load in accesses.loads if load.known]
        self.positions: Positions = {}
        self.size = math.prod(axis.extent for axis in self.axes)

    def c(self, number: int) -> Expr:
        return const(number, self.dtype)

    def emitter(
        self, held: Mapping[tuple[Instruction, Affine], tuple[Buffer, Expr]] | None = None
    ) -> Emitter:
        made = _Held(self.visible, self.positions, uses=self.frame.uses, index_dtype=self.dtype)
        made.held = held or {}
        return made

    def statement(self) -> Stmt:
        crossing = self._crossing()
        if crossing is not None:
            self._name("transposing tiles")
            return self._tiles(*crossing)
        width = self._width()
        if width > 1:
            self._name(f"{width} elements at once")
            return self._vectors(width)
        self._name("elementwise")
        return shared_loop(self.size, self._element, self.dtype)

    def _name(self, schedule: str) -> None:
        self.frame.schedule = self.frame.schedule or schedule

    def _written(self, emitter: Emitter) -> list[Stmt]:
        """The stores of one element. An earlier one may write to memory that a later one reads."""
        written: list[Stmt] = []
        for each in self.stores:
            written += each.write(emitter, self.space.indices, binds=len(self.stores) > 1)
        return [*emitter.allocations, *emitter.statements, *written]

    def _element(self, number: Expr) -> list[Stmt]:
        place(number, self.axes, self.positions, self.dtype)
        return self._written(self.emitter())

    # 16 bytes at once

    def _width(self) -> int:
        """How many neighbours a thread takes; 1 where that leaves threads idle."""
        if not self.axes or self.size < ENOUGH_THREADS:
            return 1
        types = [store.value.array_shape.element_type for store in self.stores]
        types += [load.instruction.array_shape.element_type for load in self._side_by_side()]
        width = VECTOR_BYTES // max(t.dtype.itemsize for t in types)
        while width > 1 and self.axes[-1].extent % width:
            width //= 2
        return max(width, 1)

    def _side_by_side(self) -> list[Load]:
        """The loads whose neighbours lie side by side."""
        last = self.axes[-1].last
        return [load for load in self.loads if load.address.coefficient(last) == 1]

    def _vectors(self, width: int) -> Stmt:
        *outer, last = self.axes
        axes = [*outer, Axis(last.members, last.extent // width)]

        def thread(number: Expr) -> list[Stmt]:
            place(number, axes, self.positions, self.dtype)
            first = self.positions[last.last] * self.c(width)
            self.positions[last.last] = first
            scope = self.emitter()
            made: list[Stmt] = []
            held: dict[tuple[Instruction, Affine], Buffer] = {}
            for load in self._side_by_side():
                key = load.instruction, load.address
                if key not in held:
                    held[key] = self._own(load.instruction, width)
                    source = self.visible[load.instruction]
                    at = scope.expression(load.address)
                    made.append(_moved("tj_load", width, held[key], source, at))
            kept = [
                self._own(store.value, width)
                if store.address(self.space.indices).coefficient(last.last) == 1
                else None
                for store in self.stores
            ]

            def element(turn: Expr) -> list[Stmt]:
                self.positions[last.last] = first + self._index(turn)
                scope = self.emitter({key: (memory, turn) for key, memory in held.items()})
                written: list[Stmt] = []
                for store, memory in zip(self.stores, kept, strict=True):
                    value = store.read(scope, self.space.indices, binds=len(self.stores) > 1)
                    if memory is None:
                        at = store.place(scope, self.space.indices)
                        written += store.put(scope, store.target, at, value)
                    else:
                        written += store.put(scope, memory, turn, value)
                return [*scope.allocations, *scope.statements, *written]

            computed = loop(width, element, UNROLLED)
            self.positions[last.last] = first
            scope = self.emitter()
            stored: list[Stmt] = []
            for store, memory in zip(self.stores, kept, strict=True):
                if memory is not None:
                    at = store.place(scope, self.space.indices)
                    stored.append(_moved("tj_store", width, memory, store.target, at))
            memories = [*held.values(), *(memory for memory in kept if memory is not None)]
            places = [*scope.allocations, *scope.statements]
            return [*map(AllocBuffer, memories), *made, computed, *places, *stored]

        return shared_loop(self.size // width, thread, self.dtype)

    def _own(self, instruction: Instruction, width: int) -> Buffer:
        return memory_buffer(Shape(instruction.array_shape.element_type, (width,)), "own")

    def _index(self, number: Expr) -> Expr:
        return number if self.dtype == "int32" else tirx.Cast(self.dtype, number)

    # Tiles

    def _crossing(self) -> tuple[Axis, Sequence[Load]] | None:
        """The axis, not the last, along which some loads are side by side; and these loads."""
        if len(self.axes) < 2 or self.axes[-1].extent < LEAST_SIDE:
            return None
        last = self.axes[-1].last
        for axis in reversed(self.axes[:-1]):
            found = [
                load
                for load in self.loads
                if load.address.coefficient(axis.last) == 1 and load.address.coefficient(last)
            ]
            if found and axis.extent >= LEAST_SIDE:
                return axis, found
        return None

    def _tiles(self, across: Axis, loads: Sequence[Load]) -> Stmt:
        last = self.axes[-1]
        others = [axis for axis in self.axes if axis not in (across, last)]
        counts = [Axis(axis.members, -(-axis.extent // TILE)) for axis in (across, last)]
        grid = [*others, *counts]

        def thread(block: Expr, number: Expr) -> list[Stmt]:
            place(self._index(block), grid, self.positions, self.dtype)
            starts = [self.positions[axis.last] * self.c(TILE) for axis in (across, last)]
            width = const(TILE, "int32")
            lane, line = tirx.truncmod(number, width), tirx.truncdiv(number, width)
            tiles: dict[tuple[Instruction, Affine], Buffer] = {}
            for load in loads:
                element_type = load.instruction.array_shape.element_type
                # One element more in a line, so that those of a column lie in different banks.
                kind = Shape(element_type, (TILE * (TILE + 1),))
                tiles.setdefault((load.instruction, load.address), shared(kind))

            def inside(of_across: Expr, of_last: Expr) -> Expr:
                at = [
                    start + self._index(offset)
                    for start, offset in zip(starts, (of_across, of_last), strict=True)
                ]
                self.positions[across.last], self.positions[last.last] = at
                return tirx.And(at[0] < self.c(across.extent), at[1] < self.c(last.extent))

            def fetch(turn: Expr) -> Stmt:
                row = turn * const(LINES, "int32") + line
                is_there = inside(lane, row)
                scope = self.emitter()
                stores: list[Stmt] = []
                for (instruction, address), tile in tiles.items():
                    element_type = instruction.array_shape.element_type
                    source = self.visible[instruction]
                    value = scope.load(source, scope.expression(address), element_type)
                    at = row * const(TILE + 1, "int32") + lane
                    made = scope.store(tile, at, value, element_type)
                    stores += made if isinstance(made, list) else [made]
                body = seq(*scope.allocations, *scope.statements, *stores)
                return IfThenElse(is_there, body, None)

            def compute(turn: Expr) -> Stmt:
                row = turn * const(LINES, "int32") + line
                is_there = inside(row, lane)
                at = lane * const(TILE + 1, "int32") + row
                scope = self.emitter({key: (tile, at) for key, tile in tiles.items()})
                return IfThenElse(is_there, seq(*self._written(scope)), None)

            return [
                *map(AllocBuffer, tiles.values()),
                loop(TILE // LINES, fetch, UNROLLED),
                barrier(),
                loop(TILE // LINES, compute, UNROLLED),
            ]

        return blocks(math.prod(axis.extent for axis in grid), TILE * LINES, thread)


def _moved(function: str, width: int, own: Buffer, memory: Buffer, at: Expr) -> Stmt:
    """Moves ``width`` elements between a thread's own buffer and memory."""
    items = int(own.shape[0])
    where = memory[at if items == width else at * const(items // width, str(at.ty))]
    ours, theirs = tirx.address_of(own[const(0, "int32")]), tirx.address_of(where)
    pair = (ours, theirs) if function == "tj_load" else (theirs, ours)
    return Evaluate(tirx.call_extern("int32", f"{function}<{items}>", *pair))
