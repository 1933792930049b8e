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
from tracejit.errors import AttributeValueError, MatrixError, ShapeError
from tracejit.graph import Instruction
from tracejit.lax import factorizations
from tracejit.numpy import arithmetic, diagonals, norms, products
from tracejit.numpy.building import axes_of, integer
from tracejit.numpy.least_squares import lstsq, matrix_rank, pinv
from tracejit.numpy.manipulation import as_array, broadcast_to, matrix_transpose
from tracejit.numpy.matrices import (
    common,
    hermitian_of,
    linear,
    matrices_of,
    require_matrices,
)
from tracejit.numpy.selecting import where
from tracejit.ops.layout import TRANSPOSE
from tracejit.ops.linalg import CHOLESKY
from tracejit.ops.matrices import identity
from tracejit.shapes import Shape
from tracejit.trace.convert import broadcast_dimensions
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


def _unit(shape: Shape) -> Tracer:
    return lift(identity(shape), False)


@linear(np.linalg.cholesky)
def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    """l with l l^H = a, or u with u^H u = a, of the triangle of ``a`` that is read.

    Raises `ArgumentError` for arguments that it does not take and `MatrixError` for arrays that
    are no such matrices.

    >>> tnp.linalg.cholesky([[4.0, 2.0], [2.0, 5.0]])
    array([[2., 0.],
           [1., 2.]])
    """
    array = matrices_of("cholesky", a, square=True)
    return lift(ops.cholesky(array.instruction, not upper), False)


@linear(np.linalg.solve)
def solve(a: Any, b: Any) -> Any:
    """x with a x = b; ``b`` is a vector where it has one dimension, else a batch of matrices.

    Where ``a`` is what `cholesky` made, or its transpose, the system is solved as triangular.

    Raises `ArgumentError` for what is no array of numbers and `MatrixError` for arrays that are
    no such matrices.

    >>> tnp.linalg.solve([[2.0, 0.0], [0.0, 4.0]], [2.0, 8.0])
    array([1., 2.])
    """
    left, right = common("solve", a, b)
    require_matrices("solve", left, square=True)
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


@linear(np.linalg.inv)
def inv(a: Any) -> Any:
    """The inverse matrices.

    Raises `ArgumentError` for arguments that it does not take and `MatrixError` for arrays that
    are no such matrices.

    >>> tnp.linalg.inv([[2.0, 0.0], [0.0, 4.0]])
    array([[0.5 , 0.  ],
           [0.  , 0.25]])
    """
    array = matrices_of("inv", a, square=True)
    return factorizations.solve(array, _unit(array.instruction.array_shape))[0]


@linear(np.linalg.det)
def det(a: Any) -> Any:
    """The determinants.

    Raises `ArgumentError` for arguments that it does not take and `MatrixError` for arrays that
    are no such matrices.

    >>> tnp.linalg.det([[1.0, 2.0], [3.0, 5.0]]).round(6)
    np.float64(-1.0)
    """
    return factorizations.det(matrices_of("det", a, square=True))[0]


@linear(np.linalg.slogdet)
def slogdet(a: Any) -> Any:
    """(sign, logabsdet): the determinants are ``sign * exp(logabsdet)``.

    Raises `ArgumentError` for arguments that it does not take and `MatrixError` for arrays that
    are no such matrices.

    >>> tnp.linalg.slogdet([[2.0, 0.0], [0.0, 0.5]])
    SlogdetResult(sign=np.float64(1.0), logabsdet=np.float64(0.0))
    """
    return SlogdetResult(*factorizations.slogdet(matrices_of("slogdet", a, square=True)))


def _is_lower(function: str, uplo: str) -> bool:
    if uplo.upper() not in ("L", "U"):
        raise AttributeValueError(f"{function}: UPLO argument must be 'L' or 'U', not {uplo!r}")
    return uplo.upper() == "L"


