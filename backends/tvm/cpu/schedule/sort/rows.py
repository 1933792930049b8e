"""Base class of sorts: loops over rows, and results gathered by sorted indices."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tracejit.backends.tvm.analysis.element_rules import Value
from tracejit.backends.tvm.analysis.sort_keys import Order
from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.loop_nest import Count, nest
from tracejit.backends.tvm.ir.affine import row_major_strides
from tracejit.backends.tvm.ir.dtypes import INDEX_TYPES
from tracejit.backends.tvm.ir.tir import (
    AllocBuffer,
    Buffer,
    Expr,
    Stmt,
    buffer,
    const,
    loop,
    seq,
    store,
    tirx,
)
from tracejit.graph import Computation, Instruction


@dataclass(frozen=True)
class Sorting:
    """A sort: ``operands`` sorted together along ``dimension``.

    ``targets`` pairs each result's buffer with the operand that it permutes, or None for the
    indices themselves. The first ``kept`` elements of each row are stored. The comparator has more
    parameters than ``operands`` if operands that are iotas were removed.
    """

    operands: Sequence[Instruction]
    dimension: int
    comparator: Computation
    targets: Sequence[tuple[Buffer, Instruction | None]]
    kept: int

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.operands[0].array_shape.dimensions

    @property
    def length(self) -> int:
        """The number of elements in a row."""
        return self.sizes[self.dimension]


class RowSort(abc.ABC):
    """A kernel that sorts the indices of every row, then gathers by them.

    ``steps`` is the approximate number of steps for one element.
    """

    def __init__(self, frame: Frame, work: Sorting, steps: int) -> None:
        self.frame = frame
        self.work = work
        self.dtype = frame.index_dtype
        self.length = work.length
        self.others = [d for d in range(len(work.sizes)) if d != work.dimension]
        self.rows = math.prod(work.sizes[d] for d in self.others)
        self.steps = steps * self.rows * self.length
        self.at: dict[int, Expr] = {}
        self.in_memory = {operand: frame.inputs[operand] for operand in work.operands}
        self.strides = row_major_strides(work.sizes)
        result = list(work.sizes)
        result[work.dimension] = work.kept
        self.result_strides = row_major_strides(result)

    @abc.abstractmethod
    def scratch(self) -> Sequence[Buffer]:
        """Scratch memory for all rows together."""

    @abc.abstractmethod
    def ordered(self, row: Expr, base: Expr) -> tuple[list[Stmt], Callable[[Expr], Expr]]:
        """Statements that sort row ``row``, whose first element is at address ``base``.

        Also a function from an index in the sorted row to the index of that element in the
        operand.
        """

    def number(self, value: int) -> Expr:
        return const(value, self.dtype)

    def statement(self) -> Stmt:
        counts = [Count(self.work.sizes[d], self._placing(d)) for d in self.others]
        parallel = self.frame.pieces(self.steps * 8)
        body = nest(counts, self._row, parallel=parallel, dtype=self.dtype)
        return seq(*self.frame.allocate(self.scratch()), body)

    def load(self, emitter: Emitter, operand: Instruction, base: Expr, position: Expr) -> Value:
        """The element of ``operand`` at an index of the row."""
        stride = self.number(self.strides[self.work.dimension])
        element_type = operand.array_shape.element_type
        return emitter.load(self.in_memory[operand], base + position * stride, element_type)

    def keyed(self, order: Order, base: Expr, position: Expr) -> tuple[list[Stmt], Expr]:
        """Statements that make the key of the element at an index; and the key, which may be read
        again.
        """
        emitter = self.emitter()
        operand = self.work.operands[order.operand]
        element_type = operand.array_shape.element_type
        value = emitter.hold(self.load(emitter, operand, base, position), element_type)
        key = buffer("key", (1,), f"uint{order.bits}", scope="local")
        zero = self.number(0)
        statements = [
            AllocBuffer(key),
            *emitter.allocations,
            *emitter.statements,
            store(key, zero, order.key(value)),
        ]
        return statements, key[zero]

    def emitter(self) -> Emitter:
        return Emitter(self.in_memory, {}, uses=self.frame.uses, index_dtype=self.dtype)

    def _placing(self, dimension: int) -> Callable[[Expr], None]:
        def place(number: Expr) -> None:
            self.at[dimension] = number

        return place

    def _base(self, strides: Sequence[int]) -> Expr:
        total = self.number(0)
        for d in self.others:
            total = total + self.at[d] * self.number(strides[d])
        return total

    def _row_and_base(self) -> tuple[Expr, Expr]:
        """The number of the current row, and the address of its first element."""
        row = self.number(0)
        for d in self.others:
            row = row * self.number(self.work.sizes[d]) + self.at[d]
        return row, self._base(self.strides)

    def _row(self) -> list[Stmt]:
        row, base = self._row_and_base()
        statements, position = self.ordered(row, base)
        return [*statements, self._stored(base, position)]

    def _stored(self, base: Expr, position: Callable[[Expr], Expr]) -> Stmt:
        result_base = self._base(self.result_strides)
        result_stride = self.number(self.result_strides[self.work.dimension])

        def one(number: Expr) -> list[Stmt]:
            emitter = self.emitter()
            origin = emitter.hold(position(number), INDEX_TYPES[self.dtype])
            address = result_base + number * result_stride
            written: list[Stmt] = []
            for target, operand in self.work.targets:
                if operand is None:
                    written.append(store(target, address, tirx.Cast(str(target.dtype), origin)))
                    continue
                value = self.load(emitter, operand, base, origin)
                made = emitter.store(target, address, value, operand.array_shape.element_type)
                written.extend(made if isinstance(made, list) else [made])
            return [*emitter.allocations, *emitter.statements, *written]

        return loop(self.work.kept, one, dtype=self.dtype)
