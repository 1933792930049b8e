"""`Complex`: a complex number in registers, as a pair of TIR expressions."""

from __future__ import annotations

from typing import NamedTuple

from tracejit.backends.tvm.ir.tir import Expr


class Complex(NamedTuple):
    """A complex number as a pair of real expressions of one dtype."""

    re: Expr
    im: Expr
