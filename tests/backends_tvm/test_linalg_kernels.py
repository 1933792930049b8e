"""Linear algebra in compiled code: sizes that neither vectors nor blocks divide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.runtime.processes import python
from tracejit.ops.linalg import CHOLESKY, TRIANGULAR_SOLVE, triangular_solve
from tracejit.runtime import importing_tvm
from tracejit.trace.tracer import Tracer, lift
from tracejit.traversal import in_order

with importing_tvm():
    from tracejit.backends.tvm.verification import program as verification

TOLERANCE = {np.float32: 2e-5, np.float64: 1e-13}


def positive(size: int, dtype: Any, *batch: int) -> np.ndarray:
    x = np.random.default_rng(size).standard_normal((*batch, size, size))
    return np.asarray((x @ np.swapaxes(x, -1, -2) + size * np.eye(size)).astype(dtype))


def solving(left_side: bool, lower: bool, unit: bool, transpose: str) -> Callable[..., Any]:
    def solve(a: Tracer, b: Tracer) -> Tracer:
        made = triangular_solve(a.instruction, b.instruction, left_side, lower, unit, transpose)
        return lift(made, False)

    return tj.jit(solve)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1, 7, 16, 33, 100])
@pytest.mark.parametrize("upper", [False, True])
def test_factors(dtype: Any, size: int, upper: bool) -> None:
    a = positive(size, dtype)
    # The other triangle is not read.
    read = np.triu(a) if upper else np.tril(a)
    factor = tj.jit(lambda a: np.linalg.cholesky(a, upper=upper))(read + 0)
    expected = np.linalg.cholesky(a, upper=upper)
    scale = np.max(np.abs(expected))
    np.testing.assert_allclose(factor, expected, atol=TOLERANCE[dtype] * scale)
    assert not np.any(np.tril(factor, -1) if upper else np.triu(factor, 1))


@pytest.mark.parametrize("columns", [1, 2, 3, 50])
@pytest.mark.parametrize("left_side", [True, False])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("transpose", ["NO_TRANSPOSE", "TRANSPOSE"])
def test_systems(columns: int, left_side: bool, lower: bool, transpose: str) -> None:
    size, unit = 19, columns % 2 == 0
    rng = np.random.default_rng(columns)
    a = rng.uniform(-1, 1, (2, size, size)) / size + 2 * np.eye(size)
    b = rng.standard_normal((2, size, columns) if left_side else (2, columns, size))
    found = solving(left_side, lower, unit, transpose)(a, b)
    triangle = np.tril(a) if lower else np.triu(a)
    if unit:
        triangle = triangle - np.eye(size) * triangle + np.eye(size)
    if transpose == "TRANSPOSE":
        triangle = np.swapaxes(triangle, 1, 2)
    np.testing.assert_allclose(triangle @ found if left_side else found @ triangle, b, atol=1e-13)


def test_many_matrices_are_shared_among_threads() -> None:
    a = positive(40, np.float64, 3, 11)
    factors = tj.jit(np.linalg.cholesky)(a)
    np.testing.assert_allclose(factors, np.linalg.cholesky(a), rtol=1e-12, atol=1e-13)
    b = np.random.default_rng(0).standard_normal((3, 11, 40, 30))
    found = solving(True, True, False, "NO_TRANSPOSE")(factors, b)
    np.testing.assert_allclose(factors @ found, b, atol=1e-12)


@pytest.mark.parametrize("value", [-1.0, 0.0, np.nan])
def test_what_is_not_positive_is_nan_as_a_whole(value: float) -> None:
    a = np.stack([positive(9, np.float64), positive(9, np.float64)])
    a[1, 4, 4] = value
    factors = tj.jit(np.linalg.cholesky)(a)
    assert np.isfinite(factors[0]).all()
    assert np.isnan(factors[1]).all()


def test_a_zero_on_the_diagonal_spoils_what_follows_only() -> None:
    a = np.eye(4) + np.tril(np.ones((4, 4)))
    a[2, 2] = 0
    for b in (np.ones((4, 1)), np.ones((4, 9))):
        found = solving(True, True, False, "NO_TRANSPOSE")(a, b)
        assert np.isfinite(found[:2]).all()
        assert not np.isfinite(found[2:]).any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("size", "columns"), [(1, 1), (5, 1), (8, 3), (19, 19), (33, 2), (100, 3), (128, 40)]
)
def test_general_systems(dtype: Any, size: int, columns: int) -> None:
    rng = np.random.default_rng(size)
    # The greatest elements are not on the diagonal: rows have to be exchanged.
    a = (rng.uniform(-1, 1, (2, size, size)) + 3 * np.eye(size)[::-1]).astype(dtype)
    x = rng.standard_normal((2, size, columns)).astype(dtype)
    found = tj.jit(np.linalg.solve)(a, a @ x)
    np.testing.assert_allclose(found, x, atol=1e-4 if dtype == np.float32 else 1e-11)


def test_a_singular_matrix_gives_nan_as_a_whole() -> None:
    a = np.stack([np.eye(3)[[2, 0, 1]], np.ones((3, 3))])
    found = tj.jit(np.linalg.inv)(a)
    np.testing.assert_array_equal(found[0], np.linalg.inv(a[0]))
    assert np.isnan(found[1]).all()


@pytest.mark.parametrize("columns", [1, 70])
@pytest.mark.parametrize("left_side", [True, False])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("transpose", ["NO_TRANSPOSE", "TRANSPOSE"])
def test_large_systems(columns: int, left_side: bool, lower: bool, transpose: str) -> None:
    size, unit = 77, columns > 1
    rng = np.random.default_rng(columns)
    a = np.asarray(rng.uniform(-1, 1, (size, size)) / size + 2 * np.eye(size), np.float32)
    b = rng.standard_normal((size, columns) if left_side else (columns, size), np.float32)
    triangle = np.tril(a) if lower else np.triu(a)
    # The other triangle is not read, nor is a diagonal of ones.
    a = np.where(triangle == 0, np.float32(np.nan), a)
    if unit:
        np.fill_diagonal(a, np.nan)
        np.fill_diagonal(triangle, 1)
    found = solving(left_side, lower, unit, transpose)(a, b)
    if transpose == "TRANSPOSE":
        triangle = triangle.T
    np.testing.assert_allclose(triangle @ found if left_side else found @ triangle, b, atol=2e-5)


@pytest.mark.parametrize("size", [90, 200])
def test_large_matrices_that_fail_are_nan_as_a_whole(size: int) -> None:
    a = np.stack([positive(size, np.float64)] * 5)
    a[1, -1, -1] = -1
    factors = tj.jit(np.linalg.cholesky)(a)
    assert [bool(np.isnan(f).all()) for f in factors] == [False, True, False, False, False]
    np.testing.assert_allclose(factors[4], np.linalg.cholesky(a[4]), rtol=1e-11, atol=1e-11)
    a[3, :, 70] = 0
    found = tj.jit(np.linalg.inv)(a)
    assert [bool(np.isnan(f).all()) for f in found] == [False, False, False, True, False]
    np.testing.assert_allclose(found[0] @ a[0], np.eye(size), atol=1e-11)


@pytest.mark.parametrize("scale", [1e-42, 1e-36, 1e30])
def test_pivots_of_any_size(scale: float) -> None:
    """Factors are quotients where a pivot has no finite reciprocal."""
    rng = np.random.default_rng(0)
    rows = rng.permutation(np.eye(60)) * (1 + rng.random((60, 1))) + np.eye(60) / 4
    a = (rows * scale).astype(np.float32)
    b = np.asarray(a.astype(np.float64) @ np.ones(60), np.float32)
    found = tj.jit(lambda a, b: np.linalg.solve(a, b))(a, b)
    np.testing.assert_allclose(found, 1, rtol=0.02 if scale < 1e-40 else 1e-4)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize(("batch", "n", "columns"), [((), 1, 1), ((3,), 5, 2), ((2,), 30, 33)])
def test_systems_of_complex_numbers_are_real_ones(
    batch: tuple[int, ...], n: int, columns: int, dtype: type
) -> None:
    draws = np.random.default_rng(n)

    def numbers(*sizes: int) -> Any:
        parts = draws.standard_normal((2, *batch, *sizes))
        return (parts[0] + 1j * parts[1]).astype(dtype)

    a, x = numbers(n, n), numbers(n, columns)
    found = tj.jit(np.linalg.solve)(a, a @ x)
    assert found.dtype == dtype
    tolerance = 1e-2 if dtype is np.complex64 else 1e-10
    np.testing.assert_allclose(found, x, rtol=tolerance, atol=tolerance)
    kernels = tj.jit(np.linalg.solve).lower(a, x).compile().explain().kernels
    assert "library call" not in [kernel.schedule for kernel in kernels]


def test_a_singular_complex_matrix_gives_nan_as_a_whole() -> None:
    a = np.stack([np.array([[1, 1j], [1j, -1]]), np.array([[0, 1j], [2, 0]])])
    found = tj.jit(np.linalg.solve)(a, np.ones((2, 2, 1), complex))
    assert np.isnan(found[0]).all()
    np.testing.assert_allclose(found[1], np.linalg.solve(a[1], np.ones((2, 1))), rtol=1e-15)


def hermitian(size: int, dtype: Any, *batch: int) -> np.ndarray:
    rng = np.random.default_rng(size)
    shape = (*batch, size, size)
    x = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    return np.asarray((x @ np.swapaxes(x, -1, -2).conj() + np.eye(size)).astype(dtype))


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("size", [1, 3, 16, 33, 96])
@pytest.mark.parametrize("upper", [False, True])
def test_factors_of_complex_matrices(dtype: Any, size: int, upper: bool) -> None:
    a = hermitian(size, dtype, 2)
    # Neither the other triangle nor the diagonal's imaginary parts are read.
    read = np.triu(a) if upper else np.tril(a)
    factor = tj.jit(lambda a: np.linalg.cholesky(a, upper=upper))(
        (read + 1j * np.eye(size)).astype(dtype)
    )
    assert factor.dtype == dtype
    adjoint = np.swapaxes(factor, 1, 2).conj()
    epsilon = np.finfo(dtype).eps
    made = adjoint @ factor if upper else factor @ adjoint
    np.testing.assert_allclose(made, a, atol=16 * epsilon * np.max(np.abs(a)))
    assert not np.any(np.tril(factor, -1) if upper else np.triu(factor, 1))
    assert not np.any(np.diagonal(factor, axis1=1, axis2=2).imag)


def test_a_complex_matrix_that_is_not_positive_is_nan_as_a_whole() -> None:
    a = hermitian(9, np.complex128, 2)
    a[1, 4, 4] = -1
    factors = tj.jit(np.linalg.cholesky)(a)
    assert np.isfinite(factors[0]).all()
    assert np.isnan(factors[1]).all()


@pytest.mark.parametrize("columns", [1, 2, 3, 50])
@pytest.mark.parametrize("left_side", [True, False])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("transpose", ["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"])
def test_triangular_systems_of_complex_numbers(
    columns: int, left_side: bool, lower: bool, transpose: str
) -> None:
    size, unit = 70 if columns == 3 else 19, columns % 2 == 0
    rng = np.random.default_rng(columns)
    a = rng.uniform(-1, 1, (2, size, size)) + 1j * rng.uniform(-1, 1, (2, size, size))
    a = a / size + (2 + 1j) * np.eye(size)
    b = rng.standard_normal((2, size, columns) if left_side else (2, columns, size)) + 1j
    found = solving(left_side, lower, unit, transpose)(a, b)
    triangle = np.tril(a) if lower else np.triu(a)
    if unit:
        triangle = triangle - np.eye(size) * triangle + np.eye(size)
    if transpose != "NO_TRANSPOSE":
        triangle = np.swapaxes(triangle, 1, 2)
    if transpose == "ADJOINT":
        triangle = triangle.conj()
    np.testing.assert_allclose(triangle @ found if left_side else found @ triangle, b, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_complex_pivots_neither_overflow_nor_vanish(scale: float) -> None:
    rng = np.random.default_rng(4)
    a = rng.standard_normal((7, 7)) + 1j * rng.standard_normal((7, 7))
    found = tj.jit(lambda a, b: np.linalg.solve(a, b))(a * scale, a[:, :3])
    np.testing.assert_allclose(found * scale, np.eye(7)[:, :3], atol=1e-12)


def test_factors_of_large_complex_matrices_are_left_to_lapack() -> None:
    a, b = positive(200, np.complex128), np.ones(200, np.complex128)
    found = tj.jit(lambda a, b: (np.linalg.cholesky(a), np.linalg.solve(a, b)))(a, b)
    np.testing.assert_allclose(found[0], np.linalg.cholesky(a), atol=1e-12)
    np.testing.assert_allclose(found[1], np.linalg.solve(a, b), rtol=1e-10)


def ops_of(function: Callable[..., Any], *arguments: Any) -> list[Any]:
    module = tj.jit(function).lower(*arguments).module
    return [i.op for i in in_order([module.entry.root])]


def test_systems_of_a_factor_are_triangular() -> None:
    a, b = positive(5, np.float64), np.arange(5.0)

    def solve(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        lower = np.linalg.cholesky(a)
        return np.linalg.solve(lower.T, np.linalg.solve(lower, b))

    found = ops_of(solve, a, b)
    assert (found.count(CHOLESKY), found.count(TRIANGULAR_SOLVE)) == (1, 2)
    np.testing.assert_allclose(tj.jit(solve)(a, b), np.linalg.solve(a, b), rtol=1e-12)
    tj.check_grads(solve, (a, b), order=2)

    def turned(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.linalg.solve(np.linalg.cholesky(a, upper=True).T, b)

    np.testing.assert_allclose(tj.jit(turned)(a, b), turned(a, b), rtol=1e-12)


def test_a_transposition_of_the_batch_is_no_transposed_factor() -> None:
    a, b = positive(3, np.float64, 3, 3), np.ones((3, 3, 3, 1))

    def solve(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.linalg.solve(np.linalg.cholesky(a).transpose(1, 0, 3, 2), b)

    np.testing.assert_allclose(tj.jit(solve)(a, b), solve(a, b), rtol=1e-12)


@pytest.mark.parametrize("processor", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_that_share_a_system_stay_inside_of_it(
    dtype: type, processor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks of columns belong to threads by turns; their number divides nothing here."""
    monkeypatch.setenv(verification.VARIABLE, "all")
    monkeypatch.setenv("TVM_NUM_THREADS", "3")
    for size, columns in ((97, 5), (140, 70)):
        shapes = [tj.ShapeDtypeStruct(shape, dtype) for shape in ((size, size), (size, columns))]
        solve: Any = tj.jit(np.linalg.solve, target=f"cpu:{processor}")
        solve.lower(*shapes).compile()


def test_systems_shared_by_threads() -> None:
    """The same numbers as one thread's, in a process of three threads."""
    code = (
        "import numpy as np, tracejit as tj;"
        "rng = np.random.default_rng(0); a = rng.standard_normal((200, 200));"
        "b = rng.standard_normal((200, 40)); x = tj.jit(np.linalg.solve)(a, b);"
        "print(np.allclose(a @ x, b, atol=1e-9))"
    )
    assert python(code, TVM_NUM_THREADS="3") == "True"
