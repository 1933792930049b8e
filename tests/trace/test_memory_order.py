"""The order in which elements lie in memory, where a function asks for it: NumPy judges."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracejit as tj
from tracejit.errors import UnsupportedError
from tracejit.trace.table import FUNCTIONS

Array = Any
Step = Callable[[Any, Array, Array], Array]

X = np.arange(24.0).reshape(2, 3, 4)
MATRIX = np.arange(12.0).reshape(3, 4)

# Each takes the array so far and the argument; those that change nothing asked for are views,
# copies in an order, and functions whose results lie as their operands do.
STEPS: dict[str, Step] = {
    "T": lambda np, v, x: v.T,
    "swapaxes": lambda np, v, x: np.swapaxes(v, 0, -1),
    "moveaxis": lambda np, v, x: np.moveaxis(v, 0, -1),
    "copy C": lambda np, v, x: v.copy(),
    "copy F": lambda np, v, x: v.copy("F"),
    "copy A": lambda np, v, x: v.copy("A"),
    "copy K": lambda np, v, x: np.copy(v),
    "array F": lambda np, v, x: np.array(v, order="F"),
    "contiguous": lambda np, v, x: np.ascontiguousarray(v),
    "by columns": lambda np, v, x: np.asfortranarray(v),
    "astype": lambda np, v, x: v.astype(np.float32).astype(np.float64),
    "add": lambda np, v, x: v + 1,
    "own transpose": lambda np, v, x: v + np.ones(v.shape[::-1]).T,
    "zeros F": lambda np, v, x: np.zeros(v.shape, order="F") + v,
    "zeros like": lambda np, v, x: np.zeros_like(v) + v * 0.5,
    "stretched": lambda np, v, x: v + np.arange(v.shape[-1]),
    "stretched up": lambda np, v, x: v[None] + np.zeros((2, *[1] * v.ndim)),
    "where": lambda np, v, x: np.where(v > 3, v, 0.5),
    "clip": lambda np, v, x: np.clip(v, 1, 20),
    "sort": lambda np, v, x: np.sort(v, 0),
    "round": lambda np, v, x: np.round(v, 1),
    "backwards": lambda np, v, x: v[::-1],
    "last backwards": lambda np, v, x: v[..., ::-1],
    "every second": lambda np, v, x: v[..., ::2],
    "without the first": lambda np, v, x: v[1:] if v.shape[0] > 1 else v,
    "new axis": lambda np, v, x: v[..., None],
    "reshape": lambda np, v, x: v.reshape(-1, v.shape[-1]),
    "reshape F": lambda np, v, x: v.reshape((v.shape[0], -1), order="F"),
    "taken": lambda np, v, x: v[np.array([0, -1, 0])],
    "taken last": lambda np, v, x: v[..., np.array([0, -1])],
    "taken with a mask": lambda np, v, x: v[:, np.arange(v.shape[1]) < 2] if v.ndim > 1 else v,
    "broadcast": lambda np, v, x: np.broadcast_to(v, (2, *v.shape)) if v.ndim < 3 else v,
    "product": lambda np, v, x: v @ np.ones((v.shape[-1], 2)) if v.ndim > 1 else v,
    "the argument": lambda np, v, x: x.T,
    "sum": lambda np, v, x: v + v.sum(0, keepdims=True),
}
ENDS: dict[str, Callable[[Any, Array], Array]] = {
    "ravel K": lambda np, v: v.ravel("K"),
    "ravel A": lambda np, v: np.ravel(v, "A"),
    "flatten K": lambda np, v: v.flatten("K"),
    "reshape A": lambda np, v: v.reshape(-1, order="A"),
    "copy K": lambda np, v: np.copy(v).ravel("K"),
    "add": lambda np, v: (v * 2).ravel("K"),
    "nditer": lambda np, v: np.array([one + 0 for one in np.nditer(v)]),
}


def interpreted(function: Callable[[Array], Array], x: np.ndarray) -> Any:
    return tj.interpret(tj.jit(function).lower(x).module, x)


@settings(deadline=None, max_examples=150, derandomize=True)
@given(
    st.booleans(),
    st.lists(st.sampled_from(sorted(STEPS)), max_size=4),
    st.sampled_from(sorted(ENDS)),
)
def test_chains(is_matrix: bool, steps: list[str], end: str) -> None:
    def function(x: Array) -> Array:
        namespace: Any = np if isinstance(x, np.ndarray) else tj.numpy
        v = x
        for name in steps:
            if v.ndim < 5:
                v = STEPS[name](namespace, v, x)
        return ENDS[end](namespace, v)

    x = MATRIX if is_matrix else X
    expected = function(x)
    try:
        made = interpreted(function, x)
    except UnsupportedError as refused:
        if "order" not in refused.message:
            raise
        return
    np.testing.assert_allclose(made, expected, rtol=1e-6)


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
}


@pytest.mark.parametrize("name", KNOWN)
def test_order_is_known(name: str) -> None:
    function = KNOWN[name]
    np.testing.assert_array_equal(interpreted(function, MATRIX), function(MATRIX))


UNKNOWN: dict[str, Callable[[Array], Array]] = {
    "cumsum": lambda x: np.cumsum(x.T, 0).ravel("K"),
    "concatenate": lambda x: np.concatenate([x.T, x.T]).reshape(-1, order="A"),
    "einsum": lambda x: np.einsum("ij,kj->ik", x, x).ravel("K"),
    "a loop": lambda x: tj.lax.fori_loop(0, 2, lambda i, v: v + 1, x.T + 1).ravel("K"),
    "in a loop": lambda x: tj.lax.fori_loop(
        0, 2, lambda i, v: (v + v.ravel("K")[0]).T.copy("K"), np.zeros((3, 3)) + x[:, :3]
    ),
    "strides": lambda x: np.cumsum(x.T, 0).strides[0] * x,
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown_order_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedError, match="order"):
        interpreted(UNKNOWN[name], MATRIX)


def test_views_and_copies_of_unknown_order() -> None:
    def read(x: Array) -> Array:
        v = np.cumsum(x.T, 0).reshape(-1)
        v[0] = 7
        return v

    def both(x: Array) -> Array:
        v = np.cumsum(x.T, 0)
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
    np.testing.assert_array_equal(compiled(MATRIX), function(MATRIX.copy()))
    with pytest.raises(UnsupportedError, match="row by row"):
        compiled(MATRIX.copy("F"))
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
