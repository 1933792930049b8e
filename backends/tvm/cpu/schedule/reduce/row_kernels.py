"""Chooses `row_code` for extremes of contiguous rows that are loaded unchanged.

Other reductions are written in TIR: text takes as long to run.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tvm import sym
from tvm.ir import TensorLoad

from tracejit.backends.tvm.codegen.loop_nest import Axis
from tracejit.backends.tvm.cpu.llvm.kinds import KINDS
from tracejit.backends.tvm.cpu.machine import machine_of
from tracejit.backends.tvm.cpu.schedule.reduce.accumulators import (
    WINDOW,
    Range,
    Sweep,
)
from tracejit.backends.tvm.cpu.schedule.reduce.argmax_code import ArgmaxCode, argmax_code
from tracejit.backends.tvm.cpu.schedule.reduce.float_extremes import FloatExtremes
from tracejit.backends.tvm.cpu.schedule.reduce.row_code import (
    RowCode,
    RowReduction,
    row_code,
)
from tracejit.backends.tvm.ir.tir import Expr, tirx
from tracejit.graph import Instruction, Op
from tracejit.ops.computations import identity_value, monoid
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
    """The code for the extreme of contiguous floats, and the first; None for anything else."""
    (combiner, *others) = sweep.combiners
    op = monoid(combiner.work.combine)
    if others or op not in (MAX, MIN) or not KINDS[combiner.register()].is_float:
        return None
    first = _first(sweep, what, sweep.reducer.operands)
    way = _way_of(sweep, what.axis, op, combiner.extreme is not None)
    if first is None or way is None:
        return None
    count = int(what.extent) if isinstance(what.extent, tirx.IntImm) else None
    return row_code(way, count), first


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
