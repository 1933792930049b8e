"""Minima of several values in loops: those of the step before come last, with equal results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.backends_tvm.compiled import check
from tracejit import lax
from tracejit.graph import Instruction
from tracejit.ops.constants import CONSTANT
from tracejit.ops.control import WHILE
from tracejit.ops.elementwise import AND, MAX, MIN
from tracejit.ops.layout import DYNAMIC_SLICE
from tracejit.runtime import importing_tvm
from tracejit.traversal import in_order

with importing_tvm():
    from tracejit.backends.tvm.analysis.induction import counted_loop
    from tracejit.backends.tvm.passes.canonicalize.canonicalize import canonicalize
    from tracejit.backends.tvm.passes.loops.reassociate_recurrence import reassociate_recurrences
    from tracejit.backends.tvm.pipeline import applied


def warped(costs: Any) -> Any:
    """The cheapest ways through a table, a step right, down or both at a time."""

    def row(i: Any, table: Any) -> Any:
        def cell(j: Any, table: Any) -> Any:
            def at(di: int, dj: int) -> Any:
                return lax.dynamic_slice(table, (i - di, j - dj), (1, 1))[0, 0]

            left, up, corner = at(0, 1), at(1, 0), at(1, 1)
            best = np.minimum(np.minimum(left, up), corner)
            made = (lax.dynamic_slice(costs, (i, j), (1, 1))[0, 0] + best)[None, None]
            return lax.dynamic_update_slice(table, made, (i, j))

        return lax.fori_loop(np.int64(1), np.int64(costs.shape[1]), cell, table)

    return lax.fori_loop(np.int64(1), np.int64(costs.shape[0]), row, costs)


def running(x: Any) -> Any:
    """A number that is carried, among others that are not."""

    def step(i: Any, carried: Any) -> Any:
        best, made = carried
        best = np.maximum(np.maximum(x[i], np.maximum(best, -x[i])), x[i - 1]) * 0.9
        return best, lax.dynamic_update_slice(made, best[None], (i,))

    return lax.fori_loop(np.int64(1), np.int64(x.shape[0]), step, (x[0], x))


def nearest(x: Any, new: Any) -> Any:
    """The least of some numbers and where it is, the greatest of all others."""

    def step(i: Any, carried: Any) -> Any:
        best, place, worst = carried
        better = np.logical_and(new[i], x[i] < best)
        worse = np.logical_and(worst <= x[i], np.logical_not(new[i]))
        return (
            np.where(better, x[i], best),
            np.where(better, i, place),
            np.where(worse, x[i], np.where(better, worst + 1, worst)),
        )

    begin = np.float64(np.inf), np.int64(-1), np.float64(-np.inf)
    return lax.fori_loop(np.int64(0), np.int64(x.shape[0]), step, begin)


@pytest.mark.parametrize("special", [0.0, np.nan, np.inf, -np.inf])
def test_values(special: float) -> None:
    costs = np.random.default_rng(0).standard_normal((7, 8))
    costs[2, 3] = costs[0] = special
    costs[4] = np.where(np.arange(8) % 2, 0.0, -0.0)
    check(tj.jit(warped).lower(costs).module.entry, [costs])
    check(tj.jit(running).lower(costs[4]).module.entry, [costs[4]])
    check(tj.jit(running).lower(costs[2]).module.entry, [costs[2]])
    new = np.arange(56) % 3 > 0
    check(tj.jit(nearest).lower(costs.ravel(), new).module.entry, [costs.ravel(), new])


def extremes(root: Instruction) -> list[Instruction]:
    return [i for i in in_order([root]) if i.op in (MIN, MAX)]


def test_what_the_step_before_has_written_comes_last() -> None:
    module = tj.jit(warped).lower(np.ones((7, 8))).module
    (outer,) = (i for i in in_order([module.entry.root]) if i.op.opcode == "while")
    (body,) = canonicalize([outer.attributes["body"].root])
    (inner,) = (i for i in in_order([body]) if i.op.opcode == "while")
    attributes = {
        name: type(old)(old.name, old.parameters, canonicalize([old.root])[0])
        for name in ("condition", "body")
        for old in [inner.attributes[name]]
    }
    loop = counted_loop(
        Instruction(inner.op, inner.operands, inner.shape, attributes, inner.source),
        inner.operands,
    )
    assert loop is not None
    first, last = extremes(reassociate_recurrences(loop))
    assert last.operands[0] is first
    reads = [i for i in in_order([last.operands[1]]) if i.op is DYNAMIC_SLICE]
    assert len(reads) == 1
    assert reads[0] not in in_order([first])


def test_a_number_that_is_masked_is_compared_as_nan() -> None:
    module = tj.jit(nearest).lower(np.ones(9), np.ones(9, bool)).module
    (loop,) = (
        i for i in in_order(applied("vectorize-loops", [module.entry.root])) if i.op is WHILE
    )
    made = in_order([loop.attributes["body"].root])
    assert not any(i.op is AND for i in made)
    assert sum(i.op is CONSTANT and np.isnan(i.attributes["literal"]).all() for i in made)
