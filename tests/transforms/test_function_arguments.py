"""What is no function, or no linear one, is refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracejit as tj


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: tj.vmap(f),
        lambda f: tj.checkpoint(f),
        lambda f: tj.linearize(f, 1.0),
        lambda f: tj.custom_vjp(f),
        lambda f: tj.hvp(f, (1.0,), (1.0,)),
    ],
)
def test_a_function_is_needed(transform: Any) -> None:
    with pytest.raises(tj.errors.ArgumentError, match=r"^a function is needed, not int"):
        transform(3)


def test_only_linear_functions_are_transposed() -> None:
    transposed = tj.linear_transpose(lambda x: 3 * x + np.sum(x), np.ones(2))
    np.testing.assert_array_equal(transposed(np.array([1.0, 2.0]))[0], [6.0, 9.0])
    with pytest.raises(tj.errors.DerivativeError, match=r"sin is not linear in its arguments"):
        tj.linear_transpose(np.sin, 1.0)(1.0)


def test_sizes_and_axes_are_integers() -> None:
    with pytest.raises(
        tj.errors.ArgumentError, match=r"^shape: a size must be an integer, not 'x'"
    ):
        tj.numpy.zeros(("x",))
    with pytest.raises(tj.errors.ArgumentError, match=r"^sum: axis must be an integer, not 1\.5"):
        tj.jit(lambda x: x.sum(axis=1.5))(np.ones((2, 2)))


def test_parameters_may_be_python_numbers() -> None:
    rule = tj.optim.sgd(0.1)
    updates, _ = rule.update({"w": 2.0}, rule.init({"w": 1.0}), {"w": 1.0})
    assert updates["w"] == -0.2