@linear(np.linalg.eigh)
def eigh(a: Any, UPLO: str = "L") -> Any:
    """(eigenvalues, eigenvectors) of Hermitian matrices, of whose triangles one is read.

    Raises `ArgumentError` for arguments that it does not take and `MatrixError` for arrays that
    are no such matrices.

    >>> tnp.linalg.eigh([[2.0, 0.0], [0.0, 3.0]]).eigenvalues
    array([2., 3.])
    """
    array = matrices_of("eigh", a, square=True)
    lower = _is_lower("eigh", UPLO)
    return EighResult(*(factorizations.eigh_lower if lower else factorizations.eigh_upper)(array))


@linear(np.linalg.eigvalsh)
def eigvalsh(a: Any, UPLO: str = "L") -> Any:
    """The eigenvalues of Hermitian matrices, ascending.

    Raises `ArgumentError` for arguments that it does not take and `MatrixError` for arrays that
    are no such matrices.

    >>> tnp.linalg.eigvalsh([[2.0, 1.0], [1.0, 2.0]]).round(6)
    array([1., 3.])
    """
    array = matrices_of("eigvalsh", a, square=True)
    lower = _is_lower("eigvalsh", UPLO)
    return (factorizations.eigvalsh_lower if lower else factorizations.eigvalsh_upper)(array)[0]


@linear(np.linalg.eig)
def eig(a: Any) -> Any:
    """(eigenvalues, eigenvectors) of general matrices, complex always.

    Raises `ArgumentError` for arguments that it does not take and `MatrixError` for arrays that
    are no such matrices.

    >>> tnp.linalg.eig([[2.0, 0.0], [0.0, 3.0]]).eigenvalues
    array([2., 3.])
    """
    return EigResult(*factorizations.eig(matrices_of("eig", a, square=True)))


@linear(np.linalg.eigvals)
def eigvals(a: Any) -> Any:
    """The eigenvalues of general matrices, complex always.

    Raises `ArgumentError` for arguments that it does not take and `MatrixError` for arrays that
    are no such matrices.

    >>> tnp.linalg.eigvals([[0.0, 1.0], [-1.0, 0.0]])
    array([0.+1.j, 0.-1.j])
    """
    return factorizations.eigvals(matrices_of("eigvals", a, square=True))[0]


@linear(np.linalg.svd)
def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    """(U, S, Vh) with a = U S Vh, or S alone.

    Only ``full_matrices=False`` has a derivative, unless ``a`` is square.

    Raises `ArgumentError` for arguments that it does not take and `MatrixError` for arrays that
    are no such matrices.

    >>> tnp.linalg.svd([[3.0, 0.0], [0.0, 4.0]]).S
    array([4., 3.])
    """
    array = matrices_of("svd", a, square=hermitian)
    array = hermitian_of(array) if hermitian else array
    if not compute_uv:
        return factorizations.svdvals(array)[0]
    full = full_matrices and array.shape[-1] != array.shape[-2]
    return SVDResult(*(factorizations.svd_full if full else factorizations.svd)(array))


@linear(np.linalg.svdvals)
def svdvals(x: Any, /) -> Any:
    """The singular values, descending.

    Raises `ArgumentError` for arguments that it does not take and `MatrixError` for arrays that
    are no such matrices.

    >>> tnp.linalg.svdvals([[3.0, 0.0], [0.0, 4.0]])
    array([4., 3.])
    """
    return factorizations.svdvals(matrices_of("svdvals", x))[0]


@linear(np.linalg.qr)
def qr(a: Any, mode: str = "reduced") -> Any:
    """(Q, R) with a = Q R; R alone for mode r, (h, tau) for raw.

    Modes complete (unless it is reduced too) and raw have no derivative.

    Raises `ArgumentError` for arguments that it does not take and `MatrixError` for arrays that
    are no such matrices.

    >>> tnp.linalg.qr([[3.0, 1.0], [4.0, 2.0]]).R.round(4)
    array([[-5. , -2.2],
           [ 0. ,  0.4]])
    """
    array = matrices_of("qr", a)
    rows, columns = array.shape[-2:]
    if mode == "r":
        return factorizations.qr(array)[1]
    if mode == "raw":
        return factorizations.qr_raw(array)
    if mode not in ("reduced", "complete"):
        raise AttributeValueError(f"qr: mode must be reduced, complete, r or raw, not {mode!r}")
    whole = mode == "complete" and rows > columns
    return QRResult(*(factorizations.qr_complete if whole else factorizations.qr)(array))


