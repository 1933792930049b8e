"""Cholesky and TriangularSolve: what their shape rules refuse, and in which words."""

from __future__ import annotations

import pytest

from tests.evaluation import given
from tracejit import ops
from tracejit.errors import AttributeValueError, ElementTypeError, ShapeError


def test_cholesky_keeps_the_shape() -> None:
    assert str(ops.cholesky(given("c64[2,3,3]"), True).shape) == "c64[2,3,3]"


@pytest.mark.parametrize(
    ("a", "error", "message"),
    [
        ("s32[3,3]", ElementTypeError, r"cholesky: a s32\[3,3\] has element type s32"),
        ("f32[3]", ShapeError, r"cholesky: a must have rank 2 or more, not f32\[3\]"),
        ("f32[2,3]", ShapeError, r"last two dimensions of a must be equal; a f32\[2,3\]"),
    ],
)
def test_cholesky_refuses(a: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ops.cholesky(given(a), True)


def test_triangular_solve_has_the_shape_of_b() -> None:
    left = ops.triangular_solve(given("f32[2,3,3]"), given("f32[2,3,4]", 1))
    right = ops.triangular_solve(given("f32[3,3]"), given("f32[4,3]", 1), left_side=False)
    assert [str(left.shape), str(right.shape)] == ["f32[2,3,4]", "f32[4,3]"]


@pytest.mark.parametrize(
    ("a", "b", "left_side", "error", "message"),
    [
        ("f32[3,3]", "f64[3,2]", True, ElementTypeError, "element types must be equal"),
        ("pred[3,3]", "pred[3,2]", True, ElementTypeError, "element type pred"),
        ("f32[3,4]", "f32[3,2]", True, ShapeError, "last two dimensions of a must be equal"),
        ("f32[3,3]", "f32[3]", True, ShapeError, "the same batch dimensions"),
        ("f32[2,3,3]", "f32[1,3,2]", True, ShapeError, r"a f32\[2,3,3\], b f32\[1,3,2\]"),
        ("f32[3,3]", "f32[2,3]", True, ShapeError, r"dimension 0 of b .* dimension 0 is 2"),
        ("f32[3,3]", "f32[3,2]", False, ShapeError, r"dimension 1 of b .* dimension 1 is 2"),
    ],
)
def test_triangular_solve_refuses(
    a: str, b: str, left_side: bool, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        ops.triangular_solve(given(a), given(b, 1), left_side)


def test_transpose_must_be_known() -> None:
    with pytest.raises(AttributeValueError, match="transpose_a must be one of NO_TRANSPOSE"):
        ops.triangular_solve(given("f32[3,3]"), given("f32[3,2]", 1), transpose_a="CONJUGATE")
