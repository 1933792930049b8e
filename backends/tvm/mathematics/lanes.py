"""Lanes of two vectors side by side: what transposition in registers is made of."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.backends.tvm.mathematics.kinds import MOVED
from tracejit.backends.tvm.mathematics.llvm import Value
from tracejit.backends.tvm.mathematics.operations import binary


def _chosen(a: Value, b: Value, lanes: Sequence[int]) -> Value:
    """Lanes of ``a``, numbered from 0, and of ``b``, numbered on."""
    width = a.function.lanes
    mask = ", ".join(f"i32 {lane}" for lane in lanes)
    return a.function.emit(a.kind, f"shufflevector {a.typed}, {b.typed}, <{width} x i32> <{mask}>")


def _zip_low(a: Value, b: Value) -> Value:
    """The first halves of two vectors, lane by lane in turn: a0 b0 a1 b1 …"""
    return _zipped(a, b, 0)


def _zip_high(a: Value, b: Value) -> Value:
    """The second halves of two vectors, lane by lane in turn."""
    return _zipped(a, b, a.function.lanes // 2)


def _zipped(a: Value, b: Value, first: int) -> Value:
    width = a.function.lanes
    places = range(first, first + width // 2)
    return _chosen(a, b, [lane for place in places for lane in (place, place + width)])


zip_low = binary("zip_low", _zip_low, MOVED)
zip_high = binary("zip_high", _zip_high, MOVED)
