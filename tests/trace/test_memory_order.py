"""The order in which elements lie in memory, where a function asks for it: NumPy judges."""

from __future__ import annotations

import inspect
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.fuzz.memory_orders import MATRIX, X, interpreted, judged
from tracejit.errors import UnsupportedError
from tracejit.trace.table import FUNCTIONS

Array = Any


@pytest.mark.parametrize("first", range(0, 240, 40))
def test_chains(first: int) -> None:
    found = Counter(judged(seed) for seed in range(first, first + 40))
    assert found["right"] > 25


KNOWN: dict[str, Callable[[Array], Array]] = {
    "a copy of the transpose": lambda x: np.copy(x.T).ravel("K"),
    "a copy of a copy": lambda x: x.T.copy("K").ravel("K"),
    "a copy by columns": lambda x: x.copy("F").ravel("K"),
    "a sum": lambda x: (x.T + 1).ravel("K"),
    "chosen columns": lambda x: x[:, [0, 2, 1]].ravel("K"),
    "like another": lambda x: (np.zeros_like(x.T) + x.T).ravel("K"),
    "in any order": lambda x: (x.T * 2).reshape(-1, order="A"),
    "a product": lambda x: (x.T @ x).ravel("K"),
    "by columns from the start": lambda x: (np.zeros((3, 4), order="F") + x).ravel("K"),
    "a diagonal": lambda x: np.stack([x, x])[:, :3, :3].diagonal(0, 1, 2).ravel("K"),
    "cumsum": lambda x: np.cumsum(x.T, 0).ravel("K"),
    "concatenate": lambda x: np.concatenate([x.T, x.T + 1], 1).ravel("K"),
    "pad": lambda x: np.pad(x.T, 1).ravel("K"),
    "repeat": lambda x: np.repeat(x.T, 2, 1).ravel("K"),
}


@pytest.mark.parametrize("name", KNOWN)
def test_order_is_known(name: str) -> None:
    function = KNOWN[name]
    np.testing.assert_array_equal(interpreted(function, MATRIX), function(MATRIX))


UNKNOWN: dict[str, Callable[[Array], Array]] = {
    "stack": lambda x: np.stack([x.T, x.T]).ravel("K"),
    "concatenate": lambda x: np.concatenate([x.T, x.T.copy()]).reshape(-1, order="A"),
    "einsum": lambda x: np.einsum("ij,kj->ik", x, x).ravel("K"),
    "a loop": lambda x: tj.lax.fori_loop(0, 2, lambda i, v: v + 1, x.T + 1).ravel("K"),
    "in a loop": lambda x: tj.lax.fori_loop(
        0, 2, lambda i, v: (v + v.ravel("K")[0]).T.copy("K"), np.zeros((3, 3)) + x[:, :3]
    ),
    "strides": lambda x: np.stack([x.T, x.T]).strides[0] * x,
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown_order_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedError, match="order"):
        interpreted(UNKNOWN[name], MATRIX)


def test_views_and_copies_of_unknown_order() -> None:
    def read(x: Array) -> Array:
        v = np.stack([x.T, x.T]).reshape(-1)
        v[0] = 7
        return v

    def both(x: Array) -> Array:
        v = np.stack([x.T, x.T])
        v.reshape(-1)[0] = 7
        return v

    np.testing.assert_array_equal(interpreted(read, MATRIX), read(MATRIX))
    with pytest.raises(tj.errors.ConcretizationError, match="order in memory"):
        interpreted(both, MATRIX)


def test_a_copy_that_would_be_a_view_of_another_argument() -> None:
    def function(x: Array) -> Array:
        v = x.T.reshape(-1)
        v[0] = 7
        return x + 0

    compiled = tj.jit(function)
    for given in (MATRIX, MATRIX.copy("F")):
        np.testing.assert_array_equal(compiled(given), function(given.copy("K")))
    only_read = tj.jit(lambda x: x.T.reshape(-1) + 1)
    np.testing.assert_array_equal(only_read(MATRIX.copy("F")), MATRIX.T.reshape(-1) + 1)


def test_functions_called_inside() -> None:
    def plain(v: Array) -> Array:
        return v.ravel("K")

    inner = tj.jit(plain)
    compiled = tj.jit(lambda x: [inner(v) for v in (x.T, x, np.cumsum(x, 0), x.T + 1)])
    x = MATRIX
    expected_all = [plain(v) for v in (x.T, x, np.cumsum(x, 0), x.T + 1)]
    for made, expected in zip(compiled(x), expected_all, strict=True):
        np.testing.assert_array_equal(made, expected)


def test_gradients_see_the_order_of_their_arguments() -> None:
    weights = np.arange(12.0)
    gradient = tj.grad(lambda x: (x.ravel("K") * weights).sum())
    np.testing.assert_array_equal(gradient(MATRIX.T), weights.reshape(3, 4).T)
    np.testing.assert_array_equal(gradient(MATRIX.T.copy()), weights.reshape(4, 3))


# Results that do not lie row by row though all arguments do have a rule of their own.
OTHER_ORDERS = {
    "argwhere": "by_columns",
    "asfortranarray": "its own",
    "einsum": "unknown",
    "histogramdd": "unknown",
    "nanpercentile": "unknown",
    "nanquantile": "unknown",
}


def test_all_other_functions_keep_rows() -> None:
    """Functions without a rule of their own give row-major arrays for row-major arguments."""
    matrix = MATRIX[:, :3] @ MATRIX[:, :3].T + np.eye(3)
    samples = [
        *((v,) for v in (X, MATRIX, matrix)),
        *((v, v) for v in (X, MATRIX, matrix)),
        (X, 1), (MATRIX, 1), (MATRIX, 0), (X, [1, 0], 1), (MATRIX, [1, 0, 2], 1), (X, 2, 1),
        ([X, X],), ([X, X], 1), ([MATRIX, MATRIX], -1), (X, (4, 6)), (MATRIX, (0, 1)),
        (X > 3, X, X), (matrix, np.ones(3)),
    ]  # fmt: skip
    for name in dir(tj.numpy):
        getattr(tj.numpy, name, None)
    for name in dir(tj.numpy.linalg):
        getattr(tj.numpy.linalg, name, None)
    found = set()
    for function in list(FUNCTIONS):
        module = getattr(function, "__module__", None) or ""
        name = getattr(function, "__name__", "")
        if name in ("copyto", "put", "shuffle") or not module.startswith("numpy"):
            continue
        for args in samples:
            given = [v.copy() if isinstance(v, np.ndarray) else v for v in args]
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    result: Any = function(*given)
            except Exception:
                continue
            for one in result if isinstance(result, tuple | list) else [result]:
                if isinstance(one, np.ndarray) and one.ndim > 1 and not one.flags.c_contiguous:
                    if one.base is None or (inspect.isbuiltin(function) and one.flags.owndata):
                        found.add(name)
    assert found <= set(OTHER_ORDERS), found
