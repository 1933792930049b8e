"""Linear algebra on batches of matrices: Cholesky and TriangularSolve.

cholesky(a, lower=True)                                        l with l l^H = a
triangular_solve(a, b, left_side=True, lower=True)             x with a x = b
triangular_solve(a, b, False, transpose_a="ADJOINT")           x with x a^H = b, a upper triangular
"""

from __future__ import annotations

from tracejit.attributes import Attribute, Kind
from tracejit.errors import AttributeValueError, ShapeError
from tracejit.graph import Instruction
from tracejit.ops.base import (
    INEXACT,
    define,
    make,
    require_array,
    require_element_type,
    require_same_element_type,
)
from tracejit.shapes import AnyShape, Shape

TRANSPOSES = ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")


def _require_square(function: str, operand: AnyShape) -> Shape:
    shape = require_array(function, "a", operand)
    require_element_type(function, "a", shape, INEXACT)
    if shape.rank < 2:
        raise ShapeError(f"{function}: a must have rank 2 or more, not {shape}")
    if shape.dimensions[-1] != shape.dimensions[-2]:
        raise ShapeError(f"{function}: the last two dimensions of a must be equal; a {shape}")
    return shape


@define("Cholesky", "cholesky", Attribute("lower", Kind.BOOL, False))
def CHOLESKY(a: AnyShape, *, lower: bool) -> Shape:
    shape = _require_square("cholesky", a)
    return shape.with_dimensions(shape.dimensions)


def cholesky(a: Instruction, lower: bool) -> Instruction:
    """The triangular factors of Hermitian positive definite matrices (XLA: Cholesky).

    ``a`` is floating or complex of shape [..., n, n]; only its lower triangle is read where
    ``lower``, only its upper one otherwise, and of a complex diagonal only the real part. Lower
    factors ``l`` have l l^H = a, upper ones ``u`` have u^H u = a; the other triangle is zero. A
    matrix that is not positive definite gives NaN. Raises `ShapeError` for matrices that are not
    square.
    """
    return make(CHOLESKY, a, lower=bool(lower))


@define(
    "TriangularSolve",
    "triangular-solve",
    Attribute("left_side", Kind.BOOL, False),
    Attribute("lower", Kind.BOOL, False),
    Attribute("unit_diagonal", Kind.BOOL, False),
    Attribute("transpose_a", Kind.NAME),
)
def TRIANGULAR_SOLVE(
    a: AnyShape,
    b: AnyShape,
    *,
    left_side: bool,
    lower: bool,
    unit_diagonal: bool,
    transpose_a: str,
) -> Shape:
    function = "triangular_solve"
    matrix = _require_square(function, a)
    right = require_array(function, "b", b)
    require_same_element_type(function, a=matrix, b=right)
    if matrix.rank != right.rank or matrix.dimensions[:-2] != right.dimensions[:-2]:
        raise ShapeError(
            f"{function}: a and b must have the same batch dimensions; a {matrix}, b {right}"
        )
    side = right.rank - (2 if left_side else 1)
    if right.dimensions[side] != matrix.dimensions[-1]:
        raise ShapeError(
            f"{function}: with left_side={left_side} dimension {side} of b must be the size of a; "
            f"a {matrix}, b {right} dimension {side} is {right.dimensions[side]}"
        )
    if transpose_a not in TRANSPOSES:
        raise AttributeValueError(
            f"{function}: transpose_a must be one of {', '.join(TRANSPOSES)}, not {transpose_a!r}"
        )
    return right.with_dimensions(right.dimensions)


def triangular_solve(
    a: Instruction,
    b: Instruction,
    left_side: bool = True,
    lower: bool = False,
    unit_diagonal: bool = False,
    transpose_a: str = "NO_TRANSPOSE",
) -> Instruction:
    """Solves op(a) x = b, or x op(a) = b, for triangular matrices (XLA: TriangularSolve).

    ``a`` has the shape [..., m, m] and ``b`` [..., m, k] where ``left_side``, [..., k, m]
    otherwise, with equal batch dimensions and element types, floating or complex. op(a) is a, its
    transpose or its adjoint, as ``transpose_a`` says. Only the triangle that ``lower`` chooses is
    read; with ``unit_diagonal`` the diagonal counts as ones. A zero on the diagonal gives
    infinities or NaN. Raises `ShapeError` when sizes do not fit.
    """
    return make(
        TRIANGULAR_SOLVE,
        a,
        b,
        left_side=bool(left_side),
        lower=bool(lower),
        unit_diagonal=bool(unit_diagonal),
        transpose_a=transpose_a,
    )
