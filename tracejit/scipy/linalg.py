"""Systems of equations, factorizations and special matrices: the names of ``scipy.linalg``.

x = linalg.solve(a, b, assume_a="pos")
factor = linalg.cho_factor(a); x = linalg.cho_solve(factor, b)

Arguments are SciPy's; those that only save time or memory (``overwrite_a``, ``check_finite``) are
accepted and change nothing. Matrices are the last two dimensions, others are batches. Integers are
computed with in float64. Shapes that do not fit raise `MatrixError`, a `LinAlgError`, while
tracing; a matrix for which SciPy raises `LinAlgError` gives NaN, and raises under ``check=True``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg as scipy_linalg

from tracejit.errors import AttributeValueError, MatrixError
from tracejit.lax import factorizations
from tracejit.lax.control import fori_loop
from tracejit.lax.linalg import triangular_solve
from tracejit.numpy import linalg as np_linalg
from tracejit.numpy.joining import concatenate
from tracejit.numpy.manipulation import as_array, broadcast_to
from tracejit.numpy.matrices import common, linear, matrices_of, require_matrices
from tracejit.numpy.padding import pad
from tracejit.numpy.selecting import take_along_axis, where
from tracejit.trace.promotion import result_dtype
from tracejit.trace.public import implements
from tracejit.trace.tracer import Tracer

__all__ = [
    "block_diag",
    "cho_factor",
    "cho_solve",
    "cholesky",
    "det",
    "eigh",
    "expm",
    "inv",
    "lu",
    "lu_factor",
    "lu_solve",
    "norm",
    "pinv",
    "qr",
    "solve",
    "solve_triangular",
    "svd",
    "toeplitz",
]


def _triangle(size: int, lower: bool, below: int = 0) -> np.ndarray:
    """Which elements lie in a triangle, with the diagonal unless ``below`` is -1."""
    mask = np.tril(np.ones((size, size), bool), below)
    return mask if lower else mask.T


def _mirrored(a: Tracer, lower: bool, conjugate: bool) -> Tracer:
    """Symmetric or Hermitian matrices from one triangle."""
    size = a.shape[-1]
    other = a.swapaxes(-1, -2).conj() if conjugate else a.swapaxes(-1, -2)
    made: Tracer = where(_triangle(size, lower), a, other)
    if conjugate and a.element_type.is_complex:
        # LAPACK takes the diagonal of a Hermitian matrix for real.
        made = where(np.eye(size, dtype=bool), a.real.astype(a.dtype), made)
    return made


def _system(function: str, a: Any, b: Any) -> tuple[Tracer, Tracer, bool]:
    """A square matrix and right-hand columns of one type, and whether these were a vector."""
    left, right = common(function, a, b)
    require_matrices(function, left, square=True)
    is_vector = right.ndim == 1
    right = right[:, None] if is_vector else right
    if right.ndim < 2 or right.shape[-2] != left.shape[-1]:
        raise MatrixError(
            f"{function}: b must have a row for each of a; a {left.shape}, b {right.shape}"
        )
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    left = broadcast_to(left, (*batch, *left.shape[-2:]))
    return left, broadcast_to(right, (*batch, *right.shape[-2:])), is_vector


def _vector_again(x: Tracer, is_vector: bool) -> Tracer:
    return x[..., 0] if is_vector else x


@linear(scipy_linalg.solve_triangular)
def solve_triangular(
    a: Any,
    b: Any,
    trans: Any = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:
    """x with op(a) x = b; ``a`` [..., n, n] is read in one triangle, ``b`` [n] or [..., n, k].

    ``trans`` 0 or "N" is ``a`` itself, 1 or "T" its transpose, 2 or "C" its adjoint. Raises
    `AttributeValueError` for another ``trans``.
    """
    kinds = {0: 0, 1: 1, 2: 2, "N": 0, "T": 1, "C": 2}
    if trans not in kinds:
        raise AttributeValueError(f"solve_triangular: trans must be 0, 1 or 2, not {trans!r}")
    left, right, is_vector = _system("solve_triangular", a, b)
    made = triangular_solve(
        left,
        right,
        left_side=True,
        lower=lower,
        transpose_a=kinds[trans] > 0,
        conjugate_a=kinds[trans] == 2,
        unit_diagonal=unit_diagonal,
    )
    return _vector_again(made, is_vector)


@linear(scipy_linalg.cholesky)
def cholesky(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """u with u^H u = a, or l with l l^H = a if ``lower``: [..., n, n], zero beside the triangle.

    That triangle of ``a`` is read.
    """
    array = matrices_of("cholesky", a, square=True)
    return np_linalg.cholesky(_mirrored(array, lower, True), upper=not lower)


@linear(scipy_linalg.cho_factor)
def cho_factor(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """(c, lower): `cholesky` in one triangle of c, the elements of ``a`` in the other."""
    array = matrices_of("cho_factor", a, square=True)
    factor = cholesky(array, lower)
    return where(_triangle(array.shape[-1], lower), factor, array), lower


@linear(scipy_linalg.cho_solve)
def cho_solve(
    c_and_lower: Any, b: Any, overwrite_b: bool = False, check_finite: bool = True
) -> Any:
    """x with a x = b, from `cho_factor` of a; ``b`` [n] or [..., n, k]."""
    factor, lower = c_and_lower
    first, second = (0, 2) if lower else (2, 0)
    half = solve_triangular(factor, b, first, lower)
    return solve_triangular(factor, half, second, lower)


_HERMITIAN = ("her", "hermitian")
_SYMMETRIC = ("sym", "symmetric")
_POSITIVE = ("pos", "positive definite")
_TRIANGLES = {"lower triangular": True, "upper triangular": False}
_GENERAL = (None, "gen", "general", "banded")
_DIAGONALS = {"diagonal": 0, "tridiagonal": 1}
"""How far from the diagonal elements of these matrices lie that are read."""


@linear(scipy_linalg.solve)
def solve(
    a: Any,
    b: Any,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    assume_a: str | None = None,
    transposed: bool = False,
) -> Any:
    """x with a x = b, or a^T x = b if ``transposed``; ``a`` [..., n, n], ``b`` [n] or [..., n, k].

    ``assume_a`` "sym", "her" and "pos" read one triangle, the lower one if ``lower``; "pos" solves
    by Cholesky's factor, "lower triangular" and "upper triangular" by substitution; "diagonal" and
    "tridiagonal" read those elements. Raises `AttributeValueError` for a name that SciPy lacks.
    """
    left, right, is_vector = _system("solve", a, b)
    if assume_a in _TRIANGLES:
        made = solve_triangular(left, right, int(transposed), _TRIANGLES[assume_a])
        return _vector_again(made, is_vector)
    if assume_a in _POSITIVE:
        left = left.swapaxes(-1, -2) if transposed else left
        factor = cho_factor(left, lower != transposed)
        return _vector_again(cho_solve(factor, right), is_vector)
    if assume_a in _DIAGONALS:
        far = abs(np.subtract.outer(np.arange(left.shape[-1]), np.arange(left.shape[-1])))
        left = where(far <= _DIAGONALS[assume_a], left, 0).astype(left.dtype)
    elif assume_a in _HERMITIAN + _SYMMETRIC:
        left = _mirrored(left, lower, assume_a in _HERMITIAN)
    elif assume_a not in _GENERAL:
        raise AttributeValueError(f"solve: {assume_a!r} is not a known structure of matrices")
    left = left.swapaxes(-1, -2) if transposed else left
    return _vector_again(np_linalg.solve(left, right), is_vector)


@linear(scipy_linalg.inv)
def inv(
    a: Any,
    overwrite_a: bool = False,
    check_finite: bool = True,
    *,
    assume_a: str | None = None,
    lower: bool = False,
) -> Any:
    """The inverse matrices, [..., n, n]; ``assume_a`` and ``lower`` as for `solve`."""
    array = matrices_of("inv", a, square=True)
    unit = broadcast_to(as_array(np.eye(array.shape[-1], dtype=array.dtype)), array.shape)
    return solve(array, unit, lower, assume_a=assume_a)


@linear(scipy_linalg.det)
def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The determinants of square matrices [..., n, n]."""
    return np_linalg.det(a)


