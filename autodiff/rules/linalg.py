"""Cholesky and TriangularSolve.

The formulas are those of M. B. Giles, "Collected Matrix Derivative Results for Forward and Reverse
Mode Algorithmic Differentiation" (2008), for complex matrices too.
"""

from __future__ import annotations

from tracejit.autodiff.reverse import Cotangents, differentiate
from tracejit.graph import Instruction
from tracejit.ops.elementwise import add
from tracejit.ops.elementwise_unary import neg
from tracejit.ops.linalg import CHOLESKY, TRIANGULAR_SOLVE, triangular_solve
from tracejit.ops.matrices import (
    adjoint,
    conjugate,
    matmul,
    matrix_transpose,
    scaled_diagonal,
    triangle,
)


@differentiate.attach(CHOLESKY)
def cholesky_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    """With g the gradient, which is the conjugate of the cotangent, and h() halving the diagonal:

        l l^H = a   =>   dl = l h(tril(l^-1 da l^-H))
        S = l^-H h(tril(l^H g)) l^-1,   of a:  h(tril(S + S^H))

    because only one triangle of a is read. An upper factor is the adjoint of a lower one.
    """
    lower = instruction.attributes["lower"]
    gradient = conjugate(cotangent)
    factor, gradient = (
        (instruction, gradient) if lower else (adjoint(instruction), adjoint(gradient))
    )
    inner = scaled_diagonal(triangle(matmul(adjoint(factor), gradient), lower=True), 0.5)
    left = triangular_solve(factor, inner, lower=True, transpose_a="ADJOINT")
    both = triangular_solve(factor, left, left_side=False, lower=True)
    result = scaled_diagonal(triangle(add(both, adjoint(both)), lower=True), 0.5)
    return (conjugate(result if lower else adjoint(result)),)


# op(a)^T: whether a is conjugated first, and how it is transposed.
_TRANSPOSED = {
    "NO_TRANSPOSE": (False, "TRANSPOSE"),
    "TRANSPOSE": (False, "NO_TRANSPOSE"),
    "ADJOINT": (True, "NO_TRANSPOSE"),
}


@differentiate.attach(TRIANGULAR_SOLVE)
def triangular_solve_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    """op(a) x = b:  of b  op(a)^-T c,  of op(a)  -(op(a)^-T c) x^T;  and mirrored on the right."""
    a, _ = instruction.operands
    attributes = instruction.attributes
    left, lower, unit = (attributes[n] for n in ("left_side", "lower", "unit_diagonal"))
    conjugates, transpose = _TRANSPOSED[attributes["transpose_a"]]
    matrix = conjugate(a) if conjugates else a
    of_b = triangular_solve(matrix, cotangent, left, lower, unit, transpose)
    solution = matrix_transpose(instruction)
    of_matrix = neg(matmul(of_b, solution) if left else matmul(solution, of_b))
    if attributes["transpose_a"] != "NO_TRANSPOSE":
        of_matrix = matrix_transpose(of_matrix)
    if conjugates:
        of_matrix = conjugate(of_matrix)
    of_a = triangle(of_matrix, lower)
    return scaled_diagonal(of_a, 0) if unit else of_a, of_b
