"""What the functions of ``np.linalg`` share: matrices in a type that LAPACK knows."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tracejit.errors import ElementTypeError, MatrixError
from tracejit.numpy.manipulation import matrix_transpose
from tracejit.numpy.selecting import where
from tracejit.shapes import ElementType
from tracejit.trace.convert import operand
from tracejit.trace.promotion import common_element_type
from tracejit.trace.public import implements
from tracejit.trace.tracer import Tracer, lift

linear = functools.partial(implements, raises=True)


def common(function: str, *values: Any) -> list[Tracer]:
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


def matrices_of(function: str, a: Any, square: bool = False) -> Tracer:
    """The array of at least two dimensions, square ones last if ``square``."""
    (array,) = common(function, a)
    require_matrices(function, array, square)
    return array


def require_matrices(function: str, array: Tracer, square: bool) -> None:
    if array.ndim < 2:
        raise MatrixError(
            f"{function}: {array.ndim}-dimensional array given; the array must be at least "
            f"two-dimensional"
        )
    if square and array.shape[-1] != array.shape[-2]:
        raise MatrixError(
            f"{function}: last 2 dimensions of the array must be square, not {array.shape}"
        )


def hermitian_of(a: Tracer) -> Tracer:
    """Hermitian matrices from their lower triangles."""
    size = a.shape[-1]
    below = np.tril(np.ones((size, size), bool), -1)
    adjoint = matrix_transpose(a.conj())
    whole = where(below, a, adjoint)
    made: Tracer = where(np.eye(size, dtype=bool), a.real, whole)
    return made


def epsilon_of(array: Tracer) -> float:
    return float(np.finfo(array.real.dtype).eps)
