"""The generator reaches every op, repeats itself, and its judge notices what is wrong."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.backends_tvm.compiled import check
from tests.fuzz.arguments import arguments
from tests.fuzz.choices import Choices
from tests.fuzz.comparing import leaves
from tests.fuzz.graphs import drawn
from tests.fuzz.noise import disagreements
from tests.fuzz.table import STEPS
from tracejit.backends.numpy import evaluate
from tracejit.graph import Module
from tracejit.ops.elementwise import SUB
from tracejit.runtime import importing_tvm
from tracejit.shapes import element_type_of
from tracejit.traversal import called_computations, instructions

with importing_tvm():
    from tracejit.backends.tvm.analysis.element_rules import pointwise


def module(seed: int, steps: int = 20) -> Module:
    return drawn(Choices(random.Random(seed).randint), 2, steps)


def test_every_op_is_drawn() -> None:
    found = {
        instruction.op.name
        for seed in range(300)
        for computation in called_computations(module(seed))
        for instruction in instructions(computation)
    }
    assert found >= set(STEPS)


def test_the_same_decisions_make_the_same_graph() -> None:
    assert str(module(7)) == str(module(7))


def test_an_evaluator_agrees_with_itself() -> None:
    entry = module(3).entry
    given = arguments(entry, 0)
    results = leaves(evaluate(entry, given))
    assert disagreements(entry, given, results, results) == {}


@pytest.mark.parametrize("seed", range(12))
def test_a_wrong_element_is_noticed(seed: int) -> None:
    """One element of each result is set to another value; two in five must be objected to.

    A result that rests on rounding alone says nothing, so not all are.
    """
    entry = module(seed).entry
    given = arguments(entry, seed)
    expected = leaves(evaluate(entry, given))
    wrong = [_with_a_wrong_element(array) for array in expected]
    changed = {n for n, array in enumerate(expected) if array.size}
    found = disagreements(entry, given, wrong, expected)
    assert set(found) <= changed
    assert len(found) * 5 >= len(changed) * 2


def test_a_broken_rule_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Subtraction compiled as addition."""
    assert pointwise.get(SUB)  # the rules of its family are loaded
    monkeypatch.setitem(pointwise._rules, SUB, lambda instruction, lhs, rhs: lhs + rhs)
    with pytest.raises(AssertionError, match="elements differ"):
        _check_subtractions()


def _check_subtractions() -> None:
    for seed in range(200):
        entry = module(seed, 4).entry
        if any(i.op is SUB for i in instructions(entry)):
            check(entry, arguments(entry, seed))


def _with_a_wrong_element(array: np.ndarray) -> np.ndarray:
    wrong = np.array(array)
    if not wrong.size:
        return wrong
    flat = wrong.reshape(-1)
    if element_type_of(array.dtype).is_inexact:
        is_nan = np.isnan(flat[-1].astype(np.complex128))
        has_nan = not element_type_of(array.dtype).is_small_float or np.isnan(
            np.array(np.nan).astype(array.dtype)
        )
        flat[-1] = 1 if is_nan else np.nan if has_nan else 2 if flat[-1] == 1 else 1
    else:
        flat[-1] = not flat[-1] if array.dtype == bool else flat[-1] ^ flat.dtype.type(1)
    return wrong
