"""Copies of operands in the order in which register tiles read them.

A packed panel holds ``width`` numbers for each step of the contraction, next to one another:
``panel[step, x]``. Reading through the accessor happens here, once for each number.
"""

from __future__ import annotations

from collections.abc import Callable

from tracejit.backends.tvm.kernels.arithmetic import Arithmetic, Parts
from tracejit.backends.tvm.kernels.tile import vector_loop
from tracejit.backends.tvm.tir import Expr, Stmt, loop, seq


def pack(
    arithmetic: Arithmetic,
    width: int,
    depth: int | Expr,
    element: Callable[[Expr, Expr], Parts],
    write: Callable[[Expr, Expr, Parts], Stmt],
    *,
    lanes: int,
    valid: int,
) -> Stmt:
    """``write(step, x, element(step, x))`` for all ``depth`` steps; zero where x >= ``valid``."""
    zero = arithmetic.zero
    return loop(
        depth,
        lambda q: seq(
            vector_loop(valid, lanes, lambda x: write(q, x, element(q, x))),
            vector_loop(width - valid, lanes, lambda x: write(q, x, zero), start=valid)
            if valid < width
            else [],
        ),
    )
