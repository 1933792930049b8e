"""Packs operands into panels, in the order in which register tiles read them.

A packed panel holds ``width`` numbers for each step of the contraction, next to one another. Each
number is read through the accessor once.
"""

from __future__ import annotations

from collections.abc import Callable

from tracejit.backends.tvm.cpu.kernels.arithmetic import Arithmetic, Parts
from tracejit.backends.tvm.cpu.kernels.tile import vector_loop
from tracejit.backends.tvm.ir.tir import Expr, Stmt, seq


def pack(
    arithmetic: Arithmetic,
    width: int,
    element: Callable[[Expr], Parts],
    write: Callable[[Expr, Parts], Stmt],
    *,
    lanes: int,
    valid: int,
) -> Stmt:
    """One step: ``write(x, element(x))`` for x < ``width``, with zero from ``valid`` on."""
    filled = vector_loop(valid, lanes, lambda x: write(x, element(x)))
    if valid == width:
        return filled
    zero = arithmetic.zero
    return seq(filled, vector_loop(width - valid, lanes, lambda x: write(x, zero), start=valid))