def _factored(array: Tracer) -> tuple[Tracer, Tracer, Tracer]:
    """(lu, pivots, permutation): both factors in one matrix; a[permutation] is l u."""
    packed, pivots, permutation = factorizations.lu(array)
    return packed, pivots.astype(np.int32), permutation.astype(np.int64)


@linear(scipy_linalg.lu_factor)
def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """(lu, piv): a unit lower and an upper triangle in one matrix [..., m, n], and row exchanges.

    Row i was exchanged with row ``piv[i]``, int32 [..., min(m, n)]. Only square matrices have a
    derivative.
    """
    return _factored(matrices_of("lu_factor", a))[:2]


@linear(scipy_linalg.lu_solve)
def lu_solve(
    lu_and_piv: Any, b: Any, trans: int = 0, overwrite_b: bool = False, check_finite: bool = True
) -> Any:
    """x with op(a) x = b, from `lu_factor` of a; ``trans`` is that of `solve_triangular`."""
    packed, pivots = lu_and_piv
    left, right, is_vector = _system("lu_solve", packed, b)
    exchanges = as_array(pivots)
    size = left.shape[-1]
    order = broadcast_to(as_array(np.arange(size)), (*exchanges.shape[:-1], size))
    rows = np.arange(size)
    for i in range(size):
        other = exchanges[..., i : i + 1]
        there = take_along_axis(order, other.astype(np.int64), -1)
        order = where(rows == i, there, where(rows == other, order[..., i : i + 1], order))
    order = broadcast_to(order, (*right.shape[:-2], size))[..., None]
    if trans == 0:
        half = solve_triangular(left, take_along_axis(right, order, -2), 0, True, True)
        return _vector_again(solve_triangular(left, half, 0), is_vector)
    half = solve_triangular(left, right, trans)
    made = solve_triangular(left, half, trans, True, True)
    return _vector_again(take_along_axis(made, order.argsort(-2), -2), is_vector)


