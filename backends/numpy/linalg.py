"""Cholesky and TriangularSolve, evaluated: LAPACK's Cholesky, and substitution by blocks."""

from __future__ import annotations

import numpy as np

from tracejit.backends.numpy.interpreter import Value, interpret
from tracejit.backends.numpy.precision import widened
from tracejit.graph import Instruction
from tracejit.ops.linalg import CHOLESKY, TRIANGULAR_SOLVE

# Systems up to this size are solved row by row, larger ones by halves.
_ROWS = 16


@interpret.attach(CHOLESKY)
def cholesky(instruction: Instruction, a: np.ndarray) -> Value:
    upper = not instruction.attributes["lower"]
    matrices = widened(a)
    try:
        factors = np.linalg.cholesky(matrices, upper=upper)
    except np.linalg.LinAlgError:
        factors = np.empty_like(matrices)
        for index in np.ndindex(*a.shape[:-2]):
            factors[index] = _cholesky_or_nan(matrices[index], upper)
    # As XLA, which spoils a matrix as a whole; LAPACK lets a NaN pass.
    with np.errstate(all="ignore"):
        is_spoilt = np.isnan(factors.sum())
    if is_spoilt:
        factors[np.isnan(factors).any((-2, -1))] = np.nan
    return factors.astype(a.dtype, copy=False)


def _cholesky_or_nan(matrix: np.ndarray, upper: bool) -> np.ndarray:
    try:
        return np.linalg.cholesky(matrix, upper=upper)
    except np.linalg.LinAlgError:
        return np.full_like(matrix, np.nan)


@interpret.attach(TRIANGULAR_SOLVE)
def triangular_solve(instruction: Instruction, a: np.ndarray, b: np.ndarray) -> Value:
    attributes = instruction.attributes
    matrix, right = widened(a), widened(b)
    lower = attributes["lower"]
    if attributes["transpose_a"] != "NO_TRANSPOSE":
        matrix, lower = np.swapaxes(matrix, -1, -2), not lower
    if attributes["transpose_a"] == "ADJOINT":
        matrix = np.conj(matrix)
    if not attributes["left_side"]:  # x a = b is a^T x^T = b^T
        matrix, lower = np.swapaxes(matrix, -1, -2), not lower
        right = np.swapaxes(right, -1, -2)
    if not lower:  # from the last row to the first
        matrix, right = matrix[..., ::-1, ::-1], right[..., ::-1, :]
    solution = np.array(right)
    _substitute(matrix, solution, attributes["unit_diagonal"])
    if not lower:
        solution = solution[..., ::-1, :]
    if not attributes["left_side"]:
        solution = np.swapaxes(solution, -1, -2)
    return solution.astype(b.dtype)


def _substitute(a: np.ndarray, x: np.ndarray, unit_diagonal: bool) -> None:
    """``x`` becomes the solution of a lower triangular system whose right side it is."""
    size = a.shape[-1]
    if size > _ROWS:
        half = size // 2
        top, bottom = x[..., :half, :], x[..., half:, :]
        _substitute(a[..., :half, :half], top, unit_diagonal)
        bottom -= a[..., half:, :half] @ top
        _substitute(a[..., half:, half:], bottom, unit_diagonal)
        return
    for row in range(size):
        value = x[..., row, :]
        if row:
            value -= (a[..., row, None, :row] @ x[..., :row, :])[..., 0, :]
        if not unit_diagonal:
            value /= a[..., row, row, None]
