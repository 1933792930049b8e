"""Elements side by side: what is done for one of them, as a vector of all."""

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
    """``body`` for each of ``lanes`` elements; ``stand`` goes to one and gives its scope."""
    allocations: list[Stmt] = []

    def each(lane: Expr) -> Stmt:
        emitter = stand(lane)
        statements = body(emitter, lane)
        allocations.extend(emitter.allocations)
        return seq(*emitter.statements, *statements)

    # A vector of one lane is no vector.
    statement = each(i32(0)) if lanes == 1 else loop(lanes, each, VECTORIZED)
    return [*allocations, statement]
