"""`jit(f, check=True)`: mistakes that only values show, with the op and the user's line."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import tracejit as tj
from tracejit import lax
from tracejit.errors import (
    DynamicIndexError,
    IntegerDivisionError,
    IntegerOverflowError,
    NotFiniteError,
    SingularMatrixError,
)

X = np.arange(4.0)
HERE = r"\(test_check\.py:{}\)"


def checked(function: Any, *args: Any) -> Any:
    return tj.jit(function, check=True)(*args)


def line_of(text: str) -> int:
    """The line of this file that ends in the comment ``# text``."""
    lines = inspect.getsource(inspect.getmodule(line_of)).splitlines()  # type: ignore[arg-type]
    (found,) = (n for n, line in enumerate(lines, 1) if line.endswith(f"# {text}"))
    return found


@pytest.mark.parametrize(
    ("function", "index", "message"),
    [
        (lambda x, i: x[i], 4, "dynamic_slice: index 4 is out of bounds for dimension 0 of size 4"),
        (lambda x, i: x[i], -5, "dynamic_slice: index -1 is out of bounds for dimension 0"),
        (lambda x, i: x[i], np.array([0, 9]), "gather: index 9 is out of bounds for dimension 0"),
        (
            lambda x, i: x.reshape(2, 2)[:, i],
            np.array([0, 2]),
            "gather: index 2 is out of bounds for dimension 1 of size 2",
        ),
        (
            lambda x, i: lax.dynamic_slice(x, (i,), (3,)),
            2,
            "dynamic_slice: index 2 is out of bounds for dimension 0 of size 4, for a slice of 3",
        ),
        (
            lambda x, i: lax.dynamic_update_slice(x, np.ones(2), (i,)),
            3,
            "dynamic_update_slice: index 3 is out of bounds for dimension 0 of size 4, for a slice",
        ),
    ],
)
def test_indices_that_are_read(function: Any, index: Any, message: str) -> None:
    with pytest.raises(DynamicIndexError) as caught:
        checked(function, X, index)
    assert str(caught.value).startswith(message)
    assert "test_check.py:" in str(caught.value)
    assert isinstance(caught.value, IndexError)
    checked(function, X, np.zeros_like(index))


def test_indices_that_are_written() -> None:
    def store(x: Any, i: Any) -> Any:
        y = np.array(x)
        y[i] = 1
        return y

    def add(x: Any, i: Any) -> Any:
        y = np.array(x)
        np.add.at(y, i, 1)
        return y

    for function in (store, add):
        for index in (7, np.array([1, 7])):
            with pytest.raises(DynamicIndexError, match="index 7 is out of bounds for dimension 0"):
                checked(function, X, index)
        np.testing.assert_array_equal(checked(function, X, -1), function(X, -1))


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: a // b,
        lambda a, b: a % b,
        lambda a, b: np.fmod(a, b),
        lambda a, b: np.divmod(a, b)[0],
        lambda a, b: lax.div(a, b),
        lambda a, b: lax.rem(a, b),
    ],
)
def test_integer_division_by_zero(function: Any) -> None:
    a, b = np.array([4, 5]), np.array([2, 0])
    with pytest.raises(IntegerDivisionError, match=r"(div|rem): divides an integer by zero \(test"):
        checked(function, a, b)
    assert issubclass(IntegerDivisionError, ZeroDivisionError)
    np.testing.assert_array_equal(checked(function, a, b + 1), function(a, b + 1))
    guarded = checked(lambda a, b: np.where(b == 0, 0, function(a, np.maximum(b, 1))), a, b)
    np.testing.assert_array_equal(guarded, np.where(b == 0, 0, function(a, np.maximum(b, 1))))


