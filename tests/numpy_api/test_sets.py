"""Results whose size depends on elements: fixed by size=, known, or refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.numpy_api.compare import same
from tracejit import numpy as tnp
from tracejit.errors import ConcretizationError

RNG = np.random.default_rng(1)
VECTORS = {
    "integers": RNG.integers(0, 6, 20),
    "NaN": np.array([np.nan, 1, 2, 1, np.nan]),
    "a matrix": RNG.integers(0, 3, (4, 3)),
    "nothing": np.zeros(0),
    "complex": RNG.integers(0, 2, 9) + 1j * RNG.integers(0, 2, 9),
}


@pytest.mark.parametrize("name", VECTORS)
@pytest.mark.parametrize("more", [-2, 0, 3])
def test_unique_of_a_fixed_size(name: str, more: int) -> None:
    x = VECTORS[name]
    expected = np.unique(x, True, True, True)
    count = len(expected[0])
    size = max(count + more, 0)
    made = tj.jit(lambda x: tnp.unique(x, True, True, True, size=size, fill_value=9))(x)
    kept = min(size, count)
    for place, (one, other) in enumerate(zip(made, expected, strict=True)):
        if place == 2:
            np.testing.assert_array_equal(one, other)
            continue
        assert len(one) == size
        np.testing.assert_array_equal(one[:kept], other[:kept])
    assert (made[0][kept:] == 9).all()
    assert (made[3][kept:] == 0).all()


def test_unique_rows() -> None:
    x = RNG.integers(0, 2, (7, 3))
    expected = np.unique(x, True, True, True, axis=0)
    size = len(expected[0])
    made = tj.jit(lambda x: tnp.unique(x, True, True, True, axis=0, size=size))(x)
    same(made, expected)


@pytest.mark.parametrize("name", ["union1d", "intersect1d", "setdiff1d", "setxor1d"])
def test_sets_of_a_fixed_size(name: str) -> None:
    a, b = RNG.integers(0, 9, 15), RNG.integers(3, 12, 25)
    expected = getattr(np, name)(a, b)
    function = getattr(tnp, name)
    made = tj.jit(lambda a, b: function(a, b, size=len(expected) + 2, fill_value=-7))(a, b)
    same(made, np.append(expected, [-7, -7]))
    same(function(a, b), expected)
    same(tj.jit(lambda a, b: function(a, b, size=1))(a, b), expected[:1])


def test_where_common_elements_stand() -> None:
    a, b = np.array([4, 1, 4, 9, 7]), np.array([7, 4, 2, 4])
    made = tj.jit(lambda a, b: tnp.intersect1d(a, b, return_indices=True, size=2))(a, b)
    same(made, np.intersect1d(a, b, return_indices=True))


def test_places_of_a_fixed_size() -> None:
    x = np.array([[0, 3, 0], [5, 0, 6]])
    rows, columns = tj.jit(lambda x: tnp.nonzero(x, size=4, fill_value=-1))(x)
    same((rows, columns), (np.array([0, 1, 1, -1]), np.array([1, 0, 2, -1])))
    same(tj.jit(lambda x: tnp.argwhere(x, size=2))(x), np.array([[0, 1], [1, 0]]))
    same(tj.jit(lambda x: tnp.flatnonzero(x, size=3))(x), np.array([1, 3, 5]))
    made = tj.jit(lambda x: tnp.extract(x > 3, x, size=3, fill_value=8))(x)
    same(made, np.array([5, 6, 8]))
    made = tj.jit(lambda x: tnp.compress(x[0] > 1, x, axis=1, size=2))(x)
    same(made, np.array([[3, 0], [0, 0]]))
    counts = tj.jit(lambda x: tnp.bincount(x, length=5))(np.array([1, 3, 3, 9]))
    same(counts, np.array([0, 1, 0, 2, 0]))


REFUSED: dict[str, Callable[[Any], Any]] = {
    "unique": lambda x: np.unique(x),
    "unique_all": lambda x: np.unique_all(x),
    "union1d": lambda x: np.union1d(x, x),
    "setdiff1d": lambda x: np.setdiff1d(x, x),
    "nonzero": lambda x: np.nonzero(x),
    "argwhere": lambda x: np.argwhere(x),
    "extract": lambda x: np.extract(x > 0, x),
    "bincount": lambda x: np.bincount(x),
    "trim_zeros": lambda x: np.trim_zeros(x),
    "histogram": lambda x: np.histogram(x, "auto"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_unknown_sizes_are_refused(name: str) -> None:
    with pytest.raises(ConcretizationError, match=r"depends on .*unknown while tracing; .+"):
        tj.jit(REFUSED[name])(np.arange(4))


def test_derivatives_pass_through_known_sets() -> None:
    """Outside jit every element is known, and is read from the array."""

    def function(x: Any) -> Any:
        return (np.unique(x) * np.arange(1.0, 4.0)).sum() + np.extract(x > 1, x).sum()

    np.testing.assert_allclose(tj.grad(function)(np.array([3.0, 1.0, 2.0])), [4, 1, 3])
