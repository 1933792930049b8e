"""Linear algebra, spelled as in `jax.lax.linalg`.

lax.linalg.triangular_solve(a, b, left_side=True, lower=True)

A matrix that has no such factors gives NaN; see `tracejit.numpy.linalg`.
"""

from __future__ import annotations

from typing import Any

from tracejit import ops
from tracejit.lax import factorizations
from tracejit.lax.elementwise import operands
from tracejit.ops.matrices import adjoint
from tracejit.trace.public import public
from tracejit.trace.tracer import Tracer, lift

__all__ = ["cholesky", "eigh", "qr", "svd", "triangular_solve"]


def _symmetrized(x: Any, symmetrize_input: bool) -> Tracer:
    """The mean of matrices and their adjoints, if ``symmetrize_input``."""
    (given,) = operands(x)
    if not symmetrize_input:
        return lift(given, False)
    both = ops.add(given, adjoint(given))
    return lift(ops.mul(both, ops.full_like(both, 0.5)), False)


@public
def cholesky(x: Any, *, symmetrize_input: bool = True) -> Any:
    """Lower factors l with l l^H = x.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit and `AttributeValueError` for an option or a size out of range.

    >>> tj.lax.linalg.cholesky(np.array([[4.0, 2.0], [2.0, 5.0]]))
    array([[2., 0.],
           [1., 2.]])
    """
    return lift(ops.cholesky(_symmetrized(x, symmetrize_input).instruction, True), False)


@public
def triangular_solve(
    a: Any,
    b: Any,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Any:
    """x with op(a) x = b where ``left_side``, else x op(a) = b; ``b`` may lack its last axis.

    ``conjugate_a`` conjugates ``a``, which only transposing makes XLA's adjoint.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tj.lax.linalg.triangular_solve(
    ...     np.array([[2.0, 0.0], [1.0, 4.0]]),
    ...     np.array([[2.0], [9.0]]),
    ...     left_side=True,
    ...     lower=True,
    ... )
    array([[1.],
           [2.]])
    """
    matrix, right = operands(a, b)
    is_vector = right.array_shape.rank == matrix.array_shape.rank - 1
    if is_vector:
        sizes = right.array_shape.dimensions
        columns = (*sizes, 1) if left_side else (*sizes[:-1], 1, sizes[-1])
        right = ops.reshape(right, columns)
    is_complex = matrix.array_shape.element_type.is_complex
    if conjugate_a and is_complex and not transpose_a:
        matrix = ops.conj(matrix)
    transpose = "NO_TRANSPOSE"
    if transpose_a:
        transpose = "ADJOINT" if conjugate_a and is_complex else "TRANSPOSE"
    made = ops.triangular_solve(matrix, right, left_side, lower, unit_diagonal, transpose)
    return lift(ops.reshape(made, sizes) if is_vector else made, False)


@public
def eigh(x: Any, *, lower: bool = True, symmetrize_input: bool = True) -> Any:
    """(eigenvectors, eigenvalues) of Hermitian matrices, ascending.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit and `AttributeValueError` for an option or a size out of range.

    >>> tj.lax.linalg.eigh(np.diag([2.0, 3.0]))[1]
    array([2., 3.])
    """
    matrices = _symmetrized(x, symmetrize_input)
    find = factorizations.eigh_lower if lower else factorizations.eigh_upper
    values, vectors = find(matrices)
    return vectors, values


@public
def svd(x: Any, *, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """(u, s, vh) with x = u diag(s) vh, or s alone.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.lax.linalg.svd(np.diag([3.0, 4.0]), compute_uv=False)
    array([4., 3.])
    """
    matrices = _symmetrized(x, False)
    if not compute_uv:
        return factorizations.svdvals(matrices)[0]
    full = full_matrices and matrices.shape[-1] != matrices.shape[-2]
    return (factorizations.svd_full if full else factorizations.svd)(matrices)


@public
def qr(x: Any, *, full_matrices: bool = True) -> Any:
    """(q, r) with x = q r, q square where ``full_matrices``.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.lax.linalg.qr(np.array([[3.0, 1.0], [4.0, 2.0]]))[1].round(4)
    array([[-5. , -2.2],
           [ 0. ,  0.4]])
    """
    matrices = _symmetrized(x, False)
    full = full_matrices and matrices.shape[-2] > matrices.shape[-1]
    return (factorizations.qr_complete if full else factorizations.qr)(matrices)


def __dir__() -> list[str]:
    return __all__
