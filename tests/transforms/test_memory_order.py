"""Arguments that are not row-major: taken as they lie where they are large, copied otherwise."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.errors import UnsupportedError
from tracejit.passes.input_layouts import inverse, order_of_array
from tracejit.transforms.jit.arguments import COPIED_BYTES

pytestmark = pytest.mark.usefixtures("machine_code")

RNG = np.random.default_rng(5)
SQUARE = RNG.standard_normal((160, 120))
CUBE = RNG.standard_normal((20, 30, 40))

Lay = Callable[[np.ndarray], np.ndarray]

WAYS: list[Lay] = [
    np.asfortranarray,
    lambda x: np.repeat(x, 2, axis=0)[::2],
    lambda x: x[::-1].copy()[::-1],
    lambda x: np.ascontiguousarray(np.swapaxes(x, 0, -1)).swapaxes(0, -1),
    lambda x: np.ascontiguousarray(np.moveaxis(x, 0, -1).copy()).transpose(
        x.ndim - 1, *range(x.ndim - 1)
    ),
    lambda x: x.astype(">f8").copy(order="F"),
]


@pytest.mark.parametrize("way", range(len(WAYS)))
@pytest.mark.parametrize("x", [SQUARE, CUBE, SQUARE[:3, :4], CUBE[:2, :1, :3]])
def test_values_do_not_depend_on_how_arguments_lie(x: np.ndarray, way: int) -> None:
    function = tj.jit(lambda x, y: (x * 2 + y, x.sum(axis=0)))
    given = WAYS[way](x)
    np.testing.assert_array_equal(given, x)
    before = given.copy()
    for arguments in [(given, x), (given, x), (x, given), (given, given), (x, x)]:
        added, summed = function(*arguments)
        np.testing.assert_array_equal(added, x * 2 + x)
        np.testing.assert_allclose(summed, x.sum(axis=0), rtol=1e-12, atol=1e-12)
        assert added.flags.c_contiguous
    np.testing.assert_array_equal(given, before)


def test_orders_of_arrays() -> None:
    cube = np.zeros((2, 3, 4))
    assert order_of_array(cube) is None
    assert order_of_array(np.asfortranarray(cube)) == (2, 1, 0)
    assert order_of_array(cube.transpose(1, 2, 0)) == (2, 0, 1)
    assert order_of_array(cube[:, ::2]) is None
    assert order_of_array(cube[::-1]) is None
    assert order_of_array(np.zeros((1, 5)).T) is None
    assert inverse((2, 0, 1)) == (1, 2, 0)


def versions(function: Any) -> int:
    return len(function._versions)


def test_large_arrays_are_compiled_for_as_they_lie() -> None:
    function = tj.jit(lambda x: np.exp(x))
    function(SQUARE)
    function(SQUARE.copy(order="F"))
    function(SQUARE.copy(order="F"))
    function(np.repeat(SQUARE, 2, axis=0)[::2])  # not dense: copied
    assert versions(function) == 2


def test_small_arrays_are_copied_instead() -> None:
    small = np.zeros((8, COPIED_BYTES // 64))
    function = tj.jit(lambda x: x + 1)
    function(small)
    function(small.copy(order="F"))
    assert versions(function) == 1


def test_trees_numbers_and_static_arguments_beside_them() -> None:
    function = tj.jit(lambda t, k, power: t["a"] ** power * k + t["b"], static_argnums=2)
    tree = {"a": SQUARE.copy(order="F"), "b": SQUARE}
    for scale in (2.0, 3.0):
        np.testing.assert_allclose(function(tree, scale, 2), SQUARE**2 * scale + SQUARE)
    turned = {"a": SQUARE, "b": SQUARE.copy(order="F")}
    np.testing.assert_allclose(function(turned, 2.0, 2), SQUARE**2 * 2 + SQUARE)


def test_matrix_products_and_gradients() -> None:
    w = RNG.standard_normal((120, 90)).copy(order="F")
    x = SQUARE.copy(order="F")
    np.testing.assert_allclose(tj.jit(lambda x, w: x @ w)(x, w), SQUARE @ w)
    grad = tj.jit(tj.grad(lambda x: (x * x).sum()))
    np.testing.assert_allclose(grad(x), 2 * SQUARE)


def test_lowered_functions_take_them_as_well() -> None:
    compiled = tj.jit(lambda x: x * 2).lower(SQUARE).compile()
    np.testing.assert_array_equal(compiled(SQUARE.copy(order="F")), SQUARE * 2)


MATRIX = np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.ravel("K"),
        lambda x: x.flatten("A"),
        lambda x: np.ravel(x + 1, order="K"),
        lambda x: x.reshape(-1, order="A"),
    ],
)
def test_the_order_of_memory_is_asked_for(function: Any) -> None:
    jitted = tj.jit(function)
    for given in (MATRIX, np.ascontiguousarray(MATRIX.T)):
        np.testing.assert_array_equal(jitted(given), function(given))
        turned = np.asfortranarray(given)
        np.testing.assert_array_equal(jitted(turned), function(turned))
        with pytest.raises(UnsupportedError, match="has gaps in memory, and the function asks"):
            jitted(gapped(given))
        np.testing.assert_array_equal(jitted(given), function(given))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: [2 * v for v in np.nditer(x.copy().T)],
        lambda x: x.copy().T.ravel("K"),
        lambda x: write(x.copy(), lambda y: y.reshape(-1), 7),
        lambda x: write(x.T.copy(), lambda y: y.ravel(), 7),
    ],
)
def test_the_order_of_a_copy_is_known(function: Any) -> None:
    for given in (MATRIX, np.asfortranarray(MATRIX)):
        np.testing.assert_array_equal(tj.jit(function)(given), function(given))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.copy("K").ravel("K"),
        lambda x: np.copy(x).ravel("K"),
        lambda x: copy.copy(x).ravel("K"),
        lambda x: np.reshape(x, -1, order="A", copy=True),
    ],
)
def test_the_order_of_a_copy_that_keeps_it_is_the_argument_s(function: Any) -> None:
    jitted = tj.jit(function)
    for given in (MATRIX, np.asfortranarray(MATRIX), MATRIX):
        np.testing.assert_array_equal(jitted(given), function(given))
    with pytest.raises(UnsupportedError, match="has gaps in memory"):
        jitted(gapped(MATRIX))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.roll(x, (), ()).ravel("K"),
        lambda x: np.require(x[:], requirements="O").ravel("K"),
    ],
)
def test_the_order_of_what_has_no_rule_is_not_known(function: Any) -> None:
    jitted = tj.jit(function)
    np.testing.assert_array_equal(jitted(MATRIX), function(MATRIX))
    with pytest.raises(UnsupportedError, match="is not known while tracing"):
        jitted(np.asfortranarray(MATRIX))


def gapped(array: Any) -> Any:
    """The same elements, with others between them."""
    return np.repeat(array, 2, 1)[:, ::2]


def write(array: Any, view: Any, value: float) -> Any:
    """The array after a write to the first element of a view of it."""
    view(array)[0] = value
    return array


def test_a_write_through_ravel_is_one_to_a_view_or_a_copy() -> None:
    def f(x: Any) -> Any:
        x.ravel()[0] = 7
        return x + 1

    jitted = tj.jit(f)
    for given in (MATRIX, np.asfortranarray(MATRIX)):
        np.testing.assert_array_equal(jitted(given), f(given.copy("K")))
    with pytest.raises(UnsupportedError, match="a write through ravel or reshape"):
        jitted(gapped(MATRIX))
