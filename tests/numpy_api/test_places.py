"""np.nonzero and np.where of unknown conditions: as indices and in reductions; np.roll."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.numpy_api.arrays import CUBE, F64, ROW
from tests.numpy_api.compare import check_writes
from tracejit.errors import ConcretizationError, DynamicIndexError

Call = Callable[..., Any]


def stored(np: Any, x: Any) -> Any:
    y = x.copy()
    y[np.where(y > 1)] = 1
    y[np.nonzero(y < 0)] += 3
    y[(y > 2).nonzero()] *= 2
    return y


def by_two_vectors(np: Any, x: Any) -> Any:
    y = x.copy()
    rows, columns = np.nonzero(x > 0)
    y[rows, columns] = x[rows, columns] ** 2
    return y, x[rows, columns].sum(), rows.max(), (columns + 1).sum(), rows.size


def rows_of(np: Any, x: Any) -> Any:
    y = x.copy()
    places = np.flatnonzero(x[:, 0] > 0)
    y[places] = 0
    y[places, 1:] += 1
    return y, x[places].mean(0), places.size, places[0], places[-1]


def of_flat(np: Any, x: Any) -> Any:
    y = x.copy()
    y.flat[np.flatnonzero(x > 0.5)] = -1
    return y, np.where(x.ravel() > 0)[0][0]


@pytest.mark.parametrize("function", [stored, by_two_vectors, rows_of, of_flat])
def test_places_of_an_unknown_condition(function: Call) -> None:
    check_writes(function, F64)


def test_places_in_a_cube_and_a_vector() -> None:
    check_writes(stored, CUBE)
    check_writes(stored, ROW)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda np, x: np.nonzero(x), "np.nonzero: the result's size depends on argument x"),
        (lambda np, x: len(np.nonzero(x)[0]), "len of np.nonzero"),
        (lambda np, x: x[np.nonzero(x)[0]], "index by some of the vectors of np.nonzero"),
        (lambda np, x: x[np.nonzero(x)[0], np.nonzero(x > 1)[1]], "vectors of several masks"),
        (lambda np, x: np.nonzero(x)[0][2], "index of np.nonzero"),
        (lambda np, x: np.argwhere(x), "argwhere: the result's size depends on"),
    ],
)
def test_what_places_cannot(function: Call, text: str) -> None:
    with pytest.raises(ConcretizationError, match=text):
        tj.jit(lambda x: function(tj.numpy, x))(F64)


def test_sliding_windows() -> None:
    def function(np: Any, x: Any) -> Any:
        y = x.copy()
        windows = np.lib.stride_tricks.sliding_window_view
        seen = windows(y, 2, 1)
        y[0, 0] = 9
        return seen, windows(y, (2, 3)), windows(y, (2, 2), axis=(-1, 1)), windows(y[0], 4).sum(-1)

    expected = function(np, F64)
    for got, wanted in zip(tj.jit(lambda x: function(np, x))(F64), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda w, x: w(x, 9, 0), "is larger than the array"),
        (lambda w, x: w(x, -1, 0), "negative size -1 of a window"),
        (lambda w, x: w(x, (1, 2), 0), "2 sizes of a window for 1 axes"),
        (lambda w, x: w(x, 2, 0).fill(1), "sliding windows share elements and are read-only"),
    ],
)
def test_windows_that_numpy_refuses(function: Call, text: str) -> None:
    windows = np.lib.stride_tricks.sliding_window_view
    with pytest.raises(ValueError, match=r"."):
        function(windows, F64.copy())
    with pytest.raises(ValueError, match=text):
        tj.jit(lambda x: function(windows, x))(F64)


def test_numbers_made_by_their_class() -> None:
    def function(x: Any, k: Any) -> Any:
        assert isinstance(np.float64(k), np.float64)
        assert np.float64 == x.dtype
        assert np.float32.__name__ == "float32"
        assert np.issubdtype(np.float32, np.floating)
        return (
            np.float32(x), np.float64(k), np.bool_(x), np.int8(k) * x.astype(np.int8),
            np.zeros(2, np.float32), np.float32(0.1) * x[0], np.complex64(k),
        )  # fmt: skip

    expected = function(F64, 3)
    for got, wanted in zip(tj.jit(function)(F64, 3), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)
        assert got.dtype == wanted.dtype
        assert isinstance(got, np.ndarray) == isinstance(wanted, np.ndarray)


def test_iteration_over_elements() -> None:
    def function(x: Any) -> Any:
        y = x.copy()
        for element in np.nditer(y, op_flags=["readwrite"]):
            element[...] = 2 * element  # type: ignore[index]
        pairs = [a * b for a, b in np.nditer([x, x[0]])]
        together = np.broadcast(x, x[0])
        assert together.shape == x.shape
        return y, pairs, np.stack([a + b for a, b in together])

    expected = function(F64)
    got = tj.jit(function)(F64)
    for one, other in zip(tj.tree.leaves(got), tj.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(one, other)
    for wrong, text in (
        (lambda x: np.nditer(x, ["multi_index"]), "of traced arrays only without flags"),
        (lambda x: np.nditer([x, x], [], ["readwrite"]), "only one traced array can be written"),
    ):
        with pytest.raises(NotImplementedError, match=text):
            tj.jit(wrong)(F64)
    with pytest.raises(NotImplementedError, match="write to the array itself"):
        tj.jit(lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, 0, writeable=True))(F64)


def test_bincount_of_unknown_numbers() -> None:
    """``minlength`` is the length; what is beyond it is an error under check=True."""
    x, weights = np.array([0, 1, 3, 3]), np.array([0.5, 1.0, 2.0, 4.0])
    function = tj.jit(lambda x, w: (np.bincount(x, minlength=5), np.bincount(x, w, minlength=5)))
    counts, sums = function(x, weights)
    np.testing.assert_array_equal(counts, np.bincount(x, minlength=5))
    np.testing.assert_array_equal(sums, np.bincount(x, weights, minlength=5))
    checked = tj.jit(lambda x: np.bincount(x, minlength=4), check=True)
    np.testing.assert_array_equal(checked(x), [1, 1, 0, 2])
    with pytest.raises(DynamicIndexError, match="index 4 is out of bounds"):
        checked(x + 1)
    with pytest.raises(DynamicIndexError, match="index 4 is out of bounds"):
        checked(x - 1)
    np.testing.assert_array_equal(
        tj.jit(lambda x: np.bincount(x, minlength=4))(x - 1), [1, 0, 2, 0]
    )
    with pytest.raises(ConcretizationError, match="pass minlength="):
        tj.jit(np.bincount)(x)


def test_roll_of_a_large_array_is_traced_without_its_indices() -> None:
    def rolled() -> Any:
        return np.roll(tj.numpy.zeros(2**31 + 5, np.int8), 7)

    tracemalloc.start()
    try:
        module = tj.jit(rolled).lower().module
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 50_000_000
    assert module.entry.root.array_shape.dimensions == (2**31 + 5,)
    assert "concatenate" in str(module)