@linear(scipy_linalg.lu)
def lu(
    a: Any,
    permute_l: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
    p_indices: bool = False,
) -> Any:
    """(p, l, u) with a = p l u of matrices [..., m, n].

    ``permute_l`` gives (p l, u); ``p_indices`` gives rows in place of p, with a = l[p] u. Only
    square matrices have a derivative.
    """
    array = matrices_of("lu", a)
    rows, columns = array.shape[-2:]
    inner = min(rows, columns)
    packed, _, permutation = _factored(array)
    below = np.tril(np.ones((rows, inner), bool), -1)
    lower = where(below, packed[..., :inner], np.eye(rows, inner, dtype=array.dtype))
    upper = where(np.triu(np.ones((inner, columns), bool)), packed[..., :inner, :], 0)
    upper = upper.astype(array.dtype)
    places = permutation.argsort(-1)
    if permute_l:
        return take_along_axis(lower, places[..., None], -2), upper
    if p_indices:
        return places.astype(np.int32), lower, upper
    unit = (places[..., None] == np.arange(rows)).astype(array.real.dtype)
    return unit, lower, upper


@linear(scipy_linalg.eigh)
def eigh(
    a: Any,
    b: Any = None,
    *,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    type: int = 1,
    check_finite: bool = True,
    subset_by_index: Any = None,
    subset_by_value: Any = None,
    driver: str | None = None,
) -> Any:
    """(w, v): the eigenvalues, ascending, and eigenvectors of Hermitian matrices; w alone.

    With positive definite matrices ``b`` the problem is a v = w b v for ``type`` 1, a b v = w v
    for 2 and b a v = w v for 3; eigenvectors have v^H b v = 1, for type 3 v^H b^-1 v = 1.
    ``subset_by_index`` (first, last) selects eigenvalues. Raises `AttributeValueError` for another
    type, for indices out of range, and for ``subset_by_value``, which decides shapes by values.
    """
    if subset_by_value is not None:
        raise AttributeValueError(
            "eigh: subset_by_value decides shapes by values; use subset_by_index, or a mask"
        )
    if type not in (1, 2, 3):
        raise AttributeValueError(f"eigh: type must be 1, 2 or 3, not {type!r}")
    side = "L" if lower else "U"
    array = matrices_of("eigh", a, square=True)
    kept = _kept_eigenvalues(subset_by_index, array.shape[-1])
    if b is None:
        if eigvals_only:
            return np_linalg.eigvalsh(array, side)[..., kept]
        values, vectors = np_linalg.eigh(array, side)
        return values[..., kept], vectors[..., kept]
    left, right = common("eigh", a, b)
    require_matrices("eigh", left, square=True)
    require_matrices("eigh", right, square=True)
    if left.shape[-1] != right.shape[-1]:
        raise MatrixError(f"eigh: a {left.shape} and b {right.shape} must have equal sizes")
    full, factor = _mirrored(left, lower, True), cholesky(_mirrored(right, lower, True), True)
    if type == 1:
        # With b = l l^H, a v = w b v is (l^-1 a l^-H) u = w u for u = l^H v.
        half = solve_triangular(factor, full, 0, True)
        inner = solve_triangular(factor, half.swapaxes(-1, -2).conj(), 0, True)
    else:
        inner = factor.conj().swapaxes(-1, -2) @ full @ factor
    inner = _mirrored(inner, True, True)
    if eigvals_only:
        return np_linalg.eigvalsh(inner)[..., kept]
    values, vectors = np_linalg.eigh(inner)
    vectors = factor @ vectors if type == 3 else solve_triangular(factor, vectors, 2, True)
    return values[..., kept], vectors[..., kept]


