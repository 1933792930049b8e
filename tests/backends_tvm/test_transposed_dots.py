"""Products whose transpose alone is used are computed transposed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracejit as tj


def optimised(function: Any, *arguments: np.ndarray) -> str:
    text: str = tj.jit(function).lower(*arguments).as_text(stage="optimized")
    return text


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def test_the_gradient_of_weights_is_not_transposed() -> None:
    x, w = numbers(5, 3), numbers(3, 4)
    gradient = tj.grad(lambda w: tj.numpy.sum(tj.numpy.sin(x @ w)))
    assert " transpose(" not in optimised(gradient, w)
    np.testing.assert_allclose(tj.jit(gradient)(w), x.T @ np.cos(x @ w), 1e-4)


@pytest.mark.parametrize(
    ("subscripts", "left", "right"),
    [
        ("ij,jk->ki", (5, 3), (3, 4)),
        ("bij,bjk->bki", (2, 5, 3), (2, 3, 4)),
        ("aij,kaj->akji", (2, 5, 3), (4, 2, 3)),
        ("abj,j->ba", (2, 5, 3), (3,)),
        ("ijk,kl->lij", (2, 5, 3), (3, 4)),
    ],
)
def test_sides_are_swapped(subscripts: str, left: Any, right: Any) -> None:
    a, b = numbers(*left), numbers(*right)
    made = tj.jit(lambda a, b: tj.numpy.einsum(subscripts, a, b))(a, b)
    np.testing.assert_allclose(made, np.einsum(subscripts, a, b), 1e-4, 1e-5)


def test_a_product_that_is_read_as_well_is_computed_once() -> None:
    def both(a: Any, b: Any) -> Any:
        product = a @ b
        return product, product.T

    text = optimised(both, numbers(5, 3), numbers(3, 4))
    assert text.count(" dot(") == 1
    assert " transpose(" in text
