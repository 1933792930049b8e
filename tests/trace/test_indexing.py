"""Brackets on traced arrays, read and written, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import hypothesis.extra.numpy as numpy_strategies
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracejit as tj
from tests.numpy_api.compare import check, check_writes
from tracejit.errors import ArgumentError, ConcretizationError, DimensionError, StaticIndexError

X = np.arange(60.0).reshape(3, 4, 5)

INDICES: dict[str, Any] = {
    "0": 0,
    "-1": -1,
    "1:": np.s_[1:],
    "::2": np.s_[::2],
    "::-1": np.s_[::-1],
    "...,0": np.s_[..., 0],
    "None,1": np.s_[None, 1],
    "1,2": (1, 2),
    "1,2,3": (1, 2, 3),
    "...": ...,
    "()": (),
    "2:0:-1,::-2": np.s_[2:0:-1, ::-2],
    "1:1": np.s_[1:1],
    "5:": np.s_[5:],
    "None,...,None,0": np.s_[None, ..., None, 0],
    ":,:,-3:": np.s_[:, :, -3:],
    "int64": np.int64(1),
    "rank 0": np.array(1),
    "list": [0, 2],
    "list of lists": [[0, 1], [2, 0]],
    "two lists": ([0, 1], [2, 3]),
    "lists apart": np.s_[[0, 1], :, [2, 3]],
    "lists behind": np.s_[:, [0, 1], [2, 3]],
    "integer and list apart": np.s_[0, :, [1, 2]],
    "integer and list": np.s_[:, 0, [1, 2]],
    "slices and list": np.s_[1:, [3, 1]],
    "list and slice": np.s_[[0, 1], 1:3, [2, 3]],
    "reversed and list": np.s_[::-1, [0, 2]],
    "None and list": np.s_[:, None, [0, 1]],
    "list, None, list": np.s_[[0, 1], None, [2, 3]],
    "list and None behind": np.s_[..., [0, 1], None],
    "None in front": np.s_[None, [0, 1], [2, 3]],
    "list, ..., list": np.s_[[1], ..., [2]],
    "stretched": ([[0], [2]], [1, 3]),
    "integer, ..., list": np.s_[1, ..., [0, 3]],
    "empty list": [],
    "mask of rows": [True, False, True],
    "mask": X % 3 == 0,
    "mask and integer": (np.array([True, False, True]), 1),
    "mask behind": np.s_[:, np.array([True, False, True, False])],
    "mask of two": np.s_[0, np.ones((4, 5), bool)],
    "mask at the end": np.s_[..., np.array([1, 0, 1, 0, 0], bool)],
    "True": True,
    "False": False,
}


@pytest.mark.parametrize("name", INDICES)
def test_known_index(name: str) -> None:
    index = INDICES[name]

    def assign(np: Any, x: Any) -> Any:
        y = np.array(x)
        y[index] = 7.0
        z = np.array(x)
        z[index] = x[index] * 2 + 1
        z[index] += x[index]
        return y, z

    check(lambda np, x: x[index], X)
    check_writes(assign, X)


def unknown(np: Any, x: Any, i: Any) -> Any:
    """Reads and writes with an index that is an argument."""
    y = np.array(x)
    y[i] = 3.0
    y[i, 1] += 1
    y[:, i] *= 2
    y[::2, i] = 9
    y.T[i] = -1
    y[i] = x[i] * 2
    return y, x[i], x[1:, i], x[..., i], x[i, i], x[i, [0, 1]], x[::-1, i, 1:3], x[i, :, i]


@pytest.mark.parametrize("index", [0, 2, -1, -3])
def test_unknown_integer(index: int) -> None:
    for kind in (np.int64, np.int32, np.int8):
        check_writes(unknown, X, kind(index))
    if index >= 0:
        check_writes(unknown, X, np.uint8(index))


def test_unknown_integers() -> None:
    check_writes(lambda np, x, i: (x[i], x[:, i], x[i, :, i]), X, np.array([2, 0, -1]))
    check_writes(lambda np, x, i: x[:, i], X, np.array([[2, 0], [1, -1]]))


def test_out_of_range_when_it_runs() -> None:
    """Clamped when it reads, dropped when it writes."""

    @tj.jit
    def function(x: Any, i: Any) -> Any:
        y = np.array(x)
        y[i] = 100
        z = np.array(x)
        z[[i, 0]] = 50
        return x[i], x[np.array([i, 0])], y, z

    x = np.arange(4.0)
    for i, place in ((7, 3), (-9, 0)):
        one, two, y, z = function(x, i)
        assert (one, two.tolist()) == (place, [place, 0])
        np.testing.assert_array_equal(y, x)
        np.testing.assert_array_equal(z, [50, 1, 2, 3])


@pytest.mark.parametrize("place", [(0,), (-1,), np.s_[1:3, ::-1], np.s_[3:1:-1, 2], np.s_[:, 2]])
@pytest.mark.parametrize("index", [0, 2, -1, 3, 100])
def test_what_is_written_beside_an_unknown_integer(place: tuple[Any, ...], index: int) -> None:
    """It goes straight to its place: nothing of the size of the array is cut out and put back."""

    def write(x: Any, value: Any, i: Any) -> Any:
        x = x * 1
        at = (i, *place)
        x[at] = value
        return x

    value = X[0][place] + 100
    expected = X.copy()
    if index < len(X):
        expected[index][place] = value
    jitted = tj.jit(write)
    np.testing.assert_array_equal(jitted(X, value, index), expected)
    text = jitted.lower(X, value, index).as_text("hlo")
    assert " scatter(" in text
    assert " slice(" not in text
    assert " dynamic-update-slice(" not in text


def test_what_is_written_beside_an_unknown_integer_has_a_derivative() -> None:
    def loss(x: Any, i: Any) -> Any:
        y = x * 2
        y[i, 1:3] = x[0, :2] ** 2
        y[1, i] = x[0, 0] * 5
        return (y**3).sum()

    x = X[0] / 30
    step = 1e-6
    for at in np.ndindex(x.shape):
        change = np.zeros_like(x)
        change[at] = step
        slope = (loss(x + change, 2) - loss(x - change, 2)) / (2 * step)
        for found in (tj.grad(loss)(x, 2), tj.jit(tj.grad(loss))(x, 2)):
            np.testing.assert_allclose(found[at], slope, rtol=1e-4, atol=1e-6)


def test_unknown_mask_written() -> None:
    def function(np: Any, x: Any, m: Any, row: Any) -> Any:
        y = np.array(x)
        y[m] = 0
        y[:, row] = 1
        y[1, row] = 5
        y[m[:, 0]] = x[0]
        z = np.array(x)
        z[..., row] = z[:, :1] * 2
        return y, z

    x = np.arange(12.0).reshape(3, 4)
    check_writes(function, x, x % 5 == 0, np.array([True, False, False, True]))


@given(
    numpy_strategies.basic_indices((3, 4, 5), allow_newaxis=True, max_dims=6),
    numpy_strategies.basic_indices((3, 4, 5), allow_newaxis=True, max_dims=6),
)
def test_any_basic_index(index: Any, other: Any) -> None:
    def function(np: Any, x: Any) -> Any:
        y = np.array(x)
        part = y[index]
        y[other] = 5
        y[index] = -1.0
        return y, part, x[other]

    check_writes(function, X)


@given(
    st.sampled_from([(3,), (2, 3), (3, 4), (2, 3, 2)]).flatmap(
        lambda shape: st.tuples(
            st.just(shape),
            numpy_strategies.integer_array_indices(
                shape, result_shape=numpy_strategies.array_shapes(max_dims=2, max_side=3)
            ),
        )
    )
)
def test_any_index_of_arrays(case: tuple[tuple[int, ...], Any]) -> None:
    shape, index = case
    x = np.arange(float(np.prod(shape))).reshape(shape)

    def function(np: Any, x: Any) -> Any:
        y = np.array(x)
        y[index] = 9.0
        return y, x[index]

    check_writes(function, x)
    check_writes(lambda np, x, *i: x[i], x, *index)


def test_assignment_converts() -> None:
    def function(np: Any, x: Any) -> Any:
        y = np.array(x)
        y[0] = 2.75
        y[1] = True
        return y

    check_writes(function, np.arange(4))
    check_writes(function, np.arange(4, dtype=np.complex64))


@pytest.mark.parametrize(
    ("index", "error", "text"),
    [
        (3, StaticIndexError, "index 3 is out of bounds for axis 0 with size 3"),
        (-4, StaticIndexError, "index -4 is out of bounds for axis 0 with size 3"),
        ([0, 7], StaticIndexError, "index 7 is out of bounds for axis 0 with size 3"),
        ((0, 0, 0, 0), DimensionError, "array is 3-dimensional, but 4 were indexed"),
        ((..., 0, ...), StaticIndexError, "single ellipsis"),
        (1.5, StaticIndexError, "are indices, not float"),
        ("a", StaticIndexError, "are indices, not str"),
        (np.array([0.5]), StaticIndexError, "of integer or boolean type, not f64[1]"),
        (([0, 1], [0, 1, 2]), StaticIndexError, "could not be broadcast together"),
        (np.ones((2, 4), bool), StaticIndexError, "size of axis is 3"),
    ],
)
def test_refused(index: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=r".") as caught:
        tj.jit(lambda x: x[index])(X)
    assert text in str(caught.value)
    assert "test_indexing.py:" in str(caught.value)
    assert isinstance(caught.value, IndexError)


def test_shapes_that_do_not_fit() -> None:
    def function(x: Any) -> Any:
        y = np.array(x)
        y[0] = np.ones(3)
        return y

    with pytest.raises(ValueError, match=r"from shape \(3,\) into shape \(4, 5\)"):
        tj.jit(function)(X)


def test_unknown_mask_read() -> None:
    with pytest.raises(ConcretizationError, match=r"how many elements a mask selects .*argument x"):
        tj.jit(lambda x: x[x > 0])(X)


def test_unknown_slice() -> None:
    with pytest.raises(ConcretizationError, match=r"bounds of a slice .*lax\.dynamic_slice"):
        tj.jit(lambda x, n: x[:n])(X, 2)


def test_numbers_are_not_written_to() -> None:
    def function(x: Any) -> Any:
        y = x[0]
        y[()] = 3
        return y

    with pytest.raises(ArgumentError, match="number"):
        tj.jit(function)(np.arange(3.0))


def test_tuples_inside_an_index_are_sequences() -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    found = tj.jit(lambda x: (x[(0, 1, 0), (2, 2, 1)], x[(), ...], x[:, ()]))(x)
    for ours, numpys in zip(found, (x[(0, 1, 0), (2, 2, 1)], x[(), ...], x[:, ()]), strict=True):
        np.testing.assert_array_equal(ours, numpys, strict=True)


@pytest.mark.parametrize("index", [range(3), (slice(None), range(1, 3)), (range(0), 1)])
def test_ranges_are_lists_of_places(index: Any) -> None:
    check(lambda np, x: x[index], X)


def test_an_axis_without_elements_has_none_at_a_traced_place() -> None:
    with pytest.raises(StaticIndexError, match="axis 1 has size 0, no element to index"):
        tj.jit(lambda x, i: x[0, i])(np.zeros((2, 0)), 1)


def test_an_array_of_rank_0_is_an_index_that_copies() -> None:
    def function(np: Any, x: Any, i: Any) -> Any:
        rows = x.copy()
        row = rows[i]
        row[:] = 1
        return rows, row, x[..., i], x[0, 0, i], x[0, 0, ..., i], x[i, ..., 1]

    check_writes(function, X, np.array(1))
    check_writes(function, X, np.int64(1))


SLICED: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "sum": (lambda x, a, b: x[a:b].sum(), (1, 4)),
    "from the end": (lambda x, a, b: x[a:b].sum(), (-3, -1)),
    "empty": (lambda x, a, b: x[a:b].sum(), (4, 2)),
    "beyond": (lambda x, a, b: x[a:b].max(), (-20, 99)),
    "unsigned": (lambda x, a, b: x[a:b].mean(), (np.uint32(1), np.uint8(5))),
    "function": (lambda x, a, b: np.log(x[a:b] * 2).std(), (1, 4)),
    "product": (lambda x, a, b: x[a:b] @ (x[a:b] + 1), (1, 4)),
    "row": (lambda x, a, b: x.reshape(2, 3)[1, a:b].sum(), (1, 3)),
    "places": (lambda x, a, b: x[a:b] @ x[np.array([5, 0, 3, 3, 1, 2])[a:b]], (1, 4)),
}


@pytest.mark.parametrize("name", SLICED)
def test_slices_with_unknown_bounds(name: str) -> None:
    """A reduction, or a product with a slice of the same bounds, has a known shape."""
    function, bounds = SLICED[name]
    x = np.arange(6.0)
    x[0] = 0  # of which the logarithm has no derivative
    np.testing.assert_allclose(tj.jit(lambda *a: function(*a))(x, *bounds), function(x, *bounds))
    if name == "beyond":
        return
    checked = tj.jit(lambda *a: function(*a), check=True)
    np.testing.assert_allclose(checked(x, *bounds), function(x, *bounds))
    gradient = tj.jit(tj.grad(lambda *a: function(*a)))(x, *bounds)
    step = 1e-6 * np.eye(6)
    differences = [(function(x + h, *bounds) - function(x - h, *bounds)) / 2e-6 for h in step]
    np.testing.assert_allclose(gradient, differences, atol=1e-7)


def test_writes_to_slices_with_unknown_bounds() -> None:
    def function(x: Any, n: Any) -> Any:
        y = x.copy()
        y[:n] *= 2
        y[n:] = x[n:] + 1
        y[: n - 1] = 7
        return y

    x = np.arange(6.0)
    np.testing.assert_array_equal(tj.jit(function)(x, 3), function(x, 3))


@pytest.mark.parametrize(
    "function",
    [lambda x, n: x[:n], lambda x, n: len(x[:n]), lambda x, n: np.sort(x[:n])],
)
def test_slices_whose_shape_would_be_unknown(function: Any) -> None:
    with pytest.raises(ConcretizationError, match=r"bounds of a slice .*lax\.dynamic_slice"):
        tj.jit(lambda x, n: function(x, n))(np.arange(6.0), 3)


@pytest.mark.parametrize("start", [None, -20, 4])
@pytest.mark.parametrize("stop", [None, -2, 5, 40])
def test_slices_with_unknown_steps(start: int | None, stop: int | None) -> None:
    """The bounds are known or not, as the step is; both work in either direction."""

    def function(x: Any, start: Any, stop: Any, step: Any) -> Any:
        y = x.copy()
        y[start:stop:step] = 9
        return y, x[start:stop:step].sum(), x[start:stop:step].size

    x = np.arange(11.0)
    bounds = start, stop
    by_step = tj.jit(lambda x, step: function(x, *bounds, step))
    for step in (2, 20, -1, -3):
        wanted = function(x, *bounds, step)
        for got in (by_step(x, step), tj.jit(partial(function, step=step))(x, *bounds)):
            for one, other in zip(got, wanted, strict=True):
                np.testing.assert_array_equal(one, other)
    assert by_step(x, 0)[2] == 0


def test_the_sieve_of_eratosthenes() -> None:
    def sieve(is_prime: Any, n: Any) -> Any:
        i = 2
        while i * i < n:
            if is_prime[i]:
                is_prime[i * i :: i] = False
            i += 1
        return np.flatnonzero(is_prime).sum()

    fresh = np.arange(100) > 1
    got = tj.jit(lambda x, n: sieve(x.copy(), n), autograph=True)(fresh, 100)
    assert got == sieve(fresh.copy(), 100) == 1060


def test_roll_by_a_list_of_traced_numbers() -> None:
    x = np.arange(6.0)
    np.testing.assert_array_equal(tj.jit(lambda x, n: np.roll(x, [n], 0))(x, 2), np.roll(x, 2))


def test_slice_bounds_that_are_no_integers() -> None:
    with pytest.raises(StaticIndexError, match="slice: bounds must be integers, not f64"):
        tj.jit(lambda x, n: x[:n].sum())(np.arange(6.0), 2.5)


def test_a_mask_over_what_a_mask_selects() -> None:
    """Points that are dropped step by step, as programs over a grid drop those that diverged."""

    def dropped(x: np.ndarray, y: np.ndarray) -> Any:
        m = x > 0
        x, y = x[m], y[m]
        k = x * y < 0.5
        x, y = x[k], y[k]
        return x @ y, x[y > 0.1].sum(), y[y > 0.1].size, np.linalg.norm(x)

    x, y = np.random.default_rng(0).normal(size=(2, 50))
    for expected, found in zip(dropped(x, y), tj.jit(dropped)(x, y), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    with pytest.raises(tj.errors.ConcretizationError, match="how many elements a mask selects"):
        tj.jit(lambda x, y: x[x > 0][y > 0])(x, y)
