"""Shuffles of two vectors: the steps of a transposition in registers.

ZIPS[1]        (low, high): a0 b0 a1 b1 … of the first halves, and of the second halves
ZIPS[4]        the same with groups of four lanes
even, odd      a0 a2 … b0 b2 …, and a1 a3 … b1 b3 …
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracejit.backends.tvm.cpu.llvm.builder import Value
from tracejit.backends.tvm.cpu.llvm.kinds import MOVED
from tracejit.backends.tvm.cpu.mathematics.operations import binary
from tracejit.backends.tvm.ir.tir import Expr

Joined = Callable[[Expr, Expr, str], Expr]
"""``joined(a, b, dtype)``: the concatenation of two vectors."""


def _chosen(a: Value, b: Value, lanes: Sequence[int]) -> Value:
    """A shuffle: lanes of ``a`` are numbered from 0, those of ``b`` after them."""
    width = a.function.lanes
    mask = ", ".join(f"i32 {lane}" for lane in lanes)
    return a.function.emit(a.kind, f"shufflevector {a.typed}, {b.typed}, <{width} x i32> <{mask}>")


def _zip(group: int, second: bool) -> Joined:
    """One half of two interleaved vectors, ``group`` lanes at a time."""

    def formula(a: Value, b: Value) -> Value:
        width = a.function.lanes
        begin = width // 2 if second else 0
        groups = range(begin, begin + width // 2, group)
        starts = [start for place in groups for start in (place, place + width)]
        return _chosen(a, b, [start + lane for start in starts for lane in range(group)])

    formula.__doc__ = f"Halves of two vectors in turn, {group} lanes at a time."
    return binary(f"zip_{'high' if second else 'low'}_{group}", formula, MOVED)


def _every_other(first: int) -> Joined:
    """Every other lane of two vectors, one after the other."""

    def formula(a: Value, b: Value) -> Value:
        return _chosen(a, b, range(first, 2 * a.function.lanes, 2))

    formula.__doc__ = "Every other lane of two vectors."
    return binary("odd" if first else "even", formula, MOVED)


ZIPS = {group: (_zip(group, False), _zip(group, True)) for group in (1, 4)}
even, odd = _every_other(0), _every_other(1)
