"""Keywords that NumPy's products have as generalised ufuncs: axes, axis, keepdims, dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

import tracejit as tj
from tracejit.errors import AttributeValueError

np: Any = numpy  # NumPy's stubs take lists of axes for some products only
A = np.arange(24.0).reshape(2, 3, 4)
B = np.arange(24.0).reshape(2, 4, 3) - 5
V, W = np.arange(3.0), np.arange(4.0)
Z = A + 1j * A[::-1]


@pytest.mark.parametrize(
    ("product", "operands"),
    [
        (lambda a, b: np.matmul(a, b, axes=[(1, 2), (1, 2), (1, 2)]), (A, B)),
        (lambda a, b: np.matmul(a, b, axes=[(2, 1), (2, 1), (0, 1)]), (A, B)),
        (lambda a, b: np.matmul(a, b, dtype=np.float32, casting="same_kind"), (A, B)),
        (lambda a, b: np.vecdot(a, b, axis=0), (A, A)),
        (lambda a, b: np.vecdot(a, b, keepdims=True), (Z, Z)),
        (lambda a, b: np.vecdot(a, b, axis=1, keepdims=True), (A, A)),
        (lambda a, b: np.vecdot(a, b, axes=[0, 0, ()]), (A, A)),
        (lambda a, b: np.vecdot(a, b, axes=[0, 0]), (Z, Z)),
        (lambda a, b: np.vecdot(a, b, dtype=np.float32), (A, A)),
        (lambda a, b: np.matvec(a, b, axes=[(2, 1), 0, -1]), (A, V)),
        (lambda a, b: np.vecmat(a, b, axes=[0, (2, 1), 0]), (V, B)),
        (lambda a, b: np.vecmat(a, b, dtype=np.float32), (W, B)),
    ],
)
def test_keywords(product: Callable[..., Any], operands: tuple[Any, ...]) -> None:
    made, expected = np.asarray(tj.jit(product)(*operands)), product(*operands)
    np.testing.assert_allclose(made, expected)
    assert made.dtype == expected.dtype
    assert made.shape == expected.shape


def test_axes_that_do_not_fit() -> None:
    with pytest.raises(AttributeValueError, match=r"axes= needs 2, 2 and 2 dimensions of lhs"):
        tj.jit(lambda a, b: np.matmul(a, b, axes=[0, 1, 2]))(A, B)
    with pytest.raises(AttributeValueError, match="axis= and axes= exclude each other"):
        tj.jit(lambda a, b: np.vecdot(a, b, axis=0, axes=[0, 0, ()]))(A, A)
    with pytest.raises(AttributeValueError, match="need one core dimension, as in vecdot"):
        tj.numpy.matmul(A, B, keepdims=True)
