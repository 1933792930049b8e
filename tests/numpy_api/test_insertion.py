"""`np.insert` and `np.delete` at places that are known while tracing, and at one that is not."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import tracejit as tj

X = np.arange(12.0).reshape(3, 4)
VALUES = (9.0, [1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0], np.ones((2, 3)), np.ones((3, 2)), [5.0])
PLACES = (0, 2, -1, -4, 13, [1], [0, 2], [-4], slice(0, 2), slice(1, 2), [2, 2])


@pytest.mark.parametrize("axis", [0, 1, None])
def test_places_and_values_mean_what_they_mean_in_numpy(axis: int | None) -> None:
    for values, place in product(VALUES, PLACES):

        def inserted(x: Any, values: Any = values, place: Any = place) -> Any:
            return np.insert(x, place, values, axis)

        try:
            expected = inserted(X)
        except (ValueError, IndexError):
            with pytest.raises((ValueError, IndexError), match=r"^insert: "):
                tj.jit(inserted).lower(X)
            continue
        np.testing.assert_array_equal(tj.interpret(tj.jit(inserted).lower(X).module, X), expected)


@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("place", [0, 2, -1])
def test_one_place_may_be_unknown(place: int, axis: int | None) -> None:
    delete = tj.jit(lambda x, i: np.delete(x, i, axis))
    np.testing.assert_array_equal(delete(X, place), np.delete(X, place, axis))
    insert = tj.jit(lambda x, i: np.insert(x, i, 9.0, axis))
    np.testing.assert_array_equal(insert(X, place), np.insert(X, place, 9.0, axis))


@pytest.mark.parametrize("function", [np.delete, lambda x, i: np.insert(x, i, 9.0)])
def test_several_unknown_places_are_refused(function: Any) -> None:
    with pytest.raises(tj.errors.ConcretizationError, match="at a single place"):
        tj.jit(function)(X, np.array([0, 2]))
    with pytest.raises(tj.errors.ElementTypeError, match="a place must be an integer, not float64"):
        tj.jit(function)(X, 1.5)
