"""Chooses `row_code` for reductions of contiguous rows that are loaded unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from tvm import sym
from tvm.ir import TensorLoad

from tracejit.backends.tvm.codegen.loop_nest import Axis
from tracejit.backends.tvm.cpu.kernels.sharing import on_workers, share
from tracejit.backends.tvm.cpu.llvm.kinds import KINDS
from tracejit.backends.tvm.cpu.llvm.procedures import Procedure
from tracejit.backends.tvm.cpu.machine import machine_of
from tracejit.backends.tvm.cpu.schedule.reduce.accumulators import (
    WINDOW,
    Accumulators,
    Range,
    Sweep,
)
from tracejit.backends.tvm.cpu.schedule.reduce.argmax_code import ArgmaxCode, argmax_code
from tracejit.backends.tvm.cpu.schedule.reduce.float_extremes import FloatExtremes
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
from tracejit.graph import Instruction, Op
from tracejit.ops.computations import identity_value, monoid
from tracejit.ops.constants import CONSTANT
from tracejit.ops.elementwise import MAX, MIN

# The least groups of vectors of a row whose extreme is not found by ranks.
LONG = 8
# Kinds whose registers hold numbers in the format of memory.
_AS_THEY_ARE = frozenset({"float32", "float64", "int32", "int64", "uint32", "uint64"})


FoundInText = tuple[ArgmaxCode, TensorLoad, Expr]
"""The code for an argmax or argmin over a range, the range's first number, and its index."""


def argmax_in_text(sweep: Sweep, what: Range) -> FoundInText | None:
    """How an argmax or argmin over a contiguous range is found; None for anything else."""
    (combiner, *others) = sweep.combiners
    if others or combiner.finds is None or what.axis.extent < WINDOW:
        return None
    first = _first(sweep, what, [combiner.work.operands[0]])
    index = _counted(sweep, what)
    if first is None or index is None:
        return None
    op = MAX if combiner.finds == "argmax" else MIN
    way = _way_of(sweep, what.axis, op, ranked=False)
    count = int(what.extent) if isinstance(what.extent, tirx.IntImm) else None
    return None if way is None else (argmax_code(way, count), first, index)


def row_in_text(sweep: Sweep, what: Range) -> tuple[RowCode, TensorLoad] | None:
    """The code for a contiguous range, and its first element; None for any other range."""
    first = _first(sweep, what, sweep.reducer.operands)
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
        first = _first(sweep, whole, reducer.operands)
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
    (combiner,) = sweep.combiners
    op = monoid(combiner.work.combine)
    return None if op is None else _way_of(sweep, axis, op, combiner.extreme is not None)


def _way_of(sweep: Sweep, axis: Axis, op: Op, ranked: bool) -> RowReduction | None:
    lanes, kind = sweep.lanes(axis.extent), KINDS[sweep.combiners[0].register()]
    if kind.name not in _AS_THEY_ARE or lanes == 1:
        return None
    group, apart = sweep.group(axis.extent, lanes), False
    if kind.is_float and op in (MAX, MIN):
        machine = machine_of(sweep.frame)
        few = group
        while few > 1 and FloatExtremes.registers(few, lanes, kind, machine) > machine.registers:
            few //= 2
        apart = machine.architecture == "x86_64" and axis.extent >= LONG * few * lanes
        if not (apart or ranked):
            return None
        group = few if apart else group
    start = np.asarray(identity_value(op.function, sweep.reducer.element_types[0])).item()
    return RowReduction(op, kind, start, lanes, group, ranked, apart)


def _first(sweep: Sweep, what: Range, operands: Sequence[Instruction]) -> TensorLoad | None:
    """The first element of a range, if all are contiguous and loaded unchanged."""
    if len(operands) > 1:
        return None
    first, second = _neighbours(sweep, what, operands[0])
    if not isinstance(first, TensorLoad) or not isinstance(second, TensorLoad):
        return None
    return first if _is_next(first.indices[0], second.indices[0]) else None


def _counted(sweep: Sweep, what: Range) -> Expr | None:
    """The first of the indices of an argmax, if they count the elements of a range."""
    first, second = _neighbours(sweep, what, sweep.combiners[0].work.operands[1])
    is_one = first is not None and second is not None and _is_next(first, second)
    return first if is_one else None


def _neighbours(sweep: Sweep, what: Range, operand: Instruction) -> list[Expr | None]:
    """The first two elements of a range; None in place of one that takes statements."""
    found: list[Expr | None] = []
    for offset in (0, 1):
        sweep.positions[what.axis.last] = what.begin + sweep.number(offset)
        emitter = sweep.emitter()
        emitter.holding = False
        where = sweep.reducer.locate(sweep.kept.indices, sweep.reduced.indices)
        element = emitter.value(operand, where)
        found.append(None if emitter.statements else element)
    return found


def _is_next(first: Expr, second: Expr) -> bool:
    return bool(sym.Analyzer().can_prove_equal(second, first + 1))
