"""numpy.linalg against NumPy: values, dtypes, result tuples, errors, in and outside of traces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.numpy_api.compare import check
from tracejit.errors import MatrixError

RNG = np.random.default_rng(7)


def matrix(*shape: int, dtype: Any = np.float64) -> np.ndarray:
    values = RNG.normal(size=shape)
    if np.issubdtype(dtype, np.complexfloating):
        values = values + 1j * RNG.normal(size=shape)
    return np.asarray(values.astype(dtype))


def regular(*shape: int, dtype: Any = np.float64) -> np.ndarray:
    return np.asarray((matrix(*shape, dtype=dtype) + 3 * np.eye(shape[-1])).astype(dtype))


def hermitian(*shape: int, dtype: Any = np.float64) -> np.ndarray:
    a = regular(*shape, dtype=dtype)
    return np.asarray(a @ np.swapaxes(a, -1, -2).conj() + np.eye(shape[-1], dtype=dtype))


def jitted(name: str, **kwargs: Any) -> Callable[..., Any]:
    """A function of numpy.linalg, all of its arrays unknown."""
    function = getattr(np.linalg, name)
    return tj.jit(lambda *arrays: function(*arrays, **kwargs))


TYPES = [np.float32, np.float64, np.complex64, np.complex128]
LOOSE = {np.float32: 1e-3, np.complex64: 1e-3}


def loose(dtype: Any) -> float:
    return LOOSE.get(dtype, 1e-9)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("batch", [(), (2,), (2, 1), (0,)])
def test_square_matrices(dtype: Any, batch: tuple[int, ...]) -> None:
    a, b = regular(*batch, 3, 3, dtype=dtype), matrix(*batch, 3, 2, dtype=dtype)
    h, rtol = hermitian(*batch, 3, 3, dtype=dtype), loose(dtype)
    check(lambda np, a, b: np.linalg.solve(a, b), a, b, rtol=rtol)
    check(lambda np, a: np.linalg.inv(a), a, rtol=rtol)
    check(lambda np, a: np.linalg.det(a), a, rtol=rtol)
    check(lambda np, a: tuple(np.linalg.slogdet(a)), a, rtol=rtol)
    check(lambda np, h: np.linalg.cholesky(h), h, rtol=rtol)
    check(lambda np, h: np.linalg.cholesky(h, upper=True), h, rtol=rtol)
    for uplo in "LU":
        check(lambda np, h, uplo=uplo: np.linalg.eigvalsh(h, uplo), h, rtol=rtol)
        check(lambda np, h, uplo=uplo: tuple(np.linalg.eigh(h, uplo)), h, rtol=rtol)
    check(lambda np, a: np.linalg.matrix_power(a, 5), a, rtol=rtol)
    check(lambda np, a: np.linalg.matrix_power(a, 0), a)
    check(lambda np, a: np.linalg.matrix_power(a, -3), a, rtol=rtol)
    check(lambda np, a: np.linalg.svd(a, compute_uv=False, hermitian=True), h, rtol=rtol)
    check(lambda np, a: np.linalg.pinv(a, hermitian=True), h, rtol=rtol)
    for p in (None, 1, -1, 2, -2, np.inf, -np.inf, "fro") if 0 not in batch else ():
        check(lambda np, a, p=p: np.linalg.cond(a, p), a, rtol=rtol)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (2, 5, 2), (2, 2)])
def test_matrices_of_any_shape(dtype: Any, shape: tuple[int, ...]) -> None:
    a, rtol = matrix(*shape, dtype=dtype), loose(dtype)
    for mode in ("reduced", "complete"):
        check(lambda np, a, mode=mode: tuple(np.linalg.qr(a, mode)), a, rtol=rtol)
    check(lambda np, a: np.linalg.qr(a, "r"), a, rtol=rtol)
    check(lambda np, a: np.linalg.qr(a, "raw"), a, rtol=rtol)
    for full in (True, False):
        check(lambda np, a, full=full: tuple(np.linalg.svd(a, full)), a, rtol=rtol)
    check(lambda np, a: np.linalg.svdvals(a), a, rtol=rtol)
    check(lambda np, a: np.linalg.pinv(a), a, rtol=rtol)
    check(lambda np, a: np.linalg.pinv(a, rtol=1e-3), a, rtol=rtol)
    check(lambda np, a: np.linalg.matrix_rank(a), a)
    check(lambda np, a: np.linalg.matrix_rank(a, tol=1.0), a)
    check(lambda np, a: np.linalg.trace(a), a, rtol=rtol)
    check(lambda np, a: np.linalg.diagonal(a, offset=1), a)
    check(lambda np, a: np.linalg.matrix_transpose(a), a)


@pytest.mark.parametrize("dtype", TYPES)
def test_least_squares(dtype: Any) -> None:
    for rows, columns in ((5, 3), (3, 5), (3, 3)):
        a, rtol = matrix(rows, columns, dtype=dtype), loose(dtype)
        for b in (matrix(rows, dtype=dtype), matrix(rows, 2, dtype=dtype)):
            for rcond in (None, -1, 1e-3):
                check(lambda np, a, b, r=rcond: tuple(np.linalg.lstsq(a, b, r)), a, b, rtol=rtol)


def test_eigenvalues_of_general_matrices() -> None:
    """Complex always while tracing; NumPy's where they are not all real."""
    a = np.array([[0.0, -2.0, 0.5], [1.0, 0.3, 0.0], [0.0, 1.0, 2.0]])
    for array in (a, a.astype(np.float32), a + 1j, np.stack([a, a.T])):
        rtol = 1e-3 if array.dtype == np.float32 else 1e-9
        check(lambda np, a: np.linalg.eigvals(a), array, rtol=rtol)
        check(lambda np, a: tuple(np.linalg.eig(a)), array, rtol=rtol)
    assert jitted("eigvals")(np.eye(2)).dtype == np.complex128
    assert tj.numpy.linalg.eigvals(np.eye(2)).dtype == np.float64