def _kept_eigenvalues(subset: Any, size: int) -> slice:
    if subset is None:
        return slice(None)
    first, last = (int(index) for index in subset)
    if not 0 <= first <= last < size:
        raise AttributeValueError(
            f"eigh: subset_by_index must be two indices in order, below {size}; it is {subset}"
        )
    return slice(first, last + 1)


@linear(scipy_linalg.svd)
def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """(u, s, vh) with a = u s vh, or s alone; see `tracejit.numpy.linalg.svd`."""
    made = np_linalg.svd(a, full_matrices, compute_uv)
    return tuple(made) if compute_uv else made


@linear(scipy_linalg.norm)
def norm(
    a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, check_finite: bool = True
) -> Any:
    """See `tracejit.numpy.linalg.norm`."""
    return np_linalg.norm(a, ord, axis, keepdims)


@linear(scipy_linalg.pinv)
def pinv(
    a: Any,
    *,
    atol: Any = None,
    rtol: Any = None,
    return_rank: bool = False,
    check_finite: bool = True,
) -> Any:
    """The pseudoinverse of matrices ``a`` [..., m, n], and its rank with ``return_rank``.

    Singular values up to ``atol``, by default 0, plus ``rtol`` times the greatest count as 0;
    ``rtol`` is max(m, n) times the type's epsilon by default.
    """
    array = as_array(a)
    require_matrices("pinv", array, square=False)
    if rtol is None:
        dtype = array.dtype if array.dtype.kind in "fc" else np.float64
        rtol = max(array.shape[-2:]) * np.finfo(dtype).eps
    if atol is None and not return_rank:
        return np_linalg.pinv(array, rtol)
    array = matrices_of("pinv", a)
    u, s, vh = np_linalg.svd(array, False)
    kept = s > (0 if atol is None else atol) + rtol * s.max(-1, keepdims=True, initial=0)
    shares = where(kept, 1 / where(kept, s, 1), 0).astype(array.dtype)
    made = ((u * shares[..., None, :]) @ vh).conj().swapaxes(-1, -2)
    return (made, kept.sum(-1)) if return_rank else made


