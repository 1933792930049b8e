"""``x.at[index]`` against JAX's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import tracejit as tj
from tracejit.errors import AttributeValueError

X = np.array([1.5, -2.0, 3.0, 0.5], np.float32)
TWICE = np.array([1, 3, 1])


@pytest.mark.parametrize(
    "update",
    [
        lambda x: x.at[1].set(5.0),
        lambda x: x.at[1:3].set(x[2:]),
        lambda x: x.at[TWICE].add(x[:3]),
        lambda x: x.at[TWICE].subtract(2.0),
        lambda x: x.at[TWICE].multiply(x[1:]),
        lambda x: x.at[TWICE].mul(3.0),
        lambda x: x.at[TWICE].divide(4.0),
        lambda x: x.at[::2].power(2.0),
        lambda x: x.at[TWICE].min(x[:3], mode="drop"),
        lambda x: x.at[TWICE].max(x[:3], unique_indices=False),
        lambda x: x.at[::2].apply(abs),
        lambda x: x.at[TWICE].get(),
        lambda x: x.reshape(2, 2).at[..., 0].add(x[:2], indices_are_sorted=True),
    ],
)
def test_updates_are_those_of_jax(update: Callable[[Any], Any]) -> None:
    expected = jax.jit(update)(X)
    np.testing.assert_allclose(tj.jit(update)(X), expected, rtol=1e-6)
    tj.check_grads(tj.jit(update), (X.astype(np.float64),), order=2)


def test_places_outside_are_left_out() -> None:
    made = tj.jit(lambda x, i: x.at[i].set(1.0, mode="drop"))(X, np.int32(4))
    np.testing.assert_array_equal(made, X)


def test_a_mask_says_where() -> None:
    made = tj.jit(lambda x: x.at[x > 0].set(0.0))(X)
    np.testing.assert_array_equal(made, np.where(X > 0, 0, X))


def test_the_array_itself_stays() -> None:
    x = X.copy()
    old, new = tj.jit(lambda x: (x, x.at[0].set(9)))(x)
    assert old[0] == 1.5
    assert new[0] == 9
    assert x[0] == 1.5


def test_other_modes_are_refused() -> None:
    with pytest.raises(AttributeValueError, match=r"at\[\].add: mode must be one of"):
        tj.jit(lambda x: x.at[0].add(1, mode="clip"))(X)
    with pytest.raises(AttributeValueError, match=r"at\[\].get: mode must be one of"):
        tj.jit(lambda x: x.at[0].get(mode="fill"))(X)
    with pytest.raises(AttributeValueError, match=r"at\[\].set: takes no argument 'wrap'"):
        tj.jit(lambda x: x.at[0].set(1, wrap=True))(X)