ORDERS = [None, 1, 2, 3, 0.5, -1, -2, 0, np.inf, -np.inf]


@pytest.mark.parametrize("dtype", [np.float16, np.int64, *TYPES])
def test_norms(dtype: Any) -> None:
    x = (matrix(2, 3, 4, dtype=np.complex128 if dtype in TYPES[2:] else np.float64) * 3).astype(
        dtype
    )
    x = abs(x) + 1 if dtype is np.int64 else x + 1
    rtol = 5e-3 if dtype is np.float16 else loose(dtype)
    check(lambda np, x: np.linalg.norm(x), x, rtol=rtol)
    check(lambda np, x: np.linalg.norm(x, keepdims=True), x, rtol=rtol)
    for order in ORDERS:
        check(lambda np, x, o=order: np.linalg.norm(x, o, axis=1), x, rtol=rtol)
        check(lambda np, x, o=order: np.linalg.norm(x[0, 0], o), x, rtol=rtol)
        check(lambda np, x, o=order: np.linalg.norm(x, o, -1, True), x, rtol=rtol)
        if order is not None:
            check(
                lambda np, x, o=order: np.linalg.vector_norm(x, ord=o, axis=(0, 2)),
                x + 1,
                rtol=rtol,
            )
    if dtype is np.float16:
        return
    of_matrices: list[Any] = [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf]
    for order in of_matrices:
        check(lambda np, x, o=order: np.linalg.norm(x, o, axis=(0, 2)), x, rtol=rtol)
        check(lambda np, x, o=order: np.linalg.norm(x, o, axis=(2, 1), keepdims=True), x, rtol=rtol)
        if order is not None:
            check(lambda np, x, o=order: np.linalg.matrix_norm(x, ord=o), x, rtol=rtol)


def test_products_and_tensors() -> None:
    a, b, c, d = matrix(2, 9), matrix(9, 3), matrix(3, 7), matrix(7)
    check(lambda np, a, b, c: np.linalg.multi_dot([a, b, c]), a, b, c)
    check(lambda np, a, b, c, d: np.linalg.multi_dot([a[0], b, c, d]), a, b, c, d)
    t = matrix(2, 3, 6)
    check(lambda np, t: np.linalg.tensorinv(t), t, rtol=1e-9)
    check(lambda np, t: np.linalg.tensorinv(t, ind=1), matrix(6, 2, 3), rtol=1e-9)
    check(lambda np, t, b: np.linalg.tensorsolve(t, b), t, matrix(2, 3), rtol=1e-9)
    check(
        lambda np, t, b: np.linalg.tensorsolve(t, b, axes=(1,)),
        matrix(3, 6, 2),
        matrix(3, 2),
        rtol=1e-9,
    )
    check(lambda np, x, y: np.linalg.cross(x, y), matrix(4, 3), matrix(4, 3))
    check(lambda np, x, y: np.linalg.outer(x, y), matrix(4), matrix(3))
    check(lambda np, x, y: np.linalg.matmul(x, y), matrix(4, 3), matrix(3, 2))
    check(lambda np, x, y: np.linalg.vecdot(x, y), matrix(4, 3), matrix(4, 3))
    check(lambda np, x, y: np.linalg.tensordot(x, y, axes=1), matrix(4, 3), matrix(3, 2))


