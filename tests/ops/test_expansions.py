"""Ops composed of others: nothing of them is left, and the values stay within a few ULP."""

from __future__ import annotations

import numpy as np
import pytest

from tests.evaluation import given
from tests.judge import run_xla
from tracejit import ops
from tracejit.backends.numpy import evaluate
from tracejit.graph import Computation, Module, Op
from tracejit.ops.base import make
from tracejit.ops.expansions import EXPANSIONS, expand
from tracejit.shapes import ElementType, Shape
from tracejit.traversal import instructions

SPECIAL = [0.0, 1.0, 0.5, 2.0, 1e-30, 1e30, 3e38, 88.0, 89.0, 700.0, 710.0, np.inf, np.nan]
FLOATING = [ElementType(t) for t in ("f8e4m3fn", "f8e5m2", "bf16", "f16", "f32", "f64")]


def one(op: Op, shape: Shape) -> Computation:
    operand = ops.parameter(0, shape)
    return Computation("entry", (operand,), make(op, operand))


def operands(element_type: ElementType) -> np.ndarray:
    rng = np.random.default_rng(0)
    wide = rng.standard_normal(500) * 10.0 ** rng.integers(-6, 3, 500)
    values = np.concatenate([wide, rng.uniform(-1.25, 3, 500), SPECIAL, np.negative(SPECIAL)])
    with np.errstate(over="ignore"):
        return values.astype(element_type.dtype)


@pytest.mark.parametrize("op", EXPANSIONS, ids=str)
@pytest.mark.parametrize("element_type", FLOATING, ids=str)
def test_floating(op: Op, element_type: ElementType) -> None:
    values = operands(element_type)
    computation = one(op, Shape(element_type, values.shape))
    expected = evaluate(computation, [values]).astype(np.float64)
    actual = evaluate(expand(computation), [values]).astype(np.float64)
    zeros = expected == 0
    np.testing.assert_array_equal(np.signbit(actual[zeros]), np.signbit(expected[zeros]))
    units = np.finfo(np.float64).eps if element_type is ElementType.F64 else 2.0**-23
    # Narrow types are rounded once, at the end, but for the f32 value having errors of its own.
    relative = {8: 0.25, 16: 2.0**-7}.get(element_type.bits, 2.5 * units)
    np.testing.assert_allclose(actual, expected, rtol=relative, atol=0)


@pytest.mark.parametrize("op", EXPANSIONS, ids=str)
def test_complex(op: Op) -> None:
    rng = np.random.default_rng(1)
    wide = rng.standard_normal(1000) * 10.0 ** rng.integers(-6, 3, 1000)
    values = wide + 1j * rng.permutation(wide)
    computation = one(op, Shape(ElementType.C128, values.shape))
    expected = evaluate(computation, [values])
    actual = evaluate(expand(computation), [values])
    finite = np.isfinite(expected)
    assert np.all(np.abs(actual - expected)[finite] <= 1e-15 * np.abs(expected)[finite])


@pytest.mark.parametrize("op", EXPANSIONS, ids=str)
def test_branch_cuts(op: Op) -> None:
    parts = [-3.0, -1.5, -0.5, -0.0, 0.0, 0.5, 1.5, 3.0]
    values = np.array([complex(x, y) for x in parts for y in parts])
    computation = one(op, Shape(ElementType.C128, values.shape))
    expected, actual = (evaluate(c, [values]) for c in (computation, expand(computation)))
    np.testing.assert_allclose(actual, expected, rtol=1e-14)


def test_called_computations_are_expanded_too() -> None:
    scalar = one(next(iter(EXPANSIONS)), Shape(ElementType.F32))
    operand = given("f32[3]")
    entry = Computation("entry", (operand,), ops.neg(ops.map_([operand], scalar, [0])))
    expanded = expand(entry)
    found = instructions(expanded)
    for called in found[-2].computations:
        found += instructions(called)
    assert not {i.op for i in found} & set(EXPANSIONS)
    values = np.array([-0.5, 0.0, 0.5], np.float32)
    np.testing.assert_allclose(evaluate(expanded, [values]), evaluate(entry, [values]), rtol=1e-6)


def test_nothing_to_expand_keeps_the_graph() -> None:
    operand = given("f32[3]")
    root = ops.exp(operand)
    assert expand(Computation("entry", (operand,), root)).root is root


@pytest.mark.parametrize("op", EXPANSIONS, ids=str)
def test_xla_runs_what_is_composed(op: Op) -> None:
    values = np.linspace(0.25, 0.75, 5, dtype=np.float32)
    if op.name == "Acosh":
        values = values + np.float32(1)
    module = Module("composed", one(op, Shape(ElementType.F32, (5,))))
    np.testing.assert_allclose(run_xla(module, values), evaluate(module.entry, [values]), rtol=1e-6)
