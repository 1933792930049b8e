"""Cholesky, TriangularSolve and Fft as the specification describes them, judged by XLA."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tests.backends_tvm.compiled import compiled
from tests.judge import run_xla
from tracejit import ops
from tracejit.backends.numpy import evaluate
from tracejit.graph import Computation, Instruction, Module
from tracejit.shapes import shape_of
from tracejit.verifier import verify


def everywhere(build: Callable[..., Instruction], *arrays: np.ndarray) -> np.ndarray:
    """What XLA computes; the interpreter and compiled code must agree."""
    parameters = tuple(ops.parameter(i, shape_of(a)) for i, a in enumerate(arrays))
    module = verify(Module("test", Computation("entry", parameters, build(*parameters))))
    expected: np.ndarray = run_xla(module, *arrays)
    for actual in (evaluate(module.entry, arrays), compiled(module.entry)(arrays)[0]):
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)
    return expected


def hermitian(size: int, dtype: type, batch: Sequence[int] = ()) -> np.ndarray:
    rng = np.random.default_rng(size)
    a = rng.normal(size=(*batch, size, size)) + 1j * rng.normal(size=(*batch, size, size))
    if not np.issubdtype(dtype, np.complexfloating):
        a = a.real
    product = a @ np.swapaxes(a, -1, -2).conj() + size * np.eye(size)
    return np.asarray(product.astype(dtype))


TYPES = [np.float32, np.float64, np.complex64, np.complex128]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("lower", [True, False])
def test_cholesky_multiplies_back(dtype: type, lower: bool) -> None:
    """a = l l^H where lower, a = u^H u otherwise; all but two dimensions are batches."""
    a = hermitian(5, dtype, (2, 3))
    made = everywhere(lambda a: ops.cholesky(a, lower), a)
    adjoint = np.swapaxes(made, -1, -2).conj()
    np.testing.assert_allclose(made @ adjoint if lower else adjoint @ made, a, rtol=1e-4, atol=1e-4)
    assert not (np.triu(made, 1) if lower else np.tril(made, -1)).any()


@pytest.mark.parametrize("lower", [True, False])
def test_cholesky_reads_one_triangle(lower: bool) -> None:
    a = hermitian(4, np.float64)
    other = np.triu(np.full_like(a, np.nan), 1) if lower else np.tril(np.full_like(a, np.nan), -1)
    kept = np.where(np.isnan(other), np.nan, a)
    np.testing.assert_array_equal(
        everywhere(lambda a: ops.cholesky(a, lower), kept),
        everywhere(lambda a: ops.cholesky(a, lower), a),
    )


@pytest.mark.parametrize("dtype", TYPES)
def test_cholesky_of_a_matrix_that_is_not_positive_definite(dtype: type) -> None:
    """NaN in all of that matrix, and in no other of the batch."""
    a = hermitian(3, dtype, (3,))
    a[1, 1, 1] = -1
    a[2, 0, 0] = np.nan
    made = everywhere(lambda a: ops.cholesky(a, True), a)
    assert [bool(np.isnan(m).all()) for m in made] == [False, True, True]


SIDES = list(
    itertools.product(
        [True, False], [True, False], [True, False], ["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"]
    )
)


@pytest.mark.parametrize(("left_side", "lower", "unit_diagonal", "transpose_a"), SIDES)
def test_triangular_solve_solves(
    left_side: bool, lower: bool, unit_diagonal: bool, transpose_a: str
) -> None:
    """op(a) x = b, or x op(a) = b; the other triangle, and a unit diagonal, are not read."""
    a = hermitian(4, np.complex64, (2,)) / 4
    b = hermitian(4, np.complex64, (2,))[:, : 4 if left_side else 3, : 3 if left_side else 4]
    unread = np.triu(np.ones((4, 4)), 0 if unit_diagonal else 1) > 0
    a[:, unread if lower else unread.T] = np.nan
    x = everywhere(
        lambda a, b: ops.triangular_solve(a, b, left_side, lower, unit_diagonal, transpose_a), a, b
    )
    matrix = np.where(unread if lower else unread.T, 0, a) + (np.eye(4) if unit_diagonal else 0)
    if transpose_a != "NO_TRANSPOSE":
        matrix = np.swapaxes(matrix, -1, -2)
    if transpose_a == "ADJOINT":
        matrix = matrix.conj()
    np.testing.assert_allclose(matrix @ x if left_side else x @ matrix, b, rtol=1e-3, atol=1e-3)


def test_large_systems_are_solved_by_halves() -> None:
    a, b = hermitian(70, np.float64), hermitian(70, np.float64)[:, :5]
    for lower, transpose in itertools.product([True, False], ["NO_TRANSPOSE", "TRANSPOSE"]):
        everywhere(lambda a, b: ops.triangular_solve(a, b, True, lower, False, transpose), a, b)  # noqa: B023


@pytest.mark.parametrize("length", [16, 17])
def test_rfft_of_two_lengths_has_one_shape(length: int) -> None:
    """RFFT(fft_length=[16]) makes as many numbers as RFFT(fft_length=[17])."""
    x: np.ndarray = np.random.default_rng(length).normal(size=length).astype(np.float32)
    half = everywhere(lambda x: ops.fft(x, "RFFT", (length,)), x)
    assert half.shape == (9,)
    back = everywhere(lambda x: ops.fft(x, "IRFFT", (length,)), half)
    np.testing.assert_allclose(back, x, atol=1e-6)


def test_fft_of_several_axes_is_a_cascade() -> None:
    """RFFT first over the innermost axis, then complex over the others; IRFFT the other way."""
    x: np.ndarray = np.random.default_rng(0).normal(size=(3, 4, 5))

    def cascade(x: Instruction) -> Instruction:
        turned = ops.transpose(ops.fft(x, "RFFT", (5,)), (0, 2, 1))
        turned = ops.transpose(ops.fft(turned, "FFT", (4,)), (2, 1, 0))
        return ops.transpose(ops.fft(turned, "FFT", (3,)), (2, 0, 1))

    whole = everywhere(lambda x: ops.fft(x, "RFFT", (3, 4, 5)), x)
    np.testing.assert_allclose(everywhere(cascade, x), whole, atol=1e-12)
    np.testing.assert_allclose(
        everywhere(lambda x: ops.fft(x, "IRFFT", (3, 4, 5)), whole), x, atol=1e-12
    )


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_single_precision_stays_single(dtype: type) -> None:
    x: np.ndarray = np.arange(6, dtype=dtype)
    assert everywhere(lambda x: ops.fft(x, "IFFT", (6,)), x).dtype == dtype
