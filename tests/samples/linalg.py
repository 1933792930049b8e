"""Samples of Cholesky and TriangularSolve."""

from __future__ import annotations

import numpy as np

from tests.samples.base import Operand, Sample
from tracejit import ops
from tracejit.ops.base import COMPLEX, INEXACT
from tracejit.shapes import ElementType

# Differences of numbers are what solutions and factors are made of.
SIGNED = {t for t in INEXACT if t.is_signed}
# XLA rounds every step to the narrow types, the interpreter only the result.
TOLERANCE = {
    **{t: 4.8 * 0.5**t.float_format.mantissa_bits for t in ElementType if t.is_small_float},
    ElementType.BF16: 0.25,
    ElementType.F16: 0.03,
    ElementType.F32: 2e-5,
    ElementType.F64: 4e-14,
    ElementType.C64: 2e-5,
    ElementType.C128: 4e-14,
}


def _normal(rng: np.random.Generator, dimensions: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    values = rng.uniform(-1, 1, dimensions)
    if dtype.kind == "c":
        return np.asarray(values + 1j * rng.uniform(-1, 1, dimensions))
    return np.asarray(values)


def positive_definite(
    rng: np.random.Generator, dimensions: tuple[int, ...], dtype: np.dtype
) -> np.ndarray:
    """Hermitian matrices with eigenvalues above 1."""
    values = _normal(rng, dimensions, dtype)
    product = values @ np.swapaxes(values, -1, -2).conj()
    return np.asarray((product + 2 * np.eye(dimensions[-1])).astype(dtype))


def dominant(rng: np.random.Generator, dimensions: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Matrices whose diagonals are larger than the rest, so that systems are well conditioned."""
    return (_normal(rng, dimensions, dtype) + 3 * np.eye(dimensions[-1])).astype(dtype)


def _cholesky(label: str, dimensions: tuple[int, ...], lower: bool) -> Sample:
    return Sample(
        "Cholesky",
        lambda a: ops.cholesky(a, lower),
        (Operand(dimensions, domain=positive_definite),),
        SIGNED,
        label,
        TOLERANCE,
    )


def _solve(
    label: str,
    a: tuple[int, ...],
    b: tuple[int, ...],
    left_side: bool = True,
    lower: bool = True,
    unit_diagonal: bool = False,
    transpose_a: str = "NO_TRANSPOSE",
) -> Sample:
    return Sample(
        "TriangularSolve",
        lambda a, b: ops.triangular_solve(a, b, left_side, lower, unit_diagonal, transpose_a),
        (Operand(a, domain=dominant), Operand(b)),
        COMPLEX if transpose_a == "ADJOINT" else SIGNED,
        label,
        TOLERANCE,
    )


SAMPLES = [
    _cholesky("lower", (3, 3), True),
    _cholesky("upper", (3, 3), False),
    _cholesky("batch", (2, 1, 4, 4), True),
    _cholesky("upper batch", (2, 2, 2), False),
    _cholesky("one", (1, 1), True),
    _cholesky("no row", (2, 0, 0), True),
    _cholesky("no matrix", (0, 2, 2), False),
    _solve("lower", (3, 3), (3, 2)),
    _solve("upper", (3, 3), (3, 2), lower=False),
    _solve("lower, right", (3, 3), (2, 3), False),
    _solve("upper, right", (3, 3), (2, 3), False, False),
    _solve("lower, transposed", (3, 3), (3, 2), transpose_a="TRANSPOSE"),
    _solve("upper, transposed, right", (3, 3), (2, 3), False, False, transpose_a="TRANSPOSE"),
    _solve("lower, adjoint", (3, 3), (3, 2), transpose_a="ADJOINT"),
    _solve("upper, adjoint, right", (3, 3), (2, 3), False, False, transpose_a="ADJOINT"),
    _solve("unit diagonal", (3, 3), (3, 2), unit_diagonal=True),
    _solve("unit diagonal, upper, right", (3, 3), (2, 3), False, False, True, "TRANSPOSE"),
    _solve("batch", (2, 1, 3, 3), (2, 1, 3, 2)),
    _solve("one unknown", (2, 1, 1), (2, 1, 17)),
    _solve("no column", (3, 3), (3, 0)),
    _solve("no row", (0, 0), (0, 2)),
    _solve("no system", (0, 2, 2), (0, 2, 2)),
]
