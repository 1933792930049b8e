"""Scatter: the operands are copied, then updates are combined into them.

Updates are combined in the order of their indices. A step of the shared loop goes over all windows,
at one place along the dimensions that indices do not choose.
"""

from __future__ import annotations

import math

from tracejit.affine import Affine
from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.loop_nest import Axis
from tracejit.backends.tvm.codegen.root_rules import Results
from tracejit.backends.tvm.codegen.scalar.elements import nested, place, shared_loop
from tracejit.backends.tvm.codegen.scalar.table import scalar
from tracejit.backends.tvm.codegen.stores import Store
from tracejit.backends.tvm.ir.affine import Index, LoopVariable, row_major_strides
from tracejit.backends.tvm.ir.dtypes import register_dtype
from tracejit.backends.tvm.ir.tir import (
    Expr,
    IfThenElse,
    Stmt,
    const,
    seq,
    tirx,
)
from tracejit.graph import Instruction
from tracejit.ops.indexing import SCATTER


class ScalarUpdates:
    """The updates of one Scatter."""

    def __init__(self, frame: Frame, instruction: Instruction, results: Results) -> None:
        attributes = instruction.attributes
        count = len(instruction.operands) // 2
        self.frame, self.dtype = frame, frame.index_dtype
        self.combine = attributes["to_apply"]
        self.operands = instruction.operands[:count]
        self.indices = instruction.operands[count]
        self.updates = instruction.operands[count + 1 :]
        self.targets = [target for _, target in results]
        self.types = [operand.array_shape.element_type for operand in self.operands]
        self.sizes = self.operands[0].array_shape.dimensions
        self.strides = row_major_strides(self.sizes)
        self.shape = self.updates[0].array_shape.dimensions
        removed = {*attributes["inserted_window_dims"], *attributes["input_batching_dims"]}
        kept = [d for d in range(len(self.sizes)) if d not in removed]
        self.window = dict(zip(attributes["update_window_dims"], kept, strict=True))
        self.outer = [d for d in range(len(self.shape)) if d not in self.window]
        self.index_map = attributes["scatter_dims_to_operand_dims"]
        self.vector_dim = attributes["index_vector_dim"]
        pairs = attributes["input_batching_dims"], attributes["scatter_indices_batching_dims"]
        self.batching = [*zip(*pairs, strict=True)]
        self.variables = [LoopVariable(f"d{i}", n) for i, n in enumerate(self.shape)]
        self.places: list[Index] = [v.index for v in self.variables]
        self.at: dict[LoopVariable, Expr] = {v: self.number(0) for v in self.variables}

    def number(self, value: int) -> Expr:
        return const(value, self.dtype)

    def axes(self, dimensions: list[int]) -> list[Axis]:
        return [Axis((self.variables[d],), self.shape[d]) for d in dimensions if self.shape[d] > 1]

    def emitter(self) -> Emitter:
        return Emitter(self.frame.inputs, self.at, uses=self.frame.uses, index_dtype=self.dtype)

    def element(self) -> list[Stmt]:
        """Combines one element of one window, if the window lies inside the operand."""
        emitter = self.emitter()
        inside, address = self._start(emitter)
        for update_dim, dim in self.window.items():
            step = self.at[self.variables[update_dim]] * self.number(self.strides[dim])
            address = address + step
        found = [*emitter.allocations, *emitter.statements]
        return [*found, IfThenElse(inside, seq(*self.combination(address)), None)]

    def _extent(self, operand_dim: int) -> int:
        return next((self.shape[u] for u, d in self.window.items() if d == operand_dim), 1)

    def _start(self, emitter: Emitter) -> tuple[Expr, Expr]:
        """Whether a window is inside the operands, and its offset if so."""
        inside: Expr = const(True, "bool")
        start: Expr = self.number(0)
        element_type = self.indices.array_shape.element_type
        dtype = register_dtype(element_type)
        highest = 2 ** (element_type.bits - element_type.is_signed) - 1
        for number, dim in enumerate(self.index_map):
            where = [self.places[d] for d in self.outer]
            if self.vector_dim < self.indices.array_shape.rank:
                where.insert(self.vector_dim, Affine(number))
            index = emitter.hold(emitter.value(self.indices, where), element_type)
            limit = min(self.sizes[dim] - self._extent(dim), highest)
            fits = tirx.And(index >= const(0, dtype), index <= const(limit, dtype))
            inside = tirx.And(inside, fits)
            start = start + tirx.Cast(self.dtype, index) * self.number(self.strides[dim])
        for operand_dim, indices_dim in self.batching:
            position = self.variables[self.outer[indices_dim - (indices_dim > self.vector_dim)]]
            start = start + self.at[position] * self.number(self.strides[operand_dim])
        return inside, start

    def combination(self, address: Expr) -> list[Stmt]:
        """Combines an element of an update into the element at an address."""
        emitter = self.emitter()
        new = [emitter.value(update, self.places) for update in self.updates]
        pairs = zip(self.targets, self.types, strict=True)
        old = [emitter.load(target, address, t) for target, t in pairs]
        made = emitter.apply(self.combine, [*old, *new])
        values = made if len(self.targets) > 1 else [made]
        held = [emitter.hold(v, t) for v, t in zip(values, self.types, strict=True)]
        written: list[Stmt] = []
        for target, t, value in zip(self.targets, self.types, held, strict=True):
            stored = emitter.store(target, address, value, t)
            written += stored if isinstance(stored, list) else [stored]
        return [*emitter.allocations, *emitter.statements, *written]


@scalar.attach(SCATTER)
def scatter(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """Copies the operands, unless the results lie in their memory; then combines the updates."""
    frame.schedule = "scatter in order"
    work = ScalarUpdates(frame, instruction, results)
    # Along the dimensions that indices choose, windows may overlap.
    apart = [u for u, d in work.window.items() if d not in work.index_map]
    return scattered(work, apart)


def scattered(work: ScalarUpdates, apart: list[int]) -> Stmt:
    """The copies, and a shared loop over the dimensions of the updates that lie ``apart``."""
    frame, copied = work.frame, []
    if not frame.in_place:
        pairs = zip(work.operands, work.targets, strict=True)
        stores = [Store(operand, target, compute=False) for operand, target in pairs]
        copied.append(frame.pointwise(work.sizes, stores, 1))
    if work.updates[0].array_shape.size == 0:
        return seq(*copied)
    shared = work.axes(apart)
    serial = work.axes([d for d in (*work.outer, *work.window) if d not in apart])

    def step(number: Expr) -> list[Stmt]:
        place(number, shared, work.at, work.dtype)
        return [nested(serial, work.at, work.element, work.dtype)]

    extent = math.prod(axis.extent for axis in shared)
    return seq(*copied, shared_loop(extent, step, work.dtype))