def test_no_false_alarms() -> None:
    """Infinity that is written down, greatest common divisors, bits, and what was NaN before."""
    n = np.array([12, 0, 7])
    np.testing.assert_array_equal(checked(np.gcd, n, n[::-1].copy()), np.gcd(n, n[::-1]))
    np.testing.assert_array_equal(checked(np.lcm, n, n[::-1].copy()), np.lcm(n, n[::-1]))
    assert checked(np.max, X) == 3
    assert checked(lambda x: np.minimum(x, np.inf).sum(), X) == 6
    assert np.isnan(checked(lambda x: x.sum() * 2, np.array([1, np.nan])))
    np.testing.assert_array_equal(checked(np.spacing, X), np.spacing(X))
    assert checked(lambda x: x / np.float64(2), X)[1] == 0.5


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: np.log(x - 1), "log: makes NaN from finite operands"),
        (lambda x: 1 / x, "div: makes infinity from finite operands"),
        (lambda x: x * np.float64(1e308) * 10, "mul: makes infinity from finite operands"),
        (lambda x: x - np.where(x > 2, np.inf, x) * 0, "mul: makes NaN from operands with infin"),
        (lambda x: np.exp(x.astype(np.float32) * 100), "exp: makes infinity from finite"),
    ],
)
def test_numbers_that_are_not_finite(function: Any, message: str) -> None:
    with pytest.raises(NotFiniteError, match=message) as caught:
        checked(function, X)
    assert isinstance(caught.value, FloatingPointError)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda a: np.linalg.inv(a), "solve: makes NaN .*singular"),
        (lambda a: np.linalg.solve(a, a), "solve: makes NaN .*singular"),
        (lambda a: np.linalg.cholesky(-a), "cholesky: makes NaN .*not positive definite"),
        (lambda a: scipy.linalg.solve_triangular(a - a[0], a), "triangular_solve: makes "),
    ],
)
def test_matrices_for_which_numpy_raises(function: Any, message: str) -> None:
    singular = np.ones((2, 2))
    with pytest.raises(np.linalg.LinAlgError):
        function(singular)
    with pytest.raises(np.linalg.LinAlgError, match=message) as caught:
        checked(function, singular)
    assert type(caught.value) is SingularMatrixError
    assert np.isnan(tj.jit(lambda a: np.linalg.inv(a))(singular)).all()


def test_errstate_under_check() -> None:
    """What NumPy raises under errstate(all="raise") is raised, and an errstate changes nothing."""

    def function(x: Any) -> Any:
        with np.errstate(all="raise"):
            return np.log(x)

    with pytest.raises(FloatingPointError):
        function(np.float64(-1))
    with pytest.raises(FloatingPointError, match="log: makes NaN"):
        checked(function, np.float64(-1))


def in_while(x: Any) -> Any:
    return lax.while_loop(
        lambda s: s[0] < 4,
        lambda s: (s[0] + 1, np.log(s[1])),  # while
        (0, x),
    )


def in_scan(x: Any) -> Any:
    def step(carry: Any, row: Any) -> Any:
        carry = carry + np.sqrt(row - 2)  # scan
        return carry, carry

    return lax.scan(step, 0.0, x)


def in_cond(x: Any) -> Any:
    return lax.cond(
        x[1] > 0,
        lambda y: y / (y - y),  # cond
        lambda y: y,
        x,
    )


def in_call(x: Any) -> Any:
    @tj.jit
    def helper(y: Any) -> Any:
        return np.arccosh(y)  # call

    return helper(x)


@pytest.mark.parametrize("function", [in_while, in_scan, in_cond, in_call])
def test_inside_loops_branches_and_calls(function: Any) -> None:
    line = HERE.format(line_of(function.__name__.removeprefix("in_")))
    with pytest.raises(NotFiniteError, match=rf"makes (NaN|infinity) .*{line}"):
        checked(function, X)


