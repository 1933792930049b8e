"""Linear algebra with NumPy's names: ``np.linalg``.

Outside traces calls on plain arrays are NumPy's own. A traced function records, and a compiled
graph cannot raise: where NumPy raises `LinAlgError` for the values of a matrix (singular, not
positive definite, no convergence), its results are NaN. Wrong shapes raise `MatrixError`, a
`LinAlgError`, while tracing. Traced eigenvalues of general matrices are always complex, and
residuals of least squares are given for rank-deficient systems too, since dtypes and shapes cannot
depend on values. Integers are computed with in float64.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from tracejit import ops
from tracejit.errors import AttributeValueError, ElementTypeError, MatrixError, ShapeError
from tracejit.graph import Instruction
from tracejit.lax import factorizations
from tracejit.numpy import arithmetic, norms, products, selecting
from tracejit.numpy.building import axes_of
from tracejit.numpy.manipulation import as_array, broadcast_to, matrix_transpose
from tracejit.numpy.selecting import where
from tracejit.ops.layout import TRANSPOSE
from tracejit.ops.linalg import CHOLESKY
from tracejit.ops.matrices import identity
from tracejit.shapes import ElementType, Shape
from tracejit.trace.convert import broadcast_dimensions, operand
from tracejit.trace.promotion import common_element_type
from tracejit.trace.public import implements
from tracejit.trace.tracer import Tracer, lift

__all__ = [
    "LinAlgError",
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vecdot",
    "vector_norm",
]

_ONE = np.ones((1, 1))
# NumPy's named tuples, which it does not export.
EigResult: Any = type(np.linalg.eig(_ONE))
EighResult: Any = type(np.linalg.eigh(_ONE))
QRResult: Any = type(np.linalg.qr(_ONE))
SlogdetResult: Any = type(np.linalg.slogdet(_ONE))
SVDResult: Any = type(np.linalg.svd(_ONE))

_linear = functools.partial(implements, raises=True)


def _common(function: str, *values: Any) -> list[Tracer]:
    """The arrays in one type that LAPACK knows: float64 where one is integral.

    Raises `ElementTypeError` for floating types narrower than 32 bits.
    """
    operands = [operand(value) for value in values]
    common = common_element_type(o.type for o in operands)
    if any(not o.element_type.is_inexact for o in operands):
        common = ElementType.C128 if common.is_complex else ElementType.F64
    if common.bits < 32:
        raise ElementTypeError(f"{function}: array type {common.dtype} is unsupported in linalg")
    return [lift(o.to(common), False) for o in operands]


def _matrices(function: str, a: Any, square: bool = False) -> Tracer:
    """The array of at least two dimensions, square ones last where that is asked for."""
    (array,) = _common(function, a)
    _require_matrices(function, array, square)
    return array


def _require_matrices(function: str, array: Tracer, square: bool) -> None:
    if array.ndim < 2:
        raise MatrixError(
            f"{function}: {array.ndim}-dimensional array given; the array must be at least "
            f"two-dimensional"
        )
    if square and array.shape[-1] != array.shape[-2]:
        raise MatrixError(
            f"{function}: last 2 dimensions of the array must be square, not {array.shape}"
        )


def _unit(shape: Shape) -> Tracer:
    return lift(identity(shape), False)


@_linear(np.linalg.cholesky)
def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    """l with l l^H = a, or u with u^H u = a, of the triangle of ``a`` that is read."""
    array = _matrices("cholesky", a, square=True)
    return lift(ops.cholesky(array.instruction, not upper), False)


@_linear(np.linalg.solve)
def solve(a: Any, b: Any) -> Any:
    """x with a x = b; ``b`` is a vector where it has one dimension, else a batch of matrices.

    Where ``a`` is what `cholesky` made, or its transpose, the system is solved as triangular.
    """
    left, right = _common("solve", a, b)
    _require_matrices("solve", left, square=True)
    is_vector = right.ndim == 1
    if right.ndim == 0:
        raise MatrixError("solve: b must have at least one dimension")
    columns = right[:, None] if is_vector else right
    if columns.shape[-2] != left.shape[-1]:
        raise MatrixError(
            f"solve: b must have a row for each of a; a {left.shape}, b {right.shape}"
        )
    batch = broadcast_dimensions("solve", [left.shape[:-2], columns.shape[:-2]])
    wide = broadcast_to(columns, (*batch, *columns.shape[-2:]))
    factor, is_transposed = _factor(left)
    if factor is None or left.shape[:-2] != batch:
        (x,) = factorizations.solve(broadcast_to(left, (*batch, *left.shape[-2:])), wide)
    else:
        lower = factor.attributes["lower"]
        transpose = "TRANSPOSE" if is_transposed else "NO_TRANSPOSE"
        solved = ops.triangular_solve(factor, wide.instruction, lower=lower, transpose_a=transpose)
        x = lift(solved, False)
    return x[..., 0] if is_vector else x


def _factor(a: Tracer) -> tuple[Instruction | None, bool]:
    """The Cholesky factor that the matrices are, as they are or transposed; None for others."""
    instruction, is_transposed = a.instruction, False
    if instruction.op is TRANSPOSE:
        last = (*range(a.ndim - 2), a.ndim - 1, a.ndim - 2)
        if instruction.attributes["dimensions"] != last:
            return None, False
        (instruction,), is_transposed = instruction.operands, True
    return (instruction if instruction.op is CHOLESKY else None), is_transposed


@_linear(np.linalg.inv)
def inv(a: Any) -> Any:
    """The inverse matrices."""
    array = _matrices("inv", a, square=True)
    return factorizations.solve(array, _unit(array.instruction.array_shape))[0]


@_linear(np.linalg.det)
def det(a: Any) -> Any:
    """The determinants."""
    return factorizations.det(_matrices("det", a, square=True))[0]


@_linear(np.linalg.slogdet)
def slogdet(a: Any) -> Any:
    """(sign, logabsdet): the determinants are ``sign * exp(logabsdet)``."""
    return SlogdetResult(*factorizations.slogdet(_matrices("slogdet", a, square=True)))


def _is_lower(function: str, uplo: str) -> bool:
    if uplo.upper() not in ("L", "U"):
        raise AttributeValueError(f"{function}: UPLO argument must be 'L' or 'U', not {uplo!r}")
    return uplo.upper() == "L"


@_linear(np.linalg.eigh)
def eigh(a: Any, UPLO: str = "L") -> Any:
    """(eigenvalues, eigenvectors) of Hermitian matrices, of whose triangles one is read."""
    array = _matrices("eigh", a, square=True)
    lower = _is_lower("eigh", UPLO)
    return EighResult(*(factorizations.eigh_lower if lower else factorizations.eigh_upper)(array))


@_linear(np.linalg.eigvalsh)
def eigvalsh(a: Any, UPLO: str = "L") -> Any:
    """The eigenvalues of Hermitian matrices, ascending."""
    array = _matrices("eigvalsh", a, square=True)
    lower = _is_lower("eigvalsh", UPLO)
    return (factorizations.eigvalsh_lower if lower else factorizations.eigvalsh_upper)(array)[0]


@_linear(np.linalg.eig)
def eig(a: Any) -> Any:
    """(eigenvalues, eigenvectors) of general matrices, complex always."""
    return EigResult(*factorizations.eig(_matrices("eig", a, square=True)))


@_linear(np.linalg.eigvals)
def eigvals(a: Any) -> Any:
    """The eigenvalues of general matrices, complex always."""
    return factorizations.eigvals(_matrices("eigvals", a, square=True))[0]


def _hermitian(a: Tracer) -> Tracer:
    """Hermitian matrices from their lower triangles."""
    size = a.shape[-1]
    below = np.tril(np.ones((size, size), bool), -1)
    adjoint = matrix_transpose(a.conj())
    whole = where(below, a, adjoint)
    made: Tracer = where(np.eye(size, dtype=bool), a.real, whole)
    return made


@_linear(np.linalg.svd)
def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    """(U, S, Vh) with a = U S Vh, or S alone.

    Only ``full_matrices=False`` has a derivative, unless ``a`` is square.
    """
    array = _matrices("svd", a, square=hermitian)
    array = _hermitian(array) if hermitian else array
    if not compute_uv:
        return factorizations.svdvals(array)[0]
    full = full_matrices and array.shape[-1] != array.shape[-2]
    return SVDResult(*(factorizations.svd_full if full else factorizations.svd)(array))


@_linear(np.linalg.svdvals)
def svdvals(x: Any, /) -> Any:
    """The singular values, descending."""
    return factorizations.svdvals(_matrices("svdvals", x))[0]


@_linear(np.linalg.qr)
def qr(a: Any, mode: str = "reduced") -> Any:
    """(Q, R) with a = Q R; R alone for mode r, (h, tau) for raw.

    Modes complete (unless it is reduced too) and raw have no derivative.
    """
    array = _matrices("qr", a)
    rows, columns = array.shape[-2:]
    if mode == "r":
        return factorizations.qr(array)[1]
    if mode == "raw":
        return factorizations.qr_raw(array)
    if mode not in ("reduced", "complete"):
        raise AttributeValueError(f"qr: mode must be reduced, complete, r or raw, not {mode!r}")
    whole = mode == "complete" and rows > columns
    return QRResult(*(factorizations.qr_complete if whole else factorizations.qr)(array))


def _epsilon(array: Tracer) -> float:
    return float(np.finfo(array.real.dtype).eps)


@_linear(np.linalg.pinv)
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = np._NoValue) -> Any:
    """The pseudo-inverses; singular values up to ``rcond`` times the largest count as zero."""
    array = _matrices("pinv", a, square=hermitian)
    if rcond is None:
        given = 1e-15 if rtol is np._NoValue else rtol
        rcond = max(array.shape[-2:]) * _epsilon(array) if given is None else given
    elif rtol is not np._NoValue:
        raise AttributeValueError("pinv: rtol and rcond cannot both be set")
    return _pinv(_hermitian(array) if hermitian else array, rcond)


def _pinv(array: Tracer, rcond: Any) -> Any:
    if 0 in array.shape:
        return lift(ops.full(_like(array, array.shape[-1], array.shape[-2]), 0), False)
    cutoff = broadcast_to(as_array(rcond).astype(np.float64), array.shape[:-2])
    return factorizations.pinv(array, cutoff)[0]


def _like(array: Tracer, *dimensions: int) -> Shape:
    return Shape(array.element_type, (*array.shape[:-2], *dimensions))


@_linear(np.linalg.lstsq)
def lstsq(a: Any, b: Any, rcond: float | None = None) -> Any:
    """(x, residuals, rank, singular values) of the least squares problem a x = b."""
    left, right = _common("lstsq", a, b)
    if left.ndim != 2 or right.ndim not in (1, 2):
        raise MatrixError(
            f"lstsq: a must have two dimensions and b one or two; a {left.shape}, b {right.shape}"
        )
    rows, columns = left.shape
    if right.shape[0] != rows:
        raise MatrixError(f"lstsq: a and b must have as many rows; a {left.shape}, b {right.shape}")
    epsilon = _epsilon(left)
    cutoff = epsilon * max(rows, columns) if rcond is None else epsilon if rcond == -1 else rcond
    x, values = _least_squares(left, right, cutoff)
    rank = _rank(values, cutoff).astype(np.int32)
    missing = right - products.matmul(left, x)
    squares = (missing * missing.conj()).real.sum(0, keepdims=right.ndim == 1)
    if rows <= columns:
        squares = squares[:0]
    return x, squares, rank, values


def _least_squares(left: Tracer, right: Tracer, cutoff: Any) -> tuple[Any, Tracer]:
    """The solution, and the singular values of ``left``."""
    if left.element_type.is_complex and 0 not in left.shape:
        # LAPACK's, which makes no singular vectors.
        columns = right[:, None] if right.ndim == 1 else right
        share = as_array(cutoff).astype(np.float64)
        x, values = factorizations.lstsq(left, columns, share)
        return (x[:, 0] if right.ndim == 1 else x), values
    (values,) = factorizations.svdvals(left)
    return products.matmul(_pinv(left, cutoff), right), values


def _rank(values: Tracer, relative: Any) -> Any:
    if values.shape[-1] == 0:
        return values.sum(-1)
    limit = values.max(-1, keepdims=True) * relative
    return (values > limit).sum(-1)


@_linear(np.linalg.matrix_rank)
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """The number of singular values above ``tol``, or above ``rtol`` times the largest."""
    if rtol is not None and tol is not None:
        raise AttributeValueError("matrix_rank: tol and rtol cannot both be set")
    (array,) = _common("matrix_rank", A)
    if array.ndim < 2:
        return (array != 0).any().astype(np.int64)
    values = svd(array, compute_uv=False, hermitian=hermitian)
    if tol is not None:
        return (values > as_array(tol)[..., None]).sum(-1)
    relative = (
        max(array.shape[-2:]) * _epsilon(array) if rtol is None else as_array(rtol)[..., None]
    )
    return _rank(values, relative)


@_linear(np.linalg.cond)
def cond(x: Any, p: Any = None) -> Any:
    """The condition numbers in the norm ``p``; infinite for singular matrices."""
    array = _matrices("cond", x)
    if 0 in array.shape[-2:]:
        raise MatrixError("cond: is not defined on empty arrays")
    if p in (None, 2, -2):
        (values,) = factorizations.svdvals(array)
        made = values[..., -1] / values[..., 0] if p == -2 else values[..., 0] / values[..., -1]
    else:
        _require_matrices("cond", array, square=True)
        made = norm(array, p, (-2, -1)) * norm(inv(array), p, (-2, -1))
    odd = (made != made) & ~(array != array).any((-2, -1))
    return where(odd, np.inf, made).astype(made.dtype)[()]


@_linear(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """The norm of vectors or matrices. Its derivative at zero is zero."""
    return norms.norm(x, ord, axis, keepdims)


@_linear(np.linalg.vector_norm)
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """The norm of vectors along one axis, several, or all."""
    array = norms.floating(x)
    return norms.vector_norm(array, ord, axes_of("vector_norm", axis, array.ndim), keepdims)


@_linear(np.linalg.matrix_norm)
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """The norm of the matrices in the last two axes."""
    array = norms.floating(x)
    _require_matrices("matrix_norm", array, square=False)
    return norms.matrix_norm(array, ord, (array.ndim - 2, array.ndim - 1), keepdims)


@_linear(np.linalg.matrix_power)
def matrix_power(a: Any, n: int) -> Any:
    """``a`` multiplied by itself, ``n`` a Python integer; negative powers are of the inverse."""
    array = as_array(a)
    _require_matrices("matrix_power", array, square=True)
    exponent = n.__index__()
    if exponent == 0:
        return _unit(array.instruction.array_shape)
    if exponent < 0:
        array, exponent = inv(array), -exponent
    made = None
    while True:
        if exponent % 2:
            made = array if made is None else products.matmul(made, array)
        exponent //= 2
        if not exponent:
            return made
        array = products.matmul(array, array)


@_linear(np.linalg.multi_dot)
def multi_dot(arrays: Sequence[Any], *, out: Any = None) -> Any:
    """The product of matrices, in the order that takes the fewest multiplications."""
    given = [as_array(a) for a in arrays]
    if len(given) < 2:
        raise AttributeValueError("multi_dot: expecting at least two arrays")
    first, last = given[0].ndim == 1, given[-1].ndim == 1
    given[0] = given[0][None, :] if first else given[0]
    given[-1] = given[-1][:, None] if last else given[-1]
    for array in given:
        if array.ndim != 2:
            raise MatrixError(
                f"multi_dot: {array.ndim}-dimensional array given; must be two-dimensional"
            )
    for left, right in pairwise(given):
        if left.shape[1] != right.shape[0]:
            raise ShapeError(f"multi_dot: shapes {left.shape} and {right.shape} are not aligned")
    made = _in_best_order(given)
    place = (0 if first else slice(None), 0 if last else slice(None))
    made = made[place]
    return made if out is None else arithmetic.positive(made, out=out)


def _in_best_order(arrays: Sequence[Tracer]) -> Tracer:
    """Matrix chain multiplication by dynamic programming."""
    sizes = [arrays[0].shape[0], *(a.shape[1] for a in arrays)]

    @functools.cache
    def best(i: int, j: int) -> tuple[int, int]:
        """The fewest multiplications for matrices i to j, and after which one to split them."""
        if i == j:
            return 0, i
        return min(
            (best(i, k)[0] + best(k + 1, j)[0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
            for k in range(i, j)
        )

    def product(i: int, j: int) -> Tracer:
        if i == j:
            return arrays[i]
        split = best(i, j)[1]
        made: Tracer = products.matmul(product(i, split), product(split + 1, j))
        return made

    return product(0, len(arrays) - 1)


@_linear(np.linalg.tensorinv)
def tensorinv(a: Any, ind: int = 2) -> Any:
    """The inverse for `tensordot` over the first ``ind`` axes."""
    array = as_array(a)
    if ind <= 0:
        raise AttributeValueError("tensorinv: ind must be positive")
    rows = math.prod(array.shape[ind:])
    inverse = inv(array.reshape(math.prod(array.shape[:ind]), rows))
    return inverse.reshape(*array.shape[ind:], *array.shape[:ind])


@_linear(np.linalg.tensorsolve)
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    """x with tensordot(a, x, x.ndim) = b; ``axes`` of ``a`` are moved to its end first."""
    left, right = _common("tensorsolve", a, b)
    if axes is not None:
        order = [d for d in range(left.ndim) if d not in axes_of("tensorsolve", axes, left.ndim)]
        left = left.transpose(*order, *axes_of("tensorsolve", axes, left.ndim))
    sizes = left.shape[right.ndim :]
    if math.prod(sizes) != right.size:
        raise MatrixError(
            f"tensorsolve: a must be square as a matrix to b; a {left.shape}, b {right.shape}"
        )
    return solve(left.reshape(right.size, right.size), right.ravel()).reshape(sizes)


@_linear(np.linalg.cross)
def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The cross product of vectors of three elements along one axis."""
    return products.cross(x1, x2, axis=axis)


