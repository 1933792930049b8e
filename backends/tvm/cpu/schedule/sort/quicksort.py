"""Vectorised quicksort of values in contiguous rows: divides rows among threads.

Threads share rows. With fewer rows than threads, pivots first cut a row into a part for each
thread.
"""

from __future__ import annotations

import math

from tracejit.backends.tvm.analysis.sort_keys import AS_THEY_ARE, Order
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.cpu.llvm.procedures import Procedure
from tracejit.backends.tvm.cpu.machine import machine_of
from tracejit.backends.tvm.cpu.schedule.sort.quicksort_code import SortPlan
from tracejit.backends.tvm.cpu.schedule.sort.quicksort_procedures import (
    division,
    is_short,
    restored,
    short_row,
    sorted_part,
)
from tracejit.backends.tvm.cpu.schedule.sort.rows import Sorting
from tracejit.backends.tvm.ir.dtypes import register_dtype
from tracejit.backends.tvm.ir.tir import (
    PARALLEL,
    AllocBuffer,
    Buffer,
    Expr,
    Stmt,
    buffer,
    const,
    i64,
    loop,
    seq,
    store,
    tirx,
)

# Kinds of numbers whose vectors can be compressed.
VECTOR_BYTES = 64
# The least bytes of a row that several threads share.
_SHARED_FROM = 1 << 17


def suits_vectors(frame: Frame, work: Sorting, order: Order) -> bool:
    """Whether a sort is of values alone, in rows, on a processor with vector compress, or of values
    of 32 bits, on one that permutes vectors by a table.
    """
    machine = machine_of(frame)
    is_narrow = machine.permutes and order.element_type.dtype.itemsize == 4
    return (
        (machine.vector_bytes == VECTOR_BYTES or is_narrow)
        and len(work.operands) == 1
        and [operand for _, operand in work.targets] == list(work.operands)
        and work.kept == work.length > 1
        and order.element_type in AS_THEY_ARE
        and work.operands[0].array_shape.size == rows_in_memory(work) * work.length
    )


def rows_in_memory(work: Sorting) -> int:
    """The number of consecutive rows in memory."""
    return math.prod(work.sizes[: work.dimension])


def vector_sort(frame: Frame, work: Sorting, order: Order) -> Stmt:
    """The statement of the whole kernel."""
    itemsize = order.element_type.dtype.itemsize
    kind = register_dtype(order.element_type)
    lanes = machine_of(frame).vector_bytes // itemsize
    plan = SortPlan(kind, lanes, order.descending, order.total)
    (operand,) = work.operands
    ((target, _),) = work.targets
    rows, length = rows_in_memory(work), work.length
    pieces = frame.pieces(rows * length * 2 * length.bit_length())
    threads = machine_of(frame).threads
    if pieces > 1 and rows < threads and length * itemsize >= _SHARED_FROM:
        return _shared(frame, plan, frame.inputs[operand], target, rows, length)
    return _by_rows(frame, plan, frame.inputs[operand], target, rows, length, min(pieces, rows))


def _by_rows(
    frame: Frame,
    plan: SortPlan,
    source: Buffer,
    target: Buffer,
    rows: int,
    length: int,
    pieces: int,
) -> Stmt:
    """Rows one after the other, in ``pieces`` for the threads."""
    short = short_row(plan, length) if is_short(plan, length) else None
    scratch = buffer("keys", (pieces * length,), str(target.dtype))
    size = -(-rows // pieces)

    def piece(number: Expr) -> Stmt:
        begin = number * size
        left = tirx.max(tirx.min(const(size, "int64"), rows - begin), i64(0))

        def row(each: Expr) -> Stmt:
            first = (begin + each) * length
            if short is not None:
                return short.called([source.data, target.data, first])
            keys = tirx.address_of(scratch[number * length])
            places = tirx.address_of(source[first]), tirx.address_of(target[first])
            return sorted_row(plan, *places, keys, length)

        return loop(left, row, dtype="int64")

    body = piece(i64(0)) if pieces == 1 else loop(pieces, piece, PARALLEL, dtype="int64")
    return body if short is not None else seq(*frame.allocate([scratch]), body)


def sorted_row(plan: SortPlan, source: Expr, target: Expr, scratch: Expr, length: int) -> Stmt:
    """Sort a row that is not short; ``scratch`` has room for it.

    Integers may be sorted in place.
    """
    said = buffer("said", (2,), "int64", scope="local")
    number, zero = said[0], i64(0)
    finish = sorted_part(plan)
    statements = [
        AllocBuffer(said),
        division(plan, True).called([source, scratch, said.data, zero, i64(length)]),
        finish.called([scratch, target, target, zero, number, zero]),
        finish.called([scratch, target, target, number, length - number, zero]),
    ]
    if plan.restores:
        statements.append(restored(plan).called([source, target, said.data, zero, i64(length)]))
    return seq(*statements)


def _shared(
    frame: Frame, plan: SortPlan, source: Buffer, target: Buffer, rows: int, length: int
) -> Stmt:
    """Rows one after the other, each cut into parts by pivots until every thread has one."""
    levels = (machine_of(frame).threads - 1).bit_length()
    parts = 1 << levels
    scratch = buffer("keys", (length,), str(target.dtype))
    # The boundaries of parts, and the output of a division.
    bounds = buffer("bounds", (parts + 1,), "int64", scope="local")
    said = buffer("said", (2 * parts,), "int64", scope="local")
    enter, divide = division(plan, True), division(plan, False)
    finish, restore = sorted_part(plan), restored(plan)

    def row(number: Expr) -> list[Stmt]:
        base = number * length
        result = tirx.address_of(target[base])
        operand = tirx.address_of(source[base])
        statements: list[Stmt] = [
            store(bounds, 0, i64(0)),
            store(bounds, parts, i64(length)),
        ]
        places = [scratch.data, result]
        for level in range(levels):
            stride = parts >> level
            procedure = divide if level else enter
            here, there = places[(level + 1) % 2] if level else operand, places[level % 2]

            def cut(
                part: Expr,
                stride: int = stride,
                procedure: Procedure = procedure,
                here: Expr = here,
                there: Expr = there,
            ) -> Stmt:
                first = bounds[part * stride]
                count = bounds[(part + 1) * stride] - first
                words = tirx.address_of(said[part * stride * 2])
                return seq(
                    procedure.called([here, there, words, first, count]),
                    store(bounds, part * stride + stride // 2, first + said[part * stride * 2]),
                )

            statements.append(
                loop(1 << level, cut, PARALLEL, dtype="int64") if level else cut(i64(0))
            )
        keys, other = places[(levels + 1) % 2], places[levels % 2]

        def sort(part: Expr) -> Stmt:
            first = bounds[part]
            return finish.called([keys, other, result, first, bounds[part + 1] - first, i64(0)])

        statements.append(loop(parts, sort, PARALLEL, dtype="int64"))
        if plan.restores:
            statements.append(restore.called([operand, result, said.data, i64(0), i64(length)]))
        return statements

    body = row(i64(0)) if rows == 1 else loop(rows, row, dtype="int64")
    return seq(
        *frame.allocate([scratch]),
        AllocBuffer(bounds),
        AllocBuffer(said),
        body,
    )