def test_index_and_division_inside_a_loop() -> None:
    def gathers(x: Any) -> Any:
        return lax.fori_loop(0, 6, lambda i, s: s + x[i], 0.0)

    with pytest.raises(DynamicIndexError, match="dynamic_slice: index 4 is out of bounds"):
        checked(gathers, X)

    def divides(n: Any) -> Any:
        return lax.fori_loop(0, 6, lambda i, s: s + 10 // (n - i), 0)

    with pytest.raises(IntegerDivisionError, match="div: divides an integer by zero"):
        checked(divides, 3)
    assert checked(divides, 7) == sum(10 // (7 - i) for i in range(6))


def test_a_branch_that_is_not_taken_is_not_looked_at() -> None:
    def function(x: Any) -> Any:
        return lax.cond(x[0] > 0, lambda y: np.log(-y), lambda y: y + 1, x)

    np.testing.assert_array_equal(checked(function, X), X + 1)


def test_under_grad() -> None:
    """The derivative's own operations count as well: those of sqrt at 0."""

    def loss(x: Any) -> Any:
        return np.sqrt(x).sum()  # grad

    with pytest.raises(NotFiniteError, match=HERE.format(line_of("grad"))):
        checked(tj.grad(loss), X)
    np.testing.assert_allclose(checked(tj.grad(loss), X + 1), 0.5 / np.sqrt(X + 1))

    def picked(x: Any, i: Any) -> Any:
        return x[i] * x[1]

    with pytest.raises(DynamicIndexError, match="index 5 is out of bounds"):
        checked(tj.grad(picked), X, 5)
    np.testing.assert_array_equal(checked(tj.grad(picked), X, 2), [0, 2, 1, 0])


def test_under_vmap() -> None:
    with pytest.raises(DynamicIndexError, match="index 8 is out of bounds"):
        checked(tj.vmap(lambda i: X[i]), np.array([1, 8]))
    np.testing.assert_array_equal(checked(tj.vmap(lambda i: X[i]), np.array([1, 3])), [1, 3])


def factorial(n: int) -> int:
    made = 1
    while n > 1:
        made = made * n
        n = n - 1
    return made


@pytest.mark.filterwarnings("ignore:while. the integer made grows:RuntimeWarning")
def test_integers_that_leave_64_bits() -> None:
    compiled = tj.jit(factorial, autograph=True, check=True)
    assert compiled(20) == factorial(20)
    with pytest.raises(IntegerOverflowError, match="mul: the integer that it makes leaves 64 bits"):
        compiled(25)
    leaving: list[tuple[Callable[[Any], Any], int]] = [
        (lambda n: n + 1, 2**63 - 1),
        (lambda n: n - 2, -(2**63) + 1),
        (lambda n: -n, -(2**63)),
        (lambda n: n**3, 2**40),
        (lambda n: n << 60, 16),
        (lambda n: 1 << (n << 1), 40),
        (lambda n: abs(n), -(2**63)),
        (lambda n: sum([n, n, n]), 2**62),
        (lambda n: math.prod([n, n]), 2**32),
        (lambda n: n // -1, -(2**63)),
    ]
    for function, number in leaving:
        with pytest.raises(OverflowError):
            checked(function, number)
        assert checked(function, 5) == function(5)
    wrapping = np.full(2, 2**63 - 1)
    np.testing.assert_array_equal(checked(lambda x: x + 1, wrapping), wrapping + 1)
    assert checked(lambda n: n ** np.int64(3), np.int64(-1)) == -1


def test_floats_that_are_no_integer_of_64_bits() -> None:
    makers: list[Callable[[Any], Any]] = [int, round, math.floor, math.ceil, math.trunc]
    for make in makers:

        def whole(x: Any, make: Callable[[Any], Any] = make) -> Any:
            return make(x)

        compiled = tj.jit(whole, check=True, autograph=True)
        assert compiled(-(2.0**63)) == -(2**63)
        assert compiled(5.0) == 5
        for number in (2.0**63, -1e30, np.inf, np.nan):
            message = (
                "leaves 64 bits" if np.isfinite(number) else f"element_type: {number} is no integer"
            )
            with pytest.raises(OverflowError, match=message):
                compiled(number)


def test_negative_integers_as_exponents_and_shifts() -> None:
    power = "pow: an integer to the power of a negative one is no integer; make the base a float"
    refused: list[tuple[Callable[[Any], Any], str]] = [
        (lambda n: 2**n, power),
        (lambda n: np.arange(3) ** n, power),
        (lambda n: 5 << n, "shift_left: shifts by a negative number of bits"),
        (lambda n: 5 >> n, "shift_right_arithmetic: shifts by a negative number of bits"),
    ]
    for function, message in refused:
        with pytest.raises(ValueError, match=message):
            checked(function, -1)
        np.testing.assert_array_equal(checked(function, 2), function(2))
    assert checked(lambda n: 2.0**n, -1) == 0.5


def test_a_modulus_is_refused() -> None:
    with pytest.raises(TypeError, match="pow: a modulus is not supported for traced values"):
        tj.jit(lambda n: pow(n, 3, 7))(5)


@pytest.mark.parametrize("name", ["max", "min"])
def test_extremes_of_no_element(name: str) -> None:
    def function(x: Any, mask: Any) -> Any:
        return getattr(x[mask], name)()

    def of_columns(x: Any, mask: Any) -> Any:
        return getattr(x[mask], name)(axis=0)

    x = np.arange(12.0).reshape(4, 3)
    for mask in (x > 5, x[:, 0] > 5):
        np.testing.assert_array_equal(checked(function, x, mask), function(x, mask))
        with pytest.raises(ValueError, match=r"a mask selects no element.*test_check\.py"):
            checked(function, x, mask & False)
        assert np.isinf(tj.jit(function)(x, mask & False))
    rows = x[:, 0] > 5
    np.testing.assert_array_equal(checked(of_columns, x, rows), of_columns(x, rows))
    assert checked(lambda x, m: np.max(x, where=m, initial=-np.inf), x, x > 99) == -np.inf
    gradient = tj.grad(lambda x: getattr(x[x > 5], name)())(x)
    assert gradient.sum() == 1
    batched = tj.vmap(lambda x, m: getattr(x[m], name)())(x, x > 4)[2:]
    np.testing.assert_array_equal(batched, getattr(x[2:], name)(axis=1))
