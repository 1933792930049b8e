"""A traced value asked for a number says which argument made it unknown and what to write."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.spatial.distance

import tracejit as tj
from tracejit.errors import ConcretizationError, UnsupportedError

X = np.arange(1.0, 4.0)
TABLES = [X]


def refusal(function: Any, *args: Any) -> str:
    with pytest.raises(ConcretizationError) as caught:
        tj.jit(function)(*args)
    assert isinstance(caught.value, TypeError)
    return str(caught.value)


def branch(p: Any) -> Any:
    if p["w"][0] > 0:
        return p["w"]
    return -p["w"]


def test_if() -> None:
    text = refusal(branch, {"w": X})
    assert text.startswith(
        "bool: the value pred[] depends on argument p['w'] of branch, unknown while tracing; "
        "write jit(f, autograph=True), which records if, while, for, and, or, not and chained "
        "comparisons on traced values; without it if, and, or, not and chained comparisons "
        "need it now; write np.where(condition, a, b)"
    )
    assert text.endswith(f"(test_concretization.py:{branch.__code__.co_firstlineno + 1})")


def loop(x: Any, n: Any) -> Any:
    for _ in range(n):
        x = x * 2
    return x


def test_loop_over_a_traced_range() -> None:
    text = refusal(loop, X, 3)
    assert text.startswith(
        "index: the value s64[] depends on argument n of loop, unknown while tracing; write "
        "jit(f, autograph=True), which records if, while, for"
    )
    np.testing.assert_array_equal(tj.jit(loop, autograph=True)(X, 3), 8 * X)


@pytest.mark.parametrize(
    ("function", "start", "advice"),
    [
        (lambda x: 0 < x[0] < 2, "bool: the value pred[]", "np.where"),
        (lambda x: not x[0], "bool: the value f64[]", "np.logical_and"),
        (lambda x: float(x[0]), "float: the value f64[]", "np. functions"),
        (lambda x: int(x[0]), "int: the value f64[]", "astype(int)"),
        (lambda x: complex(x[0]), "complex: the value f64[]", "np. functions"),
        (lambda x: list(range(x[0].astype(int))), "index: the value s64[]", "known range"),
        (lambda x: np.zeros(x[0].astype(int)), "index: the value s64[]", "must be known"),
        (lambda x: [1, 2, 3][x[0].astype(int)], "index: the value s64[]", "np.asarray(table)"),
        (lambda x: x.tolist(), "tolist: the value f64[3]", "return it"),
        (lambda x: x[0].item(), "item: the value f64[]", "return it"),
        (lambda x: f"{x[0]:.3f}", "format: the value f64[]", "debug.print"),
        (lambda x: {x[0]: 1}, "hash: the value f64[]", "dictionary key"),
        (lambda x: pickle.dumps(x), "pickle: the value f64[3]", "pickle the result"),
        (lambda x: TABLES[0][x.astype(int)], "array: the value s64[3]", "np.asarray(table)[i]"),
        (lambda x: 5 in x, "bool: the value pred[]", "np.where"),
        (lambda x: np.arange(x[0]), "arange: the result's size depends on", "static_argnums"),
        (lambda x: np.nonzero(x), "index of np.nonzero: the result's size depends on", "np.where"),
    ],
)
def test_every_wish(function: Any, start: str, advice: str) -> None:
    text = refusal(function, X)
    assert text.startswith(start)
    assert "argument x of <lambda>" in text
    assert advice in text
    assert "test_concretization.py:" in text


def test_the_arguments_are_named() -> None:
    def function(a: Any, b: Any, *rest: Any, c: Any, **others: Any) -> Any:
        return bool(a[0] + rest[1] + c["k"][2] + others["d"])

    with pytest.raises(ConcretizationError) as caught:
        tj.jit(function)([1.0], 2.0, 3.0, 4.0, c={"k": (5, 6, 7)}, d=8)
    text = str(caught.value)
    assert "argument a[0] of function and argument rest[1] of function" in text
    assert "and argument c['k'][2] of function and 1 more" in text


def test_known_values_are_given() -> None:
    """What depends on no argument has a value, also when it was recorded."""

    def function(x: Any) -> Any:
        table = np.zeros(3)
        table[1] = 5
        assert table[1] == 5
        assert float(table.sum()) == 5.0
        assert int(np.arange(4)[2]) == 2
        assert list(np.arange(3)) == [0, 1, 2]
        assert f"{np.ones(2)[0]:.1f}" == "1.0"
        assert {np.arange(3)[1]: 2}
        assert 5 in table
        np.testing.assert_array_equal(np.asarray([1.0, 2.0]), [1, 2])
        shape = np.prod(x.shape)
        assert isinstance(shape, np.integer)
        total = x[0]
        for i in np.arange(2):
            total = total + i
        for n in range(np.arange(3)[2]):
            total = total + n
        return total + np.full(np.asarray(2), 1.0)

    np.testing.assert_array_equal(tj.jit(function)(X), [4, 4])


def test_outside_jit_arguments_of_grad_are_known() -> None:
    def function(x: Any, n: int) -> Any:
        y = x
        while y.sum() < 10:
            y = y * 2
        if x[0] > 0 and float(x[1]) > 0:
            y = y * 3
        return y.sum() * int(x[2]) if n else y.sum()

    np.testing.assert_array_equal(tj.grad(function)(X, 0), [6, 6, 6])
    inner = tj.grad(lambda x: tj.grad(function)(x, 0)[0] * x[0])
    np.testing.assert_array_equal(inner(X), [6, 0, 0])


def test_inside_jit_arguments_of_grad_are_not() -> None:
    """The argument named is that of the function that was compiled."""
    text = refusal(lambda q: tj.grad(lambda p: branch(p).sum())(q), {"w": X})
    assert "depends on argument q['w'] of <lambda>, unknown" in text


def test_copies_are_values() -> None:
    def function(x: Any) -> Any:
        y, z = copy.copy(x), copy.deepcopy(x)
        y[0] = 10
        z[1] = 20
        return x, y, z

    x, y, z = tj.jit(function)(X)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(y, [10, 2, 3])
    np.testing.assert_array_equal(z, [1, 20, 3])


def test_length_and_iteration() -> None:
    def function(x: Any) -> Any:
        first, *rest = x
        assert len(x) == 3
        with pytest.raises(TypeError, match="rank 0 has no length"):
            len(first)
        with pytest.raises(TypeError, match="iteration over an array of rank 0"):
            iter(first)
        return first + sum(rest)

    assert tj.jit(function)(X) == 6


def test_what_an_array_knows() -> None:
    def function(x: Any) -> Any:
        assert (x.shape, x.ndim, x.size, x.itemsize, x.nbytes) == ((2, 3), 2, 6, 4, 24)
        assert x.dtype == np.float32
        assert repr(x) == str(x) == "Tracer<f32[2,3]>"
        assert f"{x}" == "Tracer<f32[2,3]> (tracejit.debug.print('{}', x) prints the value)"
        assert np.shape(x) == (2, 3)
        assert np.ndim(x) == 2
        assert np.size(x, 1) == 3
        assert not np.iscomplexobj(x)
        assert (x == "text") is False
        return x

    tj.jit(function)(np.ones((2, 3), np.float32))


def test_functions_that_cannot_be_traced() -> None:
    with pytest.raises(NotImplementedError, match=r"np\.savetxt: cannot be traced; call it on"):
        tj.jit(lambda x: np.savetxt("x.txt", x))(X)
    known = tj.jit(lambda x: x * np.unique(np.array([1.0, 2.0, 1.0])).sum())
    np.testing.assert_array_equal(known(X), X * 3)
    with pytest.raises(NotImplementedError, match=r"np\.isnat: cannot be traced"):
        tj.jit(lambda x: np.isnat(x))(X)


def test_a_shape_may_be_assigned_to() -> None:
    def f(x: Any) -> Any:
        x.shape = (3, 2)
        return x

    assert tj.jit(f)(np.zeros(6)).shape == (3, 2)


def test_no_derivative_is_lost_without_a_word() -> None:
    """Outside jit values are known, but NumPy's own functions would make constants of them."""

    def root(x: Any) -> Any:
        return np.emath.sqrt(x).sum()

    with pytest.raises(UnsupportedError, match="sqrt: cannot be traced"):
        tj.grad(root)(np.arange(3.0))
    with pytest.raises(ConcretizationError, match="and its derivative would be lost; "):
        tj.grad(lambda x: scipy.spatial.distance.pdist(x[None]).sum())(np.arange(3.0))

    def printing(x: Any) -> Any:
        assert np.array2string(x) == "[0. 1. 2.]"
        return np.linalg.norm(tj.stop_gradient(x)) * x.sum()

    np.testing.assert_allclose(tj.grad(printing)(np.arange(3.0)), np.sqrt([5.0] * 3))
