"""Fourier transforms: what surrounds `fourier_code`, which threads share.

Rows that are done one by one are what is shared; elsewhere the strips of one sweep after the other.
"""

from __future__ import annotations

from tracejit.backends.tvm.kernels.sharing import on_workers, share
from tracejit.backends.tvm.schedule.fourier_code import fourier_code
from tracejit.backends.tvm.schedule.fourier_plan import Transform
from tracejit.backends.tvm.schedule.frame import Frame
from tracejit.backends.tvm.tir import Buffer, Expr, Stmt, buffer, loop, seq


def fourier(
    frame: Frame, what: Transform, source: Buffer, table: Buffer, plan: Buffer, target: Buffer
) -> Stmt:
    """The whole kernel."""
    units = [what.count * strips for strips in what.strips]
    shared = what.count if what.by_rows else min(units)
    numbers = what.count * what.columns * what.length
    work = numbers * 2 * what.length.bit_length()
    workers = min(frame.machine.threads, shared) if frame.is_shared(work) else 1
    dtype = str(source.dtype)
    scratch = buffer("stages", (workers * 4 * what.room,), dtype)
    rooms = what.middle * (workers if what.by_rows else 1)
    middle = buffer("middle", (2 * rooms,), dtype) if what.is_row else target
    procedure = fourier_code(what, f"fourier_{what.name}")

    def swept(sweep: Expr, first: Expr, count: Expr, worker: Expr) -> Stmt:
        memories = [source, middle, target, scratch, table, plan]
        integers = [sweep, first, count, worker]
        pointers = [memory.data for memory in memories]
        return procedure.called([*pointers, *(each.astype("int64") for each in integers)])

    def in_sweep(values: list[int], sweep: Expr) -> Expr:
        """The first of the values in the first sweep, the last in the last."""
        return sweep * (values[-1] - values[0]) + values[0]

    def rows_of(worker: Expr) -> Stmt:
        first, count = share(worker, what.count, workers)

        def row(number: Expr, sweep: Expr) -> Stmt:
            strips = in_sweep(what.strips, sweep)
            return swept(sweep, (first + number) * strips, strips, worker)

        return loop(count, lambda number: loop(2, lambda sweep: row(number, sweep)))

    def strips_of(sweep: Expr, worker: Expr) -> Stmt:
        return swept(sweep, *share(worker, in_sweep(units, sweep), workers), worker)

    if what.by_rows:
        body = on_workers(workers, rows_of)
    else:
        body = loop(
            len(what.ways),
            lambda sweep: on_workers(workers, lambda worker: strips_of(sweep, worker)),
        )
    buffers = [scratch, middle] if what.is_row else [scratch]
    return seq(frame.allocate(buffers), body)