def test_integers_are_computed_with_in_double_precision() -> None:
    a = np.array([[2, 1], [1, 3]])
    check(lambda np, a: np.linalg.inv(a), a)
    check(lambda np, a: np.linalg.det(a), a.astype(np.int8))
    check(lambda np, a: np.linalg.solve(a, np.ones(2, np.float32)), a)
    check(lambda np, a: np.linalg.matrix_power(a, 3), a)


def test_result_tuples_have_numpys_names() -> None:
    a = hermitian(3, 3)

    def named(a: Any) -> Any:
        e, g, q = np.linalg.eigh(a), np.linalg.eig(a), np.linalg.qr(a)
        s, d = np.linalg.svd(a), np.linalg.slogdet(a)
        return (
            e.eigenvalues, e.eigenvectors, g.eigenvalues, g.eigenvectors, q.Q, q.R,
            s.U, s.S, s.Vh, d.sign, d.logabsdet,
        )  # fmt: skip

    assert len(tj.jit(named)(a)) == 11
    assert type(tj.jit(np.linalg.svd)(a)) is type(np.linalg.svd(a))


SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])


@pytest.mark.parametrize("name", ["inv", "cholesky"])
def test_what_numpy_raises_for_values_is_nan_while_tracing(name: str) -> None:
    """Of that matrix alone."""
    batch = np.stack([np.eye(2), SINGULAR - 5 * np.eye(2) * (name == "cholesky")])
    with pytest.raises(np.linalg.LinAlgError):
        getattr(tj.numpy.linalg, name)(batch)
    made = tj.jit(getattr(np.linalg, name))(batch)
    np.testing.assert_array_equal(made[0], np.eye(2))
    assert np.isnan(made[1]).all()


def test_nan_goes_in_and_comes_out() -> None:
    a = np.full((3, 3), np.nan)
    for name in ("svdvals", "eigvalsh", "eigvals", "inv", "det"):
        assert np.isnan(tj.jit(getattr(np.linalg, name))(a)).all(), name


REFUSALS = [
    ("inv", (2, 3), MatrixError, "inv: last 2 dimensions of the array must be square"),
    ("det", (3,), MatrixError, "det: 1-dimensional array given"),
    ("svd", (3,), MatrixError, "svd: 1-dimensional array given"),
    ("cholesky", (2, 3), np.linalg.LinAlgError, "cholesky: last 2 dimensions"),
]


@pytest.mark.parametrize(("name", "shape", "error", "message"), REFUSALS)
def test_shapes_that_do_not_fit(
    name: str, shape: tuple[int, ...], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        tj.jit(getattr(np.linalg, name))(np.ones(shape))


def test_more_refusals() -> None:
    with pytest.raises(TypeError, match="float16 is unsupported in linalg"):
        jitted("inv")(np.eye(2, dtype=np.float16))
    with pytest.raises(np.linalg.LinAlgError, match="a row for each of a"):
        jitted("solve")(np.eye(2), np.ones(3))
    with pytest.raises(ValueError, match="'L' or 'U'"):
        jitted("eigh", UPLO="X")(np.eye(2))
    with pytest.raises(ValueError, match="no order of a matrix's norm"):
        jitted("norm", ord=3)(np.eye(2))
    with pytest.raises(ValueError, match="mode must be"):
        jitted("qr", mode="full")(np.eye(2))


def test_every_name_is_there() -> None:
    assert set(np.linalg.__all__) == set(tj.numpy.linalg.__all__)


def test_least_squares_of_complex_matrices_one_by_one() -> None:
    """In a batch, of which LAPACK's function takes none."""
    a, b = matrix(2, 5, 3, dtype=np.complex128), matrix(2, 5, 2, dtype=np.complex128)
    a[1, :, 2] = a[1, :, 1]  # of rank 2

    def solve(a: Any, b: Any) -> Any:
        return tuple(np.linalg.lstsq(a, b, rcond=1e-10)[::3])

    for made, *wanted in zip(tj.vmap(solve)(a, b), *map(solve, a, b), strict=True):
        np.testing.assert_allclose(made, np.stack(wanted), atol=1e-13)
