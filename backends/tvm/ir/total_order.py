"""Order-preserving integer keys of floats, in total or numeric order."""

from __future__ import annotations

from tracejit.backends.tvm.ir.tir import Expr, const, reinterpret, tirx


def total_order_key(value: Expr, dtype: str) -> Expr:
    """Signed integers in the order -NaN < -inf < … < -0 < +0 < … < +inf < +NaN."""
    signed = dtype.replace("float", "int")
    bits = reinterpret(signed, value)
    highest = 2 ** (int(signed[3:]) - 1) - 1
    return tirx.Select(bits < const(0, signed), bits ^ const(highest, signed), bits)


def numeric_order_key(value: Expr, dtype: str) -> Expr:
    """Like `total_order_key`, with one key for both zeros, and one, the greatest, for every NaN."""
    unsigned, signed = dtype.replace("float", "uint"), dtype.replace("float", "int")
    sign = 1 << (int(signed[3:]) - 1)
    infinity = {"float32": 0x7F800000, "float64": 0x7FF0000000000000}[dtype]
    magnitude = reinterpret(unsigned, value) & const(sign - 1, unsigned)
    key = total_order_key(value, dtype)
    key = tirx.Select(magnitude == const(0, unsigned), const(0, signed), key)
    return tirx.Select(magnitude > const(infinity, unsigned), const(sign - 1, signed), key)
