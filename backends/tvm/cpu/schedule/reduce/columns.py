"""Reductions along columns: vectors along the last kept axis, or scalars if there is none."""

from __future__ import annotations

from collections.abc import Callable

from tracejit.backends.tvm.analysis.kernel_stats import COLUMNS
from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.codegen.loop_nest import Axis, Count, in_vectors, nest
from tracejit.backends.tvm.cpu.schedule.reduce.accumulators import Accumulators, Range
from tracejit.backends.tvm.cpu.schedule.reduce.common import PARTS, Reduction, numbered, product
from tracejit.backends.tvm.ir.tir import Expr, Stmt, loop, seq
from tracejit.backends.tvm.tune.knobs import either

# Columns are reduced this many vectors at a time, and this many rows per step.
VECTORS = 8
ROWS = 8


def columns(kernel: Reduction, axis: Axis | None) -> Stmt:
    """The statement of ``kernel`` with vectors along ``axis``, if there is one."""
    lanes = kernel.lanes(axis.extent) if axis is not None else 1
    kernel.frame.schedule = COLUMNS if kernel.fills_vectors(lanes) else "narrow column reduction"
    counts = [kernel.count(a) for a in kernel.kept_axes if a is not axis]
    if axis is not None and _is_wide(kernel, axis, lanes):
        return _wide_columns(kernel, axis, lanes, counts)
    if axis is not None:

        def place(first: Expr) -> None:
            kernel.positions[axis.last] = first

        counts.append(in_vectors(axis.extent, lanes, kernel.dtype, place))
    whole = [Range(a, kernel.number(0), kernel.number(a.extent)) for a in kernel.reduced_axes]
    if kernel.in_parts(len(counts) and product(counts)):
        return _column_parts(kernel, axis, lanes, counts)

    def block() -> list[Stmt]:
        into = Accumulators(kernel.reducer.element_types, lanes)
        return [
            *into.allocations,
            *kernel.vector(lanes, axis, lambda e, lane: into.write(e, lane, kernel.initial(e))),
            kernel.over(whole, lambda: kernel.vector(lanes, axis, kernel.step(into))),
            *kernel.vector(lanes, axis, lambda e, lane: kernel.finish(e, into.read(e, lane))),
        ]

    return nest(counts, block, parallel=kernel.parallel(), dtype=kernel.dtype)


def _is_wide(kernel: Reduction, axis: Axis, lanes: int) -> bool:
    """Whether there are enough columns for `VECTORS` vectors at a time."""
    can_be = (
        kernel.reducer.has_identities
        and bool(kernel.reduced_axes)
        and axis.extent % (lanes * VECTORS) == 0
    )
    pick = kernel.kept_size >= 2 * lanes * VECTORS
    return can_be and kernel.frame.choices.of("columns", either(pick, "in tiles", "vectors"))


def _wide_columns(kernel: Reduction, axis: Axis, lanes: int, counts: list[Count]) -> Stmt:
    """Tiles of several vectors of columns; several rows of a tile per step.

    A row of a tile is contiguous, which the hardware prefetches, and the accumulators are loaded
    and stored once for `ROWS` rows.
    """
    width = lanes * VECTORS
    first: list[Expr] = [kernel.number(0)]
    *outer, last = kernel.reduced_axes
    ranges = [Range(a, kernel.number(0), kernel.number(a.extent)) for a in outer]

    def place(number: Expr) -> None:
        first[:] = [number * kernel.number(width)]

    def tile() -> list[Stmt]:
        into = Accumulators(kernel.reducer.element_types, width)
        start = first[0]

        def vectors(body: Callable[[Emitter, Expr], list[Stmt]]) -> Stmt:
            def one(number: Expr) -> list[Stmt]:
                offset = number * kernel.number(lanes)
                kernel.positions[axis.last] = start + offset
                return kernel.vector(lanes, axis, lambda e, lane: body(e, offset + lane))

            return loop(VECTORS, one, dtype=kernel.dtype)

        def rows(count: int) -> Callable[[Expr], Stmt]:
            def step(number: Expr) -> Stmt:
                top = number * kernel.number(count)
                if count == 1:
                    top = number + kernel.number(last.extent - last.extent % ROWS)
                return vectors(lambda e, at: _down(kernel, e, into, at, last, top, count))

            return step

        def sweep() -> list[Stmt]:
            return [
                loop(last.extent // ROWS, rows(ROWS), dtype=kernel.dtype),
                loop(last.extent % ROWS, rows(1), dtype=kernel.dtype),
            ]

        return [
            *into.allocations,
            vectors(lambda e, at: into.write(e, at, kernel.initial(e))),
            kernel.over(ranges, sweep),
            vectors(lambda e, at: kernel.finish(e, into.read(e, at))),
        ]

    counts.append(Count(axis.extent // width, place))
    return nest(counts, tile, parallel=kernel.parallel(), dtype=kernel.dtype)


def _down(
    kernel: Reduction,
    emitter: Emitter,
    into: Accumulators,
    at: Expr,
    axis: Axis,
    top: Expr,
    count: int,
) -> list[Stmt]:
    """``count`` elements of one column, from ``top`` on, combined into accumulator ``at``."""
    values = into.read(emitter, at)
    for row in range(count):
        kernel.positions[axis.last] = top + kernel.number(row)
        inner = emitter.anew()
        values = kernel.joined(inner, values, once=False)
    return into.write(emitter, at, values)


def _column_parts(kernel: Reduction, axis: Axis | None, lanes: int, counts: list[Count]) -> Stmt:
    """Each part of the first reduced axis into its own accumulators; then combines the parts."""
    partial = Accumulators(kernel.reducer.element_types, PARTS * product(counts) * lanes)
    slot: list[Expr] = [kernel.number(0)]

    def base(number: Expr) -> Expr:
        return (number * kernel.number(product(counts)) + slot[0]) * kernel.number(lanes)

    def fill(number: Expr) -> list[Stmt]:
        into = Accumulators(kernel.reducer.element_types, lanes)
        ranges = kernel.part(kernel.reduced_axes, number)
        first = base(number)
        return [
            *into.allocations,
            *kernel.vector(lanes, axis, lambda e, lane: into.write(e, lane, kernel.identity())),
            kernel.over(ranges, lambda: kernel.vector(lanes, axis, kernel.step(into))),
            *kernel.vector(
                lanes,
                axis,
                lambda e, lane: partial.write(e, first + lane, into.read(e, lane)),
            ),
        ]

    def gather() -> list[Stmt]:
        into = Accumulators(kernel.reducer.element_types, lanes)

        def add(number: Expr) -> list[Stmt]:
            first = base(number)
            return kernel.vector(
                lanes,
                axis,
                lambda e, lane: into.write(
                    e,
                    lane,
                    kernel.combined(e, into.read(e, lane), partial.read(e, first + lane)),
                ),
            )

        return [
            *into.allocations,
            *kernel.vector(lanes, axis, lambda e, lane: into.write(e, lane, kernel.initial(e))),
            loop(PARTS, add, dtype=kernel.dtype),
            *kernel.vector(lanes, axis, lambda e, lane: kernel.finish(e, into.read(e, lane))),
        ]

    number: list[Expr] = []
    slots = numbered(counts, slot, kernel.dtype)
    parts = Count(PARTS, lambda n: number.__setitem__(slice(None), [n]))
    return seq(
        *kernel.frame.allocate(partial.buffers),
        nest([parts, *slots], lambda: fill(number[0]), parallel=PARTS, dtype=kernel.dtype),
        nest(numbered(counts, slot, kernel.dtype), gather, dtype=kernel.dtype),
    )