@linear(np.linalg.cond)
def cond(x: Any, p: Any = None) -> Any:
    """The condition numbers in the norm ``p``; infinite for singular matrices.

    Raises `ArgumentError` for arguments that it does not take and `MatrixError` for arrays that
    are no such matrices.

    >>> tnp.linalg.cond(np.diag([4.0, 2.0]))
    np.float64(2.0)
    """
    array = matrices_of("cond", x)
    if 0 in array.shape[-2:]:
        raise MatrixError("cond: is not defined on empty arrays")
    if p in (None, 2, -2):
        (values,) = factorizations.svdvals(array)
        made = values[..., -1] / values[..., 0] if p == -2 else values[..., 0] / values[..., -1]
    else:
        require_matrices("cond", array, square=True)
        made = norm(array, p, (-2, -1)) * norm(inv(array), p, (-2, -1))
    odd = (made != made) & ~(array != array).any((-2, -1))
    return where(odd, np.inf, made).astype(made.dtype)[()]


@linear(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """The norm of vectors or matrices. Its derivative at zero is zero.

    Raises `ArgumentError` for arguments that it does not take and `DimensionError` for an axis
    that the array lacks.

    >>> tnp.linalg.norm([3.0, 4.0])
    np.float64(5.0)
    """
    return norms.norm(x, ord, axis, keepdims)


@linear(np.linalg.vector_norm)
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """The norm of vectors along one axis, several, or all.

    Raises `ArgumentError` for arguments that it does not take and `DimensionError` for an axis
    that the array lacks.

    >>> tnp.linalg.vector_norm([3.0, 4.0])
    np.float64(5.0)
    """
    array = norms.floating(x)
    return norms.vector_norm(array, ord, axes_of("vector_norm", axis, array.ndim), keepdims)


@linear(np.linalg.matrix_norm)
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """The norm of the matrices in the last two axes.

    Raises `ArgumentError` for arguments that it does not take and `MatrixError` for arrays that
    are no such matrices.

    >>> tnp.linalg.matrix_norm([[3.0, 0.0], [0.0, 4.0]])
    np.float64(5.0)
    """
    array = norms.floating(x)
    require_matrices("matrix_norm", array, square=False)
    return norms.matrix_norm(array, ord, (array.ndim - 2, array.ndim - 1), keepdims)


@linear(np.linalg.matrix_power)
def matrix_power(a: Any, n: int) -> Any:
    """``a`` multiplied by itself, ``n`` a Python integer; negative powers are of the inverse.

    Raises `ArgumentError` for arguments that it does not take, `MatrixError` for arrays that
    are no such matrices and `ConcretizationError` for an option that is unknown while tracing.

    >>> tnp.linalg.matrix_power([[1, 1], [0, 1]], 3)
    array([[1, 3],
           [0, 1]])
    """
    array = as_array(a)
    require_matrices("matrix_power", array, square=True)
    exponent = integer("matrix_power", "n", n)
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


@linear(np.linalg.multi_dot)
def multi_dot(arrays: Sequence[Any], *, out: Any = None) -> Any:
    """The product of matrices, in the order that takes the fewest multiplications.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tnp.linalg.multi_dot([np.ones((1, 2)), np.ones((2, 3)), np.ones((3, 1))])
    array([[6.]])
    """
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


@linear(np.linalg.tensorinv)
def tensorinv(a: Any, ind: int = 2) -> Any:
    """The inverse for `tensordot` over the first ``ind`` axes.

    Raises `ArgumentError` for arguments that it does not take and `MatrixError` for arrays that
    are no such matrices.

    >>> tnp.linalg.tensorinv(np.eye(4).reshape(2, 2, 2, 2)).shape
    (2, 2, 2, 2)
    """
    array = as_array(a)
    if ind <= 0:
        raise AttributeValueError("tensorinv: ind must be positive")
    rows = math.prod(array.shape[ind:])
    inverse = inv(array.reshape(math.prod(array.shape[:ind]), rows))
    return inverse.reshape(*array.shape[ind:], *array.shape[:ind])


@linear(np.linalg.tensorsolve)
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    """x with tensordot(a, x, x.ndim) = b; ``axes`` of ``a`` are moved to its end first.

    Raises `ArgumentError` for what is no array of numbers, `MatrixError` for arrays that are no
    such matrices and `DimensionError` for an axis that the array lacks.

    >>> tnp.linalg.tensorsolve(np.eye(4).reshape(2, 2, 2, 2), np.ones((2, 2)))
    array([[1., 1.],
           [1., 1.]])
    """
    left, right = common("tensorsolve", a, b)
    if axes is not None:
        order = [d for d in range(left.ndim) if d not in axes_of("tensorsolve", axes, left.ndim)]
        left = left.transpose(*order, *axes_of("tensorsolve", axes, left.ndim))
    sizes = left.shape[right.ndim :]
    if math.prod(sizes) != right.size:
        raise MatrixError(
            f"tensorsolve: a must be square as a matrix to b; a {left.shape}, b {right.shape}"
        )
    return solve(left.reshape(right.size, right.size), right.ravel()).reshape(sizes)


@linear(np.linalg.cross)
def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The cross product of vectors of three elements along one axis.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.linalg.cross([1.0, 0.0, 0.0], [0.0, 1.0, 0.0])
    array([0., 0., 1.])
    """
    return products.cross(x1, x2, axis=axis)


@linear(np.linalg.outer)
def outer(x1: Any, x2: Any, /) -> Any:
    """The products of every element of one vector with every element of another.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tnp.linalg.outer([1, 2], [3, 4])
    array([[3, 4],
           [6, 8]])
    """
    left, right = as_array(x1), as_array(x2)
    if left.ndim != 1 or right.ndim != 1:
        raise ShapeError(
            f"outer: arrays must be one-dimensional; x1 {left.shape}, x2 {right.shape}"
        )
    return products.outer(left, right)


@linear(np.linalg.matmul)
def matmul(x1: Any, x2: Any, /) -> Any:
    """The matrix product.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tnp.linalg.matmul([[1.0, 2.0]], [[3.0], [4.0]])
    array([[11.]])
    """
    return products.matmul(x1, x2)


@linear(np.linalg.vecdot)
def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The sum of products along one axis, the first array conjugated.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit and `DimensionError` for an axis that the array lacks.

    >>> tnp.linalg.vecdot([1.0, 2.0], [3.0, 4.0])
    np.float64(11.0)
    """
    return products.vecdot(x1, x2, axis=axis)


@linear(np.linalg.tensordot)
def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Any:
    """The sum of products over several axes.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit and `DimensionError` for an axis that the array lacks.

    >>> tnp.linalg.tensordot(np.ones((2, 3)), np.ones((3, 4)), axes=1).shape
    (2, 4)
    """
    return products.tensordot(x1, x2, axes)


@linear(np.linalg.trace)
def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """The sums of the diagonals of the matrices in the last two axes.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tnp.linalg.trace([[1, 2], [3, 4]])
    np.int64(5)
    """
    return diagonals.trace(x, offset, -2, -1, dtype)


@linear(np.linalg.diagonal)
def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """The diagonals of the matrices in the last two axes.

    Raises `ArgumentError` for arguments that it does not take and `ShapeError` for shapes that
    do not fit.

    >>> tnp.linalg.diagonal([[1, 2], [3, 4]])
    array([1, 4])
    """
    return diagonals.diagonal(x, offset, -2, -1)


@linear(np.linalg.matrix_transpose)
def _matrix_transpose(x: Any, /) -> Any:
    return matrix_transpose(x)


def __dir__() -> list[str]:
    return __all__
