"""asinh, acosh and atanh, as logarithms of sums in double-float precision."""

from __future__ import annotations

import math

from tracejit.backends.tvm.cpu.llvm.builder import Value
from tracejit.backends.tvm.cpu.mathematics.logarithm import log_of
from tracejit.backends.tvm.cpu.mathematics.vocabulary import (
    absolute,
    copy_sign,
    fma,
    select,
    sqrt,
    unlikely,
)

# From here on the square root of x**2 + 1 or x**2 - 1 is x.
_LARGE = 2.0**30

# Below this the function is x, to well under half an ulp.
_SMALL = {"float32": 2.0**-13, "float64": 2.0**-28}


def _sum(a: Value, b: Value) -> tuple[Value, Value]:
    """a + b as two floats; |a| >= |b|."""
    total = a + b
    return total, (a - total) + b


def _root(square: Value, low: Value) -> tuple[Value, Value]:
    """sqrt(square + low) as two floats."""
    root = sqrt(square)
    rest = (fma(-root, root, square) + low) / (root + root)
    return root, select(root > 0.0, rest, 0.0)


def _of_large(x: Value) -> Value:
    """log(2 x) for x from 2**30 on; infinity and NaN are themselves."""
    return select(x < math.inf, log_of(x, doublings=1.0), x)


def asinh(x: Value) -> Value:
    """log(x + sqrt(x**2 + 1)), within 1 ulp."""
    size = absolute(x)
    square = size * size
    square_low = fma(size, size, -square)
    larger, smaller = select(size > 1.0, square, 1.0), select(size > 1.0, 1.0, square)
    total, total_low = _sum(larger, smaller)
    root, root_low = _root(total, total_low + square_low)
    u, u_low = _sum(root, size)
    usual = select(size < _SMALL[x.kind.name], size, log_of(u, u_low + root_low))
    rare = ~(size < _LARGE)
    return copy_sign(unlikely(rare, lambda: [_of_large(size)], [usual])[0], x)


def acosh(x: Value) -> Value:
    """log(x + sqrt(x**2 - 1)), within 1 ulp; NaN below 1."""
    square = x * x
    square_low = fma(x, x, -square)
    total, total_low = _sum(square, x.like(-1.0))
    root, root_low = _root(total, total_low + square_low)
    u, u_low = _sum(x, root)
    rare = ~(x < _LARGE)
    value = unlikely(rare, lambda: [_of_large(x)], [log_of(u, u_low + root_low)])[0]
    return select(x >= 1.0, value, math.nan)


def atanh(x: Value) -> Value:
    """log((1 + x) / (1 - x)) / 2, within 1 ulp; NaN outside [-1, 1]."""
    size = absolute(x)
    over, over_low = _sum(x.like(1.0), size)
    under, under_low = _sum(x.like(1.0), -size)
    reciprocal = 1.0 / under
    u = over * reciprocal
    u_low = (fma(-u, under, over) + fma(-u, under_low, over_low)) * reciprocal
    value = log_of(u, u_low) * 0.5
    value = select(size < _SMALL[x.kind.name], size, value)
    value = select(size < 1.0, value, math.inf)
    return copy_sign(select(size <= 1.0, value, math.nan), x)
