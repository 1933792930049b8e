"""Top-k selection of values in contiguous rows, as LLVM text.

It does the same as `select` for its case, and is built in a third of the time.
"""

from __future__ import annotations

from tracejit.backends.tvm.analysis.sort_keys import AS_THEY_ARE, Order
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.cpu.machine import machine_of
from tracejit.backends.tvm.cpu.schedule.sort.quicksort import rows_in_memory
from tracejit.backends.tvm.cpu.schedule.sort.quicksort_code import SortPlan
from tracejit.backends.tvm.cpu.schedule.sort.rows import Sorting
from tracejit.backends.tvm.cpu.schedule.sort.select import Selecting
from tracejit.backends.tvm.cpu.schedule.sort.select_procedures import (
    indices_as,
    merged_parts,
    selected,
    values_at,
)
from tracejit.backends.tvm.ir.dtypes import register_dtype
from tracejit.backends.tvm.ir.tir import (
    PARALLEL,
    SERIAL,
    AllocBuffer,
    Buffer,
    Expr,
    Stmt,
    buffer,
    const,
    i64,
    loop,
    seq,
    tirx,
)


def suits_choosing(frame: Frame, work: Sorting, order: Order) -> bool:
    """Whether few values of each row are kept, of one operand with contiguous rows."""
    return (
        frame.limits.selects(work.kept, work.length)
        and len(work.operands) == 1
        and order.element_type in AS_THEY_ARE
        and work.operands[0].array_shape.size == rows_in_memory(work) * work.length
    )


class Choosing(Selecting):
    """The kernel; addresses must fit in 32 bits."""

    def __init__(self, frame: Frame, work: Sorting, order: Order) -> None:
        super().__init__(frame, work, order)
        kind = register_dtype(order.element_type)
        lanes = machine_of(frame).vector_bytes // order.element_type.dtype.itemsize
        self.plan = SortPlan(kind, lanes, order.descending, order.total)
        (self.operand,) = work.operands
        self.size = i64(work.kept)

    def statement(self) -> Stmt:
        if self.parts > 1:
            return self._in_parts()
        is_shared = self.frame.is_shared(self.steps * 8)
        return loop(self.rows, self._alone, PARALLEL if is_shared else SERIAL, dtype="int64")

    def _pairs(self, scope: str, count: int) -> tuple[Buffer, Buffer]:
        keys = buffer("keys", (count,), "int64", scope=scope)
        return keys, buffer("places", (count,), "int64", scope=scope)

    def _select(self, keys: Expr, places: Expr, row: Expr, begin: Expr, count: Expr) -> Stmt:
        first = row * self.length + begin
        source = self.in_memory[self.operand].data
        chosen = selected(self.plan, self.block)
        return chosen.called([source, keys, places, first, begin, count, self.size])

    def _store(self, places: Buffer, row: Expr) -> list[Stmt]:
        """Store the results for the first of a row."""
        statements = []
        for target, operand in self.work.targets:
            result = tirx.address_of(target[row * self.work.kept])
            if operand is None:
                given = [places.data, result, self.size]
                made = indices_as(self.plan, str(target.dtype)).called(given)
            else:
                source = self.in_memory[operand].data
                given = [source, places.data, result, row * self.length, self.size]
                made = values_at(self.plan).called(given)
            statements.append(made)
        return statements

    def _alone(self, row: Expr) -> list[Stmt]:
        keys, places = self._pairs("local", self.work.kept)
        length = const(self.length, "int64")
        return [
            AllocBuffer(keys),
            AllocBuffer(places),
            self._select(keys.data, places.data, row, i64(0), length),
            *self._store(places, row),
        ]

    def _in_parts(self) -> Stmt:
        """Rows one after the other; threads share the parts of each."""
        kept, count = self.work.kept, self.parts * self.work.kept
        memories = self._pairs("global", count)
        keys, places = self._pairs("local", kept)

        def row(number: Expr) -> list[Stmt]:
            def part(own: Expr) -> Stmt:
                begin = own * self.part
                size = tirx.min(const(self.part, "int64"), self.length - begin)
                first = [tirx.address_of(memory[own * kept]) for memory in memories]
                return self._select(first[0], first[1], number, begin, size)

            given = [memory.data for memory in (*memories, keys, places)]
            return [
                loop(self.parts, part, PARALLEL, dtype="int64"),
                merged_parts(self.plan).called([*given, i64(count), self.size]),
                *self._store(places, number),
            ]

        allocated = [*self.frame.allocate(memories), AllocBuffer(keys), AllocBuffer(places)]
        return seq(*allocated, loop(self.rows, row, dtype="int64"))
