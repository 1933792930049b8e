"""Computations with control flow, tables and calls, applied by Map, Reduce, windows, Scatter, Sort.

The real XLA judges the interpreter, the interpreter the compiled code, and finite differences the
gradients.
"""

from __future__ import annotations

import numpy as np
import pytest

import tracejit as tj
from tests.hlo.called_programs import (
    BINARY,
    COMPARISONS,
    ORDERED,
    PROGRAMS,
    XLA_ABORTS,
    arguments,
    text,
)
from tests.judge import run_xla

CASES = [(program, name) for program in PROGRAMS for name in BINARY]
CASES += [(program, name) for program in ORDERED for name in COMPARISONS]

JUDGED = [
    (program, name)
    for program, name in CASES
    if name not in XLA_ABORTS
    # XLA takes the elements of a padded window in an order of its own.
    and (program not in ("padded window", "select") or name == "difference")
]


@pytest.mark.parametrize(("program", "name"), CASES)
def test_compiled_as_interpreted(program: str, name: str) -> None:
    module = tj.hlo.parse(text(program, name))
    given = arguments(program)
    expected = tj.interpret(module, *given)
    np.testing.assert_array_equal(tj.compile(module)(*given), expected)


@pytest.mark.parametrize(("program", "name"), JUDGED)
def test_interpreted_as_xla_has_it(program: str, name: str) -> None:
    module = tj.hlo.parse(text(program, name))
    given = arguments(program)
    expected = run_xla(module, *given)
    np.testing.assert_array_equal(tj.interpret(module, *given), expected)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("program", "name"), [c for c in CASES if c[0] in PROGRAMS])
def test_gradient_as_finite_differences(program: str, name: str) -> None:
    module = tj.hlo.parse(text(program, name))
    given = arguments(program)
    try:
        gradient = tj.gradient_of(module, [0], cotangents=True)
    except tj.errors.DerivativeError:
        assert program in ("scatter", "select and scatter")
        return
    result = tj.interpret(module, *given)
    rng = np.random.default_rng(1)
    cotangent = rng.standard_normal(result.shape)
    made = tj.compile(gradient)(*given, cotangent)
    np.testing.assert_allclose(tj.interpret(gradient, *given, cotangent), made, rtol=1e-12)
    direction = rng.standard_normal(given[0].shape)
    step = 1e-6
    ends = [
        np.sum(cotangent * tj.interpret(module, given[0] + sign * step * direction, *given[1:]))
        for sign in (1, -1)
    ]
    expected = (ends[0] - ends[1]) / (2 * step)
    np.testing.assert_allclose(np.sum(made * direction), expected, rtol=1e-6, atol=1e-7)
