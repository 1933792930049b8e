"""Vectorised statements over adjacent elements: the body for one element, run for every lane."""

from __future__ import annotations

from collections.abc import Callable

from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.ir.tir import VECTORIZED, Expr, Stmt, i32, loop, seq, tirx


def as_index(value: Expr, dtype: str) -> Expr:
    """A lane, or another 32-bit number, as an index."""
    return value if dtype == "int32" else tirx.Cast(dtype, value)


def side_by_side(
    lanes: int, stand: Callable[[Expr], Emitter], body: Callable[[Emitter, Expr], list[Stmt]]
) -> list[Stmt]:
    """``body`` for each of ``lanes`` elements; ``stand`` moves to a lane and returns
    its emitter.
    """
    allocations: list[Stmt] = []

    def each(lane: Expr) -> Stmt:
        emitter = stand(lane)
        statements = body(emitter, lane)
        allocations.extend(emitter.allocations)
        return seq(*emitter.statements, *statements)

    # A single lane is not vectorised.
    statement = each(i32(0)) if lanes == 1 else loop(lanes, each, VECTORIZED)
    return [*allocations, statement]
