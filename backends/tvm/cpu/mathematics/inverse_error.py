"""The vector formula of erf_inv."""

from __future__ import annotations

import math

from tracejit.backends.tvm.cpu.llvm.builder import Value
from tracejit.backends.tvm.cpu.mathematics.logarithm import log1p
from tracejit.backends.tvm.cpu.mathematics.vocabulary import (
    absolute,
    polynomial,
    select,
    sqrt,
    unlikely,
)
from tracejit.ops.inverse_error import PIECES, Piece
from tracejit.shapes import ElementType

_TYPES = {"float32": ElementType.F32, "float64": ElementType.F64}


def erf_inv(x: Value) -> Value:
    """The inverse of erf: infinite at -1 and 1, NaN beyond.

    Within 4 ulp up to 0.99; nearer to the ends the error of rounding x**2 dominates, as in XLA.
    The polynomials of the tails run only where some lane needs them.
    """
    near, *tails = PIECES[_TYPES[x.kind.name]]
    w = -log1p(-(x * x))

    def tail() -> list[Value]:
        made = _piece(w, tails[-1])
        for piece in tails[-2::-1]:
            made = select(w < piece.limit, _piece(w, piece), made)
        return [made]

    (factor,) = unlikely(~(w < near.limit), tail, [_piece(w, near)])
    return select(absolute(x).equals(1.0), x * math.inf, factor * x)


def _piece(w: Value, piece: Piece) -> Value:
    at = sqrt(w) if piece.root else w
    return polynomial(at - piece.shift, piece.coefficients[::-1])
