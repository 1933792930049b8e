"""Reductions along rows: vectors along the last reduced axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracejit.backends.tvm.analysis.element_rules import Value
from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.codegen.loop_nest import Axis, Count, nest
from tracejit.backends.tvm.cpu.schedule.reduce.accumulators import Accumulators, Range
from tracejit.backends.tvm.cpu.schedule.reduce.common import PARTS, Reduction, numbered, product
from tracejit.backends.tvm.cpu.schedule.reduce.row_kernels import (
    FoundInText,
    argmax_in_text,
    row_in_text,
)
from tracejit.backends.tvm.ir.dtypes import INDEX_TYPES, register_dtype
from tracejit.backends.tvm.ir.tir import Expr, Stmt, i32, importing, loop, seq, tirx


def rows(kernel: Reduction, axis: Axis) -> Stmt:
    """The statement of ``kernel`` with vectors along ``axis``."""
    kernel.frame.schedule = "row reduction" if kernel.kept_axes else "full reduction"
    counts = [kernel.count(a) for a in kernel.kept_axes]
    if kernel.in_parts(kernel.kept_size):
        return _row_parts(kernel, axis, counts)
    ranges = [Range(a, kernel.number(0), kernel.number(a.extent)) for a in kernel.reduced_axes]

    def row() -> list[Stmt]:
        return _combined_row(kernel, axis, ranges, kernel.initial, kernel.finish)

    return nest(counts, row, parallel=kernel.parallel(), dtype=kernel.dtype)


def _combined_row(
    kernel: Reduction,
    axis: Axis,
    ranges: Sequence[Range],
    start: Callable[[Emitter], list[Value]],
    use: Callable[[Emitter, list[Value]], list[Stmt]],
) -> list[Stmt]:
    """``use`` of the elements in ``ranges``, combined with ``start``."""
    text = row_in_text(kernel, ranges[0]) if len(ranges) == 1 else None
    if text is not None:
        code, first = text

        def called(emitter: Emitter, at: Expr) -> list[Stmt]:
            made = code.called(tirx.address_of(first), ranges[0].extent, *start(emitter))
            return use(emitter, [made])

        return [importing(code.text, seq(*kernel.scalar(called)))]
    best = argmax_in_text(kernel, ranges[0]) if len(ranges) == 1 else None
    if best is not None:
        return _best_of_row(kernel, ranges[0], best, start, use)
    total = Accumulators(kernel.reducer.element_types, 1)
    return [
        *total.allocations,
        *kernel.scalar(lambda e, at: total.write(e, at, start(e))),
        *kernel.row(axis, ranges, total, i32(0)),
        *kernel.scalar(lambda e, at: use(e, total.read(e, at))),
    ]


def _best_of_row(
    kernel: Reduction,
    what: Range,
    best: FoundInText,
    start: Callable[[Emitter], list[Value]],
    use: Callable[[Emitter, list[Value]], list[Stmt]],
) -> list[Stmt]:
    """``use`` of the best element in a range and its index, combined with ``start``."""
    code, first, begin = best
    _, place = kernel.reducer.element_types

    def found(emitter: Emitter, at: Expr) -> list[Stmt]:
        index = code.called(tirx.address_of(first), what.extent).astype(kernel.dtype)
        # The verifier does not know that it is inside.
        index = tirx.max(tirx.min(index, what.extent - kernel.number(1)), kernel.number(0))
        index = emitter.hold(index, INDEX_TYPES[kernel.dtype])
        number = first.source[first.indices[0] + index]
        own = [number, begin + index.astype(register_dtype(place))]
        return use(emitter, kernel.combined(emitter, start(emitter), own))

    return [importing(code.text, seq(*kernel.scalar(found)))]


def _row_parts(kernel: Reduction, axis: Axis, counts: list[Count]) -> Stmt:
    """Each part of the first reduced axis into its own accumulator; then combines the parts."""
    results = product(counts)
    partial = Accumulators(kernel.reducer.element_types, PARTS * results)
    slot: list[Expr] = [kernel.number(0)]

    def fill(number: Expr) -> list[Stmt]:
        at = number * kernel.number(results) + slot[0]
        return _combined_row(
            kernel,
            axis,
            kernel.part(kernel.reduced_axes, number),
            lambda emitter: kernel.identity(),
            lambda emitter, values: partial.write(emitter, at, values),
        )

    def gather() -> list[Stmt]:
        total = Accumulators(kernel.reducer.element_types, 1)

        def add(number: Expr) -> list[Stmt]:
            at = number * kernel.number(results) + slot[0]
            return kernel.scalar(
                lambda e, lane: total.write(
                    e, lane, kernel.combined(e, total.read(e, lane), partial.read(e, at))
                )
            )

        best = kernel.best_of(1) if results == 1 else None
        if best is None:
            gathered = [loop(PARTS, add, dtype=kernel.dtype)]
        else:
            # The sum is in every lane, and the first one is added.
            find = kernel.found_at
            gathered = kernel.vector(PARTS, None, lambda e, at: find(e, best, [partial], at))
            gathered += add(kernel.number(0))
        return [
            *total.allocations,
            *kernel.scalar(lambda e, lane: total.write(e, lane, kernel.initial(e))),
            *gathered,
            *kernel.finished(total),
        ]

    number: list[Expr] = []
    parts = Count(PARTS, lambda n: number.__setitem__(slice(None), [n]))
    slots = numbered(counts, slot, kernel.dtype)
    return seq(
        *kernel.frame.allocate(partial.buffers),
        nest([parts, *slots], lambda: fill(number[0]), parallel=PARTS, dtype=kernel.dtype),
        nest(numbered(counts, slot, kernel.dtype), gather, dtype=kernel.dtype),
    )
