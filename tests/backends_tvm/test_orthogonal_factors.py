"""Compiled QR: residuals, orthogonality and signs, for all shapes and for numbers of any size."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracejit as tj
from tests.backends_tvm.kernel_harness import LEVELS, MACHINE, Compiled
from tracejit.backends.tvm.cpu.kernels.linalg.orthogonal import Orthogonal, orthogonal_factors
from tracejit.backends.tvm.ir.tir import buffer, store
from tracejit.backends.tvm.passes.canonicalize.dead_results import eliminate_dead_results
from tracejit.ops.custom import CUSTOM_CALL
from tracejit.traversal import in_order

reduced = tj.jit(lambda a: tuple(np.linalg.qr(a)))
complete = tj.jit(lambda a: tuple(np.linalg.qr(a, "complete")))
alone = tj.jit(lambda a: np.linalg.qr(a, "r"))


def check(a: np.ndarray, q: np.ndarray, r: np.ndarray) -> None:
    """Column by column, as good as what LAPACK promises; the bound grows with the size."""
    bound = 4 * float(np.finfo(a.dtype).eps) * max(a.shape[-2:])
    a, q = a.astype(np.longdouble), q.astype(np.longdouble)
    sizes = np.sqrt((a * a).sum(-2, keepdims=True))
    # What is lost in denormal numbers is no fault.
    least = np.finfo(r.dtype).smallest_subnormal * np.longdouble(a.shape[-2])
    assert np.all(np.abs(a - q @ r.astype(np.longdouble)) <= bound * sizes + least)
    unit = np.eye(q.shape[-1])
    assert np.all(np.abs(np.swapaxes(q, -1, -2) @ q - unit) <= bound)
    assert not np.any(np.tril(r, -1))


def test_the_kernel_is_ours() -> None:
    a = np.ones((40, 20), np.float32)
    for function in (reduced, complete, alone):
        assert "orthogonal factors" in str(function.lower(a).compile().explain())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "shape", [(1, 1), (1, 7), (7, 1), (9, 8), (33, 33), (40, 17), (17, 40), (130, 70), (3, 5, 6, 4)]
)
def test_shapes(dtype: Any, shape: tuple[int, ...]) -> None:
    a = np.random.default_rng(len(shape)).standard_normal(shape).astype(dtype)
    check(a, *reduced(a))
    check(a, *complete(a))
    expected = np.linalg.qr(a, "r")
    tolerance = 50 * max(shape) * float(np.finfo(dtype).eps) * np.abs(expected).max()
    np.testing.assert_allclose(alone(a), expected, atol=tolerance)
    np.testing.assert_allclose(reduced(a)[1], expected, atol=tolerance)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (2, 0, 4), (0, 3, 3)])
@pytest.mark.parametrize("mode", ["reduced", "complete"])
def test_nothing(shape: tuple[int, ...], mode: Any) -> None:
    a = np.zeros(shape)
    made = tj.jit(lambda a: tuple(np.linalg.qr(a, mode)))(a)
    for found, expected in zip(made, np.linalg.qr(a, mode), strict=True):
        np.testing.assert_array_equal(found, expected)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_numbers_of_any_size(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    shape = data.draw(st.sampled_from([(40, 20), (12, 19), (5, 5)]))
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    a: Any = rng.standard_normal(shape)
    kind = data.draw(st.sampled_from(["whole", "columns", "rows", "triangle"]))
    limit = 36 if dtype is np.float32 else 300
    power = float(data.draw(st.integers(-limit - 6, limit)))
    spread = rng.uniform(-limit, limit, shape[{"rows": 0}.get(kind, 1)])
    if kind == "whole":
        a = a * 10.0**power
    elif kind == "columns":
        a = a * 10.0**spread
    elif kind == "rows":
        a = a * 10.0 ** spread[:, None]
    else:
        a = np.triu(a) + np.tril(a, -1) * 10.0 ** min(power, 0.0)
    for column in data.draw(st.lists(st.integers(0, shape[1] - 1), max_size=3)):
        a[:, column] = data.draw(st.sampled_from([0.0, -0.0])) * a[:, 0]
    given = np.ascontiguousarray(a, dtype)
    check(given, *reduced(given))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_matrices_of_low_rank(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    thin = rng.standard_normal((50, 2)) @ rng.standard_normal((2, 37))
    for a in (thin, np.ones((50, 37)), np.zeros((50, 37)), np.eye(50, 37), thin * 1e-30):
        given = a.astype(dtype)
        check(given, *reduced(given))
        check(given.T.copy(), *complete(given.T.copy()))


def test_what_is_upper_already_stays() -> None:
    a = np.triu(np.random.default_rng(0).standard_normal((6, 6)))
    q, r = reduced(a)
    np.testing.assert_array_equal(q, np.eye(6))
    np.testing.assert_array_equal(r, a)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("size", [6, 80])
def test_what_is_not_finite_spoils_later_columns_only(value: float, size: int) -> None:
    a = np.random.default_rng(0).standard_normal((2, size, size))
    expected: Any = np.linalg.qr(a, "r")
    a[1, 3, -2] = value
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        q, r = map(np.asarray, reduced(a))
    np.testing.assert_allclose(r[0], expected[0], atol=1e-12)
    np.testing.assert_allclose(r[1, :, :-2], expected[1, :, :-2], atol=1e-12)
    assert np.isnan(r[1, -2, -2])
    assert np.isnan(q[1]).any()
    assert np.isfinite(q[0]).all()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("rows", "columns"), [(40, 21), (9, 40), (66, 66)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_narrow_vectors(rows: int, columns: int, dtype: str, level: str) -> None:
    """The same on other processors, of scratch full of NaNs."""
    target, machine = LEVELS[level]
    rank = min(rows, columns)
    a, q, r = (
        buffer(n, s, dtype)
        for n, s in [("a", (rows, columns)), ("q", (rows, rank)), ("r", (rank, columns))]
    )
    problem = Orthogonal(
        1,
        rows,
        columns,
        dtype,
        matrix=lambda b, i, j: a[i, j],
        store_r=lambda b, i, j, v: store(r, [i, j], v),
        r_rows=rank,
        store_q=lambda b, i, j, v: store(q, [i, j], v),
        q_columns=rank,
    )
    given = np.random.default_rng(0).standard_normal((rows, columns)).astype(dtype)
    made = np.empty((rows, rank), dtype), np.empty((rank, columns), dtype)
    Compiled([a, q, r], orthogonal_factors(problem, machine), target)(given, *made)
    check(given, *made)
    Compiled([a, q, r], orthogonal_factors(problem, MACHINE))(given, *made)
    check(given, *made)


@pytest.mark.parametrize(
    ("function", "target"),
    [
        (lambda x: np.linalg.qr(x)[1], "qr_r"),
        (lambda x: np.linalg.qr(x)[0], "qr"),
        (lambda x: np.linalg.eigh(x)[0], "eigvalsh_l"),
        (lambda x: np.linalg.eigh(x, "U")[0], "eigvalsh_u"),
        (lambda x: np.linalg.svd(x)[1], "svdvals"),
        (lambda x: np.linalg.svd(x.reshape(32, 2))[1], "svdvals"),
        (lambda x: x + sum(map(abs, np.linalg.svd(x))), "svd"),
    ],
)
def test_results_that_nobody_uses(function: Any, target: str) -> None:
    a = np.random.default_rng(0).standard_normal((8, 8))
    a = a + a.T
    module = tj.jit(function).lower(a).module
    roots = eliminate_dead_results([module.entry.root])
    (call,) = (i for i in in_order(roots) if i.op is CUSTOM_CALL)
    assert call.attributes["custom_call_target"] == "tracejit.linalg." + target
    np.testing.assert_allclose(tj.jit(function)(a), function(a), atol=1e-12)


def test_derivatives_pass_through() -> None:
    a = np.random.default_rng(0).standard_normal((7, 4))

    def loss(x: Any) -> Any:
        q, r = np.linalg.qr(x)
        return (q[0] * r.sum(0)).sum() + (r * r).sum()

    tj.check_grads(tj.jit(loss), (a,), order=1)
    batched = tj.jit(tj.vmap(lambda x: np.linalg.qr(x)[1]))(np.stack([a, 2 * a]))
    np.testing.assert_allclose(batched[1], 2 * np.linalg.qr(a, "r"), atol=1e-13)
