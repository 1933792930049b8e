"""FFT kernels: divides the work of `fourier_code` among threads.

Threads share rows that are transformed one by one, or else the strips of each sweep.
"""

from __future__ import annotations

from tracejit.backends.tvm.analysis.fft_plan import LINE, Transform
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.cpu.kernels.sharing import on_workers, share
from tracejit.backends.tvm.cpu.machine import machine_of
from tracejit.backends.tvm.cpu.schedule.fft.code import fourier_code
from tracejit.backends.tvm.ir.tir import AllocBuffer, Buffer, Expr, Stmt, i32, loop, seq, tirx

# The most bytes of stack memory for a row's intermediate results.
_STACK = 96 << 10


def fourier(
    frame: Frame, what: Transform, source: Buffer, table: Buffer, plan: Buffer, target: Buffer
) -> Stmt:
    """The statement of the whole kernel."""
    units = [what.count * strips for strips in what.strips]
    shared = what.count if what.by_rows else min(units)
    numbers = what.count * what.columns * what.length
    work = numbers * 2 * what.length.bit_length()
    workers = min(machine_of(frame).threads, shared) if frame.is_shared(work) else 1
    dtype = str(source.dtype)
    on_stack = what.by_rows and 2 * (2 * what.room + what.middle) * what.itemsize <= _STACK
    rooms = 1 if on_stack else workers
    scratch = _lines("stages", rooms * 4 * what.room, dtype)
    middle = _lines("middle", 2 * what.middle * (rooms if what.by_rows else 1), dtype)
    buffers = [scratch, middle] if what.is_row else [scratch]
    procedure = fourier_code(what, f"fourier_{what.name}")

    def swept(sweep: Expr, first: Expr, count: Expr, worker: Expr) -> Stmt:
        between = middle if what.is_row else target
        memories = [source, between, target, scratch, table, plan]
        integers = [sweep, first, count, worker]
        pointers = [memory.data for memory in memories]
        return procedure.called([*pointers, *(each.astype("int64") for each in integers)])

    def shared_rows(worker: Expr) -> Stmt:
        first, count = share(worker, what.count, workers)
        if not on_stack:
            return swept(i32(0), first, count, worker)
        return seq([AllocBuffer(each) for each in buffers], swept(i32(0), first, count, i32(0)))

    def sweep_of(sweep: Expr) -> Stmt:
        first, last = (-(-units[n] // workers) for n in (0, -1))
        total = sweep * (units[-1] - units[0]) + units[0]
        most = sweep * (last - first) + first

        def strips(worker: Expr) -> Stmt:
            count = tirx.max(tirx.min(most, total - worker * most), i32(0))
            return swept(sweep, worker * most, count, worker)

        return on_workers(workers, strips)

    body = on_workers(workers, shared_rows) if what.by_rows else loop(len(what.ways), sweep_of)
    return body if on_stack else seq(frame.allocate(buffers), body)


def _lines(name: str, items: int, dtype: str) -> Buffer:
    """Scratch memory that begins at a cache line."""
    return tirx.decl_buffer((items,), dtype, name=name, data_alignment=LINE)
