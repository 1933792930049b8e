"""Chooses `row_code` for reductions of contiguous rows that are loaded unchanged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from tvm import sym
from tvm.ir import TensorLoad

from tracejit.backends.tvm.codegen.loop_nest import Axis
from tracejit.backends.tvm.cpu.kernels.sharing import on_workers, share
from tracejit.backends.tvm.cpu.llvm.kinds import KINDS
from tracejit.backends.tvm.cpu.llvm.procedures import Procedure
from tracejit.backends.tvm.cpu.machine import machine_of
from tracejit.backends.tvm.cpu.schedule.reduce.accumulators import Accumulators, Range, Sweep
from tracejit.backends.tvm.cpu.schedule.reduce.row_code import (
    RowCode,
    RowLayout,
    RowReduction,
    parts_code,
    row_code,
    rows_code,
)
from tracejit.backends.tvm.ir.affine import Affine
from tracejit.backends.tvm.ir.tir import Buffer, Expr, Stmt, seq, tirx
from tracejit.ops.computations import identity_value, monoid
from tracejit.ops.constants import CONSTANT
from tracejit.ops.elementwise import MAX, MIN

# Kinds whose registers hold numbers in the format of memory.
_AS_THEY_ARE = frozenset({"float32", "float64", "int32", "int64", "uint32", "uint64"})


def row_in_text(sweep: Sweep, what: Range) -> tuple[RowCode, TensorLoad] | None:
    """The code for a contiguous range, and its first element; None for any other range."""
    first = _first(sweep, what)
    way = _way(sweep, what.axis) if first is not None else None
    if first is None or way is None:
        return None
    count = int(what.extent) if isinstance(what.extent, tirx.IntImm) else None
    return row_code(way, count), first


@dataclass(frozen=True)
class WholeRows:
    """A reduction along ``axis``, whose results have a stride along ``kept``, if there are
    several.

    ``load`` is the address of the operand. With ``parts`` above 1 each row is cut into pieces that
    threads share.
    """

    sweep: Sweep
    axis: Axis
    kept: Axis | None
    load: Affine
    parts: int
    work: int

    def statement(self) -> Stmt | None:
        """Calls of procedures; None if operands or results are computed in the kernel."""
        sweep, reducer, count = self.sweep, self.sweep.reducer, self.kept.extent if self.kept else 1
        (initial, *_), (anchor, *_) = reducer.initial, reducer.anchors
        is_result = len(reducer.results) == 1 and reducer.results[0][0] is anchor
        if not is_result or initial.op is not CONSTANT:
            return None
        if self.kept is not None:
            sweep.positions[self.kept.last] = sweep.number(0)
        whole = Range(self.axis, sweep.number(0), sweep.number(self.axis.extent))
        first = _first(sweep, whole)
        way = _way(sweep, self.axis) if first is not None else None
        if first is None or way is None:
            return None
        ((_, target),) = reducer.results
        apart = self.load.coefficient(self.kept.last) if self.kept is not None else 0
        start = initial.attributes["literal"].item()
        threads, frame = machine_of(sweep.frame).threads, sweep.frame
        if self.parts == 1:
            rows = RowLayout(self.axis.extent, apart, self.load.constant)
            workers = min(threads, count) if frame.is_shared(self.work) else 1
            return _on_workers(rows_code(way, rows, start), first.source, target, workers, count)
        length = -(-self.axis.extent // self.parts)
        rows = RowLayout(length, apart, self.load.constant, self.parts, self.axis.extent, count)
        partial = Accumulators(reducer.element_types, self.parts * count)
        (between,) = partial.buffers
        pieces, all_pieces = rows_code(way, rows, start), self.parts * count
        return seq(
            *frame.allocate(partial.buffers),
            _on_workers(pieces, first.source, between, min(threads, self.parts), all_pieces),
            parts_code(way, self.parts, count, start).called([between.data, target.data]),
        )


def _on_workers(code: Procedure, source: Buffer, target: Buffer, workers: int, count: int) -> Stmt:
    def work(worker: Expr) -> Stmt:
        some = (each.astype("int64") for each in share(worker, count, workers))
        return code.called([source.data, target.data, *some])

    return on_workers(workers, work)


def _way(sweep: Sweep, axis: Axis) -> RowReduction | None:
    """How numbers in vectors along ``axis`` are reduced, if `row_code` supports it."""
    if len(sweep.combiners) > 1:
        return None
    ((combiner,), lanes) = sweep.combiners, sweep.lanes(axis.extent)
    op, kind = monoid(combiner.work.combine), KINDS[combiner.register()]
    if op is None or kind.name not in _AS_THEY_ARE or lanes == 1:
        return None
    if kind.is_float and op in (MAX, MIN) and combiner.extreme is None:
        return None
    start = np.asarray(identity_value(op.function, sweep.reducer.element_types[0])).item()
    return RowReduction(op, kind, start, lanes, sweep.group(axis.extent, lanes))


def _first(sweep: Sweep, what: Range) -> TensorLoad | None:
    """The first element of a range, if all are contiguous and loaded unchanged."""
    if len(sweep.reducer.operands) > 1:
        return None
    places = []
    for offset in (0, 1):
        sweep.positions[what.axis.last] = what.begin + sweep.number(offset)
        emitter = sweep.emitter()
        (element,) = sweep.elements(emitter)
        if emitter.statements or not isinstance(element, TensorLoad):
            return None
        places.append(element)
    first, second = places
    is_next = sym.Analyzer().can_prove_equal(second.indices[0], first.indices[0] + 1)
    return first if is_next else None