@linear(scipy_linalg.qr)
def qr(
    a: Any,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> Any:
    """(q, r) with a = q r; ``mode`` "full", "economic", or "r" for (r,) alone.

    Raises `AttributeValueError` for another mode and for ``pivoting``.
    """
    if pivoting or mode not in ("full", "economic", "r"):
        raise AttributeValueError(
            f"qr: mode must be full, economic or r, without pivoting; it is {mode!r}"
        )
    if mode == "r":
        array = matrices_of("qr", a)
        r = np_linalg.qr(array, "r")
        missing = array.shape[-2] - r.shape[-2]
        widths = [(0, 0)] * (array.ndim - 2) + [(0, missing), (0, 0)]
        return (pad(r, widths),)
    return tuple(np_linalg.qr(a, "complete" if mode == "full" else "reduced"))


# The coefficients of the Padé approximant of order 13, and the norm up to which it is exact to
# rounding in float64: N. Higham, The scaling and squaring method for the matrix exponential, 2005.
_PADE = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0,
    129060195264000.0, 10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0,
    960960.0, 16380.0, 182.0, 1.0,
)  # fmt: skip
_EXACT_UP_TO = 5.371920351148152


@linear(scipy_linalg.expm)
def expm(A: Any) -> Any:
    """e^A of square matrices [..., n, n], by scaling, a Padé approximant and squaring."""
    array = matrices_of("expm", A, square=True)
    if not array.size:
        return array
    c = [array.dtype.type(number) for number in _PADE]
    norms = abs(array).sum(-2).max(-1)
    wanted = np.ceil(np.log2(where(norms > _EXACT_UP_TO, norms / _EXACT_UP_TO, 1)))
    steps = np.minimum(wanted, 1000).astype(np.int64)[..., None, None]
    x = array / (2.0**steps).astype(array.real.dtype)
    unit = np.eye(array.shape[-1], dtype=array.dtype)
    x2 = x @ x
    x4 = x2 @ x2
    x6 = x4 @ x2
    high = x6 * c[13] + x4 * c[11] + x2 * c[9]
    odd = x @ (x6 @ high + x6 * c[7] + x4 * c[5] + x2 * c[3] + unit * c[1])
    high = x6 * c[12] + x4 * c[10] + x2 * c[8]
    even = x6 @ high + x6 * c[6] + x4 * c[4] + x2 * c[2] + unit * c[0]
    made = np_linalg.solve(even - odd, even + odd)
    return fori_loop(0, steps.max(), lambda i, r: where(i < steps, r @ r, r), made)


@implements(scipy_linalg.toeplitz)
def toeplitz(c: Any, r: Any = None) -> Any:
    """The matrix [..., m, n] with first column ``c`` [..., m] and constant diagonals.

    Its first row is ``r`` [..., n], whose first element is not used; by default conj(c).
    """
    column = as_array(c)
    row = column.conj() if r is None else as_array(r)
    column = column.reshape(-1) if column.ndim == 0 else column
    row = row.reshape(-1) if row.ndim == 0 else row
    dtype = result_dtype([column.dtype, row.dtype])
    batch = np.broadcast_shapes(column.shape[:-1], row.shape[:-1])
    column = broadcast_to(column, (*batch, column.shape[-1])).astype(dtype)
    row = broadcast_to(row, (*batch, row.shape[-1])).astype(dtype)
    rows, columns = column.shape[-1], row.shape[-1]
    diagonals = concatenate([row[..., :0:-1], column], -1)
    return diagonals[..., np.arange(rows)[:, None] - np.arange(columns) + columns - 1]


@implements(scipy_linalg.block_diag)
def block_diag(*arrs: Any) -> Any:
    """The matrix with the given ones on its diagonal, zero elsewhere; a vector is one row.

    Raises `MatrixError` for arrays of more than two dimensions.
    """
    given = [as_array(a) for a in arrs] or [as_array(np.zeros((1, 0)))]
    if any(a.ndim > 2 for a in given):
        raise MatrixError("block_diag: arrays must have two dimensions at most")
    blocks = [a.reshape(1, -1) if a.ndim < 2 else a for a in given]
    dtype = result_dtype(block.dtype for block in blocks)
    columns = sum(block.shape[1] for block in blocks)
    before, parts = 0, []
    for block in blocks:
        after = columns - before - block.shape[1]
        parts.append(pad(block.astype(dtype), [(0, 0), (before, after)]))
        before += block.shape[1]
    return concatenate(parts, 0)


def __dir__() -> list[str]:
    return __all__