@_linear(np.linalg.outer)
def outer(x1: Any, x2: Any, /) -> Any:
    """The products of every element of one vector with every element of another."""
    left, right = as_array(x1), as_array(x2)
    if left.ndim != 1 or right.ndim != 1:
        raise ShapeError(
            f"outer: arrays must be one-dimensional; x1 {left.shape}, x2 {right.shape}"
        )
    return products.outer(left, right)


@_linear(np.linalg.matmul)
def matmul(x1: Any, x2: Any, /) -> Any:
    """The matrix product."""
    return products.matmul(x1, x2)


@_linear(np.linalg.vecdot)
def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The sum of products along one axis, the first array conjugated."""
    return products.vecdot(x1, x2, axis=axis)


@_linear(np.linalg.tensordot)
def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Any:
    """The sum of products over several axes."""
    return products.tensordot(x1, x2, axes)


@_linear(np.linalg.trace)
def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """The sums of the diagonals of the matrices in the last two axes."""
    return selecting.trace(x, offset, -2, -1, dtype)


@_linear(np.linalg.diagonal)
def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """The diagonals of the matrices in the last two axes."""
    return selecting.diagonal(x, offset, -2, -1)


@_linear(np.linalg.matrix_transpose)
def _matrix_transpose(x: Any, /) -> Any:
    return matrix_transpose(x)
