"""Loops over large arrays and long chains: what is drawn, and that compiled code computes it."""

from __future__ import annotations

import random

import pytest

from tests.fuzz.choices import Choices
from tests.fuzz.judging import judge_graph
from tests.fuzz.repeats import repeated
from tracejit.graph import Module
from tracejit.ops.constants import elements_of
from tracejit.runtime import importing_tvm
from tracejit.traversal import called_computations, in_order, instructions

with importing_tvm():
    from tracejit.backends.tvm.passes.canonicalize.canonicalize import canonicalize
    from tracejit.backends.tvm.pipeline import applied

SEEDS = range(30)


def module(seed: int) -> Module:
    return repeated(Choices(random.Random(seed).randint))


def loops_of(module: Module, roll: bool) -> int:
    roots = elements_of(module.entry.root)
    found = in_order(applied("reroll", canonicalize(roots)) if roll else roots)
    return sum(i.op.name == "While" for i in found)


def test_loops_write_into_large_arrays() -> None:
    ops_in_loops = set()
    sizes = set()
    for seed in SEEDS:
        for computation in called_computations(module(seed)):
            if computation.name == "repeats_body":
                ops_in_loops |= {i.op.name for i in instructions(computation)}
                states = computation.root.operands
                sizes |= {s.array_shape.size * s.array_shape.dtype.itemsize for s in states}
    assert {"DynamicUpdateSlice", "Scatter"} <= ops_in_loops
    assert max(sizes) > 2048


def test_some_chains_are_rolled() -> None:
    drawn = [module(seed) for seed in SEEDS]
    assert any(loops_of(m, True) > loops_of(m, False) for m in drawn)


@pytest.mark.parametrize("seed", [0, 9, 14, 19, 12200050])
def test_judged(seed: int) -> None:
    """The last one scatters into what it reads, in the place of another state of the loop."""
    outcome = judge_graph(module(seed), seed)
    assert not outcome.failed, outcome.text
