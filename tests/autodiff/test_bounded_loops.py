"""Derivatives of loops inside loops whose numbers of steps are bounded, not known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.autodiff.intervals import knowing, range_of, ranges_of_state
from tracejit.graph import Module
from tracejit.ops import comparison, elementwise
from tracejit.ops.constants import constant, iota, parameter
from tracejit.shapes import ElementType, Shape
from tracejit.traversal import called_computations


def lower(a: Any) -> Any:
    """The logarithm of a determinant, by a Cholesky factorisation."""
    n = a.shape[0]
    factor = np.zeros((n, n))
    for j in range(n):
        s = a[j, j]
        for k in range(j):
            s = s - factor[j, k] * factor[j, k]
        factor[j, j] = np.sqrt(s)
        for i in range(j + 1, n):
            t = a[i, j]
            for k in range(j):
                t = t - factor[i, k] * factor[j, k]
            factor[i, j] = t / factor[j, j]
    return np.sum(np.log(np.diag(factor)))


def backwards(a: Any) -> Any:
    """A triangular system, from its end, and one with a step of two."""
    n = a.shape[0]
    x = np.ones(n)
    for i in range(n - 1, -1, -1):
        s = x[i]
        for k in range(n - 1, i, -1):
            s = s - a[i, k] * x[k]
        for k in range(i % 2, i, 2):
            s = s + 0.1 * a[k, i] ** 2
        x[i] = s / a[i, i]
    return np.sum(x * x)


def whole_rows(a: Any) -> Any:
    """Steps that compute with rows, and a number that they carry."""
    n = a.shape[0]
    b, scale = a * 1.0, 1.0
    for k in range(n - 1):
        for i in range(k + 1, n):
            factor = b[i, k] / b[k, k]
            b[i] = b[i] - factor * b[k]
            scale = scale * (1 + 0.01 * factor)
    return np.sum(np.diag(b) ** 2) * scale


def few(a: Any) -> Any:
    """Loops that mostly take no step, and an array that no step changes."""
    n = a.shape[0]
    total = 0.0
    for i in range(n):
        for k in range(i, n // 3):
            total = total + np.sin(a[i, k]) * a[k, n - 1]
    return total


def matrix(n: int) -> np.ndarray:
    made: np.ndarray = np.random.default_rng(n).normal(size=(n, n)) * 0.3
    return np.asarray(made @ made.T + 2 * np.eye(n))


def has_buffers(module: Module) -> bool:
    """Whether states are kept at distances that grow, and steps computed again."""
    return any("stretch" in c.name for c in called_computations(module))


@pytest.mark.parametrize(
    ("program", "size"), [(lower, 14), (backwards, 17), (whole_rows, 17), (few, 60)]
)
def test_equal_to_unrolled_loops(program: Callable[[Any], Any], size: int) -> None:
    a = matrix(size)
    gradient = tj.jit(tj.grad(program))
    module = gradient.lower(a).module
    assert not has_buffers(module)
    assert sum(1 for c in called_computations(module)) > 3
    expected = tj.grad(program)(a)
    np.testing.assert_allclose(gradient(a), expected, rtol=1e-9, atol=1e-12)
    step = np.random.default_rng(1).normal(size=a.shape)
    slope = (program(a + 1e-6 * step) - program(a - 1e-6 * step)) / 2e-6
    assert np.sum(expected * step) == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("nbytes", [0, 20_000])
def test_with_little_memory(nbytes: int) -> None:
    a = matrix(14)
    gradient = tj.jit(tj.grad(lower, memory_budget=nbytes))
    np.testing.assert_allclose(gradient(a), tj.grad(lower)(a), rtol=1e-9, atol=1e-12)


def test_derivatives_of_derivatives() -> None:
    def norm(scale: Any) -> Any:
        n, b = 9, matrix(9) * scale
        for i in range(n):
            for k in range(i):
                b[i] = b[i] - 0.1 * b[i, k] * np.tanh(b[k])
                b[k, i] = np.sin(b[i, k])
        return np.sum(b * b)

    second = tj.jit(tj.grad(tj.grad(norm)))
    assert second(1.2) == pytest.approx(tj.grad(tj.grad(norm))(1.2), rel=1e-9)


def test_loops_of_lax() -> None:
    def loss(x: Any, first: Any) -> Any:
        def row(total: Any, i: Any) -> Any:
            made = tj.lax.fori_loop(first, i, lambda k, s: s + np.sin(x[k]) * s * 0.1, total)
            return made * x[i], made

        final, rows = tj.lax.scan(row, 1.0 + x[0], np.arange(12))
        return final + np.sum(rows)

    def plain(x: np.ndarray, first: int) -> Any:
        total, sums = 1.0 + x[0], 0.0
        for i in range(12):
            for k in range(first, i):
                total = total + np.sin(x[k]) * total * 0.1
            sums += total
            total *= x[i]
        return total + sums

    x = np.random.default_rng(0).uniform(0.8, 1.2, 12)
    for static in (True, False):
        options: dict[str, Any] = {"static_argnums": 1} if static else {}
        gradient = tj.jit(tj.grad(loss), **options)
        for first in (0, 3):
            assert not has_buffers(gradient.lower(x, first).module)
            steps = 1e-6 * np.eye(12)
            slopes = [(plain(x + s, first) - plain(x - s, first)) / 2e-6 for s in steps]
            np.testing.assert_allclose(gradient(x, first), slopes, rtol=1e-6)


def test_ranges() -> None:
    scalar = Shape(ElementType.S32)
    x, unknown = parameter(0, scalar), parameter(1, scalar)
    two, most = constant(np.int32(2)), constant(np.int32(2**31 - 1))
    with knowing({x: (-3, 5)}):
        assert range_of(x) == (-3, 5)
        assert range_of(elementwise.add(x, two)) == (-1, 7)
        assert range_of(elementwise.sub(two, x)) == (-3, 5)
        assert range_of(elementwise.mul(x, x)) == (-15, 25)
        assert range_of(elementwise.max(x, two)) == (2, 5)
        assert range_of(elementwise.min(x, two)) == (-3, 2)
        assert range_of(elementwise.div(x, two)) == (-1, 2)
        assert range_of(elementwise.rem(x, two)) == (-1, 1)
        assert range_of(elementwise.div(two, x)) is None
        assert range_of(elementwise.rem(two, x)) is None
        chosen = elementwise.select(comparison.lt(unknown, two), x, elementwise.add(x, two))
        assert range_of(chosen) == (-3, 7)
        assert range_of(elementwise.add(x, most)) is None
        assert range_of(elementwise.add(x, unknown)) is None
        assert range_of(iota(Shape(ElementType.S64, (4, 9)), 1)) == (0, 8)
    assert range_of(x) is None
    with knowing({x: (-12, -7), unknown: (2, 5)}):
        assert range_of(elementwise.div(x, unknown)) == (-6, -1)
        assert range_of(elementwise.rem(x, unknown)) == (-4, 0)
    after = elementwise.add(x, two)
    begin = constant(np.int32(2**31 - 9))
    assert ranges_of_state([x], [after], [begin], 5) == {x: (2**31 - 9, 2**31 - 1)}
    assert ranges_of_state([x], [after], [begin], 6) == {}
