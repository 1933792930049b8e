"""`jit(f, autograph=True)`: plain Python control flow on traced values, against plain Python."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.errors import (
    ArgumentError,
    ConcretizationError,
    ElementTypeError,
    ShapeError,
    UnsupportedError,
)

X = np.array([3.0, -1.0, 2.0, 5.0])


def assigned_in_both(x: float) -> float:
    if x > 0:
        y, z = x * 2, 1.0
    elif x < -5:
        y, z = -x, 2.0
    else:
        y, z = x, 3.0
    return y + z


def early(x: float) -> float:
    if x > 3:
        return x * 2
    y = x + 1
    if x > 0:
        y = y * 10
        if x > 1:
            return y
    else:
        y = -y
    return y - 0.5


def collatz(n: int) -> int:
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


def over_range(n: int) -> int:
    total = 0
    for i in range(n):
        if i % 3 == 0:
            continue
        if i > 7:
            break
        total += i
    else:
        total += 1000
    return total


def backwards(n: int) -> int:
    total = 1
    for i in range(n, 1, -1):
        total *= i
    return total


def stepping(n: int, k: int) -> int:
    total = 0
    for i in range(0, n, k):
        total += i
    return total


def find(x: Any, v: float) -> int:
    for i in range(len(x)):
        if x[i] == v:
            return i
    return -1


def long_find(n: int) -> int:
    for i in range(1000):
        if i * i >= n:
            return i
    return -1


def returns_what_it_carries(x: Any) -> Any:
    total = 0.0 * x[0]
    for value in x:
        total = total + value * value
        if total > 20:
            return total, value
    return -total, x[0]


def returns_out_of_two_loops(x: Any) -> Any:
    total, steps = 0.0 * x[0], 0
    while total < 50:
        for value in x:
            total = total + value
            if value * steps > 20:
                return total * steps
        steps = steps + 1
    return -total


def nested(n: int) -> int:
    count = 0
    for i in range(n):
        j = 0
        while j * j < i:
            j += 1
            if (i + j) % 4 == 0:
                break
        count += j
    return count


def truths(x: float) -> float:
    if 0 < x < 2 and not x == 1:
        return 1.0
    if x > 5 or x == -1:
        return 2.0
    return 3.0 if x else 4.0


def values_of_and(x: float) -> float:
    return (x and x + 1) + (x or 7.0)


def membership(x: float) -> int:
    kind = 1 if x in (3.0, 4.0) else 2
    return kind + (10 if x not in [1.0, 5.0] else 20)


def in_place(x: Any) -> Any:
    y = np.array(x)
    view = y[1:]
    if y[0] > 0:
        y[1] = 7
    for i in range(3):
        if y[i] > 1:
            y[i] *= 2
        view[2] += 1
    return y, view


def forever(x: float) -> float:
    while True:
        x = x * 2
        if x > 100:
            return x


def bisect(f: Any) -> float:
    low, high = 0.0, f
    while high - low > 1e-9:
        middle = (low + high) / 2
        if middle * middle < f:
            low = middle
        else:
            high = middle
    return low


def newton(a: float) -> float:
    x = a
    for _ in range(50):
        new = 0.5 * (x + a / x)
        if abs(new - x) < 1e-12:
            break
        x = new
    return x


def over_rows(x: Any) -> Any:
    total = 0.0
    for value in x:
        if value < 0:
            continue
        total = total + np.sqrt(value)
    return total


def numbers(x: float) -> float:
    n = int(x)
    return max(n, 2) + min(x, 1.5, 9.0) + float(bool(x > 1))


def trees(x: float) -> Any:
    state = {"a": x, "b": (x, [x + 1])}
    if x > 1:
        state = {"a": x + 1, "b": (x, [x * 2])}
    return state


def gcd(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return a


def square(x: float) -> float:
    return x * x if x > 0 else -x


def calls_helpers(x: float) -> float:
    @functools.wraps(square)
    def inner(y: float) -> float:
        if y > 2:
            return square(y - 10)
        return y

    return inner(x) + sum(map(lambda v: v, [square(x)]))


CASES: list[tuple[Any, list[tuple[Any, ...]]]] = [
    (assigned_in_both, [(2.0,), (-2.0,), (-9.0,)]),
    (early, [(4.0,), (2.0,), (0.5,), (-3.0,)]),
    (collatz, [(27,), (1,)]),
    (over_range, [(20,), (5,), (0,)]),
    (backwards, [(6,), (0,)]),
    (stepping, [(10, 3), (10, 1), (-7, -2)]),
    (find, [(np.arange(30.0), 4.0), (np.arange(30.0), 99.0), (np.arange(3.0), 2.0)]),
    (long_find, [(50,), (10**7,)]),
    (returns_what_it_carries, [(X,), (X / 9,)]),
    (returns_out_of_two_loops, [(X,), (X / 9,)]),
    (nested, [(12,)]),
    (truths, [(1.5,), (1.0,), (6.0,), (-1.0,), (0.0,)]),
    (values_of_and, [(2.0,), (0.0,)]),
    (membership, [(3.0,), (1.0,), (5.0,)]),
    (in_place, [(np.array([1.0, 2.0, 0.0, 4.0]),), (np.array([-1.0, 2.0, 0.0, 4.0]),)]),
    (forever, [(3.0,), (200.0,)]),
    (bisect, [(2.0,)]),
    (newton, [(7.0,)]),
    (over_rows, [(X,)]),
    (numbers, [(3.7,), (0.2,)]),
    (trees, [(2.0,), (0.0,)]),
    (gcd, [(12, 18), (5, 0)]),
    (calls_helpers, [(3.0,), (1.0,), (-1.0,)]),
]


@pytest.mark.filterwarnings("ignore:for. the integer total grows:RuntimeWarning")
@pytest.mark.parametrize(("function", "inputs"), CASES, ids=[c[0].__name__ for c in CASES])
def test_against_python(function: Any, inputs: list[tuple[Any, ...]]) -> None:
    compiled = tj.jit(function, autograph=True)
    for given in inputs:
        expected, got = function(*given), compiled(*given)
        tj.tree.map(lambda g, e: np.testing.assert_allclose(g, e, rtol=1e-14), got, expected)
    # Outside of every trace the rewritten function is the plain one.
    again = tj.autograph(function)(*inputs[0])
    tj.tree.map(np.testing.assert_array_equal, again, function(*inputs[0]))


def test_machine_code(machine_code: None) -> None:
    assert tj.jit(collatz, autograph=True)(27) == 111
    assert tj.jit(long_find, autograph=True)(90) == 10


def test_one_conditional_and_one_loop() -> None:
    text = tj.jit(assigned_in_both, autograph=True).lower(1.0).as_text()
    assert text.count(" conditional(") == 2
    text = tj.jit(long_find, autograph=True).lower(5).as_text()
    assert text.count(" while(") == 1


@pytest.mark.parametrize("function", [assigned_in_both, early, truths, newton, square])
def test_with_grad_and_vmap(function: Any) -> None:
    rewritten = tj.autograph(function)
    points = np.array([0.5, 1.5, 2.5, 4.0])
    step = 1e-6
    numeric = [(function(p + step) - function(p - step)) / (2 * step) for p in points]
    for gradient in (tj.grad(rewritten), tj.jit(tj.grad(rewritten))):
        np.testing.assert_allclose([gradient(p) for p in points], numeric, atol=1e-6)
    for mapped in (tj.vmap(rewritten), tj.jit(tj.vmap(rewritten))):
        np.testing.assert_allclose(mapped(points), [function(p) for p in points], rtol=1e-12)
    both = tj.jit(tj.vmap(tj.grad(rewritten)))(points)
    np.testing.assert_allclose(both, numeric, atol=1e-6)


def test_loops_under_vmap() -> None:
    n = np.array([27, 1, 6])
    mapped: Any = tj.vmap(tj.autograph(collatz))
    np.testing.assert_array_equal(tj.jit(mapped)(n), [111, 0, 8])


def test_closures_defaults_and_decorator() -> None:
    limit = 2.0
    table = np.array([1.0, 10.0])

    @tj.jit(autograph=True)
    def function(x: float, *, scale: float = 3.0) -> Any:
        """Documentation stays."""
        nonlocal limit
        if x > limit:
            return table[1] * scale * x
        return table[0] + limit

    assert function(3.0) == 90.0
    assert function(1.0) == 3.0
    assert function(3.0, scale=1.0) == 30.0
    assert function.__doc__ == "Documentation stays."
    clipped = tj.jit(lambda x: x if x > 0 else -x, autograph=True)
    assert clipped(-3.0) == 3.0


class Model:
    def __init__(self, weight: float) -> None:
        self.__weight = weight

    def forward(self, x: float) -> Any:
        if x > 0:
            return self.__helper(x)
        return x

    def __helper(self, x: float) -> Any:
        buffer = np.zeros(2)
        if x > 1:
            buffer[0] = x * self.__weight
        else:
            buffer[1] = x
        return buffer.sum()

    def __call__(self, x: float) -> Any:
        return self.forward(x) + 1


class Child(Model):
    def forward(self, x: float) -> Any:
        if x > 10:
            return -1.0
        return super().forward(x)


@pytest.mark.parametrize("kind", [Model, Child])
def test_methods(kind: type[Model]) -> None:
    model = kind(4.0)
    for x in (-1.0, 0.5, 2.0, 11.0):
        assert tj.jit(model.forward, autograph=True)(x) == model.forward(x)
        assert tj.jit(model, autograph=True)(x) == model(x)
        partial = functools.partial(model.forward)
        assert tj.jit(partial, autograph=True)(x) == model.forward(x)


def test_assert() -> None:
    @tj.jit(autograph=True)
    def function(x: Any) -> Any:
        assert x.ndim == 1, "a vector"
        assert (x > 0).all(), "must be positive"
        return x.sum()

    assert function(np.ones(2)) == 2
    with pytest.raises(AssertionError, match="must be positive"):
        function(-np.ones(2))
    with pytest.raises(AssertionError, match="a vector"):
        function(np.ones((1, 2)))


def test_python_stays_python() -> None:
    """What nothing traced decides: generators, exceptions, else of loops, del, walrus, with."""

    def function(x: Any, names: Any) -> Any:
        found = []
        for name in names:
            if name == "skip":
                continue
            if (length := len(name)) > 3:
                break
            found.append(length)
        else:
            found.append(100)
        try:
            if names[0] == "raise":
                raise KeyError(names[0])
            temporary = 5
            del temporary
        except KeyError as error:
            found.append(len(str(error)))
        finally:
            found.append(0)
        return x * sum(n for n in found if n)

    for names in (("a", "skip", "bb"), ("raise",), ("abc", "long", "b")):
        jitted = tj.jit(function, static_argnames="names", autograph=True)
        assert jitted(2.0, names=names) == function(2.0, names)


def texts(x: float) -> Any:
    if x > 0:  # texts
        mode = "up"
    else:
        mode = "down"
    return len(mode)


def shapes(x: Any) -> Any:
    if x[0] > 0:  # shapes
        x = x[1:]
    return x


def structures(x: float) -> Any:
    if x > 0:  # structures
        y: Any = (x, x)
    else:
        y = [x]
    return y


def text_in_loop(x: float) -> Any:
    mode = "a"
    while x > 0:  # text_in_loop
        mode = mode + "a"
        x = x - 1
    return x


def growing(x: Any) -> Any:
    while x[0] > 0:  # growing
        x = np.concatenate([x, x])
    return x


def some_ways(x: float) -> Any:
    if x > 0:
        return x  # some_ways


def ambiguous(x: Any) -> Any:
    if x > 0:  # ambiguous
        return x
    return -x


def float_range(x: float) -> Any:
    for _ in range(x):  # type: ignore[call-overload]  # float_range
        x = x + 1
    return x


def listed(x: int) -> Any:
    return list(range(x))  # listed


REFUSED: list[tuple[Any, Any, type[Exception], str]] = [
    (
        texts,
        1.0,
        ArgumentError,
        "if: the variable mode is 'up' after one branch and 'down' after the other; only arrays "
        "and numbers can depend on a traced condition",
    ),
    (
        shapes,
        X,
        ShapeError,
        "if: the variable x must have equal shapes after both branches, not f64[3] and f64[4]",
    ),
    (
        structures,
        1.0,
        ArgumentError,
        "if: the variable y must be equal trees after both branches, not PyTreeSpec((*, *)) "
        "and PyTreeSpec([*])",
    ),
    (
        text_in_loop,
        1.0,
        ArgumentError,
        "while: the variable mode is 'a' before a step and 'aa' after it; only arrays and numbers "
        "can change in a loop on traced values",
    ),
    (
        growing,
        X,
        ShapeError,
        "the body of while: carried value['x'] enters as f64[4] and leaves as f64[8]",
    ),
    (
        some_ways,
        1.0,
        ConcretizationError,
        "return: on some ways, which depend on a traced condition, the function returns nothing; "
        "end it with a return",
    ),
    (
        ambiguous,
        X,
        ShapeError,
        "if: the truth value of an array pred[4] is ambiguous; use .any() or .all()",
    ),
    (float_range, 1.0, ElementTypeError, "range: its limits must be integers, not f64[]"),
    (
        listed,
        1,
        ConcretizationError,
        "range: its length depends on a traced value; only `for i in range(...)` itself can go "
        "over it",
    ),
]


@pytest.mark.parametrize(
    ("function", "argument", "kind", "message"), REFUSED, ids=[r[0].__name__ for r in REFUSED]
)
def test_refusals(function: Any, argument: Any, kind: type[Exception], message: str) -> None:
    lines, first = inspect.getsourcelines(function)
    (line,) = (
        n for n, t in enumerate(lines, first) if t.rstrip().endswith("# " + function.__name__)
    )
    with pytest.raises(kind) as caught:
        tj.jit(function, autograph=True)(argument)
    expected = message.replace("{-2}", str(line - 2))
    assert str(caught.value) == f"{expected} (test_autograph.py:{line})"


def test_what_cannot_be_rewritten() -> None:
    with pytest.raises(ArgumentError, match="autograph: takes a Python function, not a ufunc"):
        tj.autograph(np.sin)
    scope: dict[str, Any] = {}
    exec("def made(x):\n    return x", scope)
    with pytest.raises(UnsupportedError, match="autograph: the source of made cannot be read"):
        tj.autograph(scope["made"])
    pair = (lambda x: x + 1, lambda x: x + 2)
    with pytest.raises(UnsupportedError, match="one lambda to a line"):
        tj.autograph(pair[0])


def list_in_a_branch(x: Any) -> Any:
    pair = [x[0], x[1]]
    tree = {"a": x[0], "b": [x[1]]}
    if x[0] > 0:
        pair[0] = pair[0] * 2
        tree["a"] += 1
        tree["b"][0] = tree["a"] * 2
    else:
        tree["b"][0] = 0.0
    return pair, tree


def list_in_a_loop(x: Any) -> Any:
    pair, k = [x[0], x[1]], 0
    while k < x[2]:
        pair[0], pair[1] = pair[1], pair[0] + pair[1]
        k += 1
    return pair


@pytest.mark.parametrize("function", [list_in_a_branch, list_in_a_loop])
def test_lists_that_are_written_into(function: Any) -> None:
    for sign in (1, -1):
        x = sign * np.arange(1.0, 5.0)
        got, expected = tj.jit(function, autograph=True)(x), function(x)
        for one, other in zip(tj.tree.leaves(got), tj.tree.leaves(expected), strict=True):
            np.testing.assert_array_equal(one, other)


def appended_in_a_branch(x: Any) -> Any:
    made = [x[0]]
    for row in x:
        if row > 1:
            made.append(row)
    return made


def appended_in_a_loop(x: Any) -> Any:
    made: list[Any] = []
    while x[0] < 10:
        made.append(x[0])
        x = x * 2
    return made


def key_in_a_branch(x: Any) -> Any:
    made: dict[str, Any] = {}
    if x[0] > 0:
        made["a"] = x[0]
    return made


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (appended_in_a_branch, "if: the list made is changed, which would happen once"),
        (appended_in_a_loop, "while: the list made is changed, which would happen once"),
        (
            key_in_a_branch,
            r"made\['a'\] may have no value after a statement whose",
        ),
    ],
)
def test_lists_that_grow_behind_a_traced_condition(function: Any, text: str) -> None:
    with pytest.raises((ConcretizationError, ArgumentError), match=text):
        tj.jit(function, autograph=True)(np.arange(1.0, 5.0))


class Halves:
    """Has a method, so that functions that name it are rewritten for its calls as well."""

    def of(self, x: Any) -> Any:
        return x / 2


def halved(x: Any) -> Any:
    if x > 0:
        return Halves().of(x)
    return x - 1


def test_functions_that_name_objects_decide_on_traced_values() -> None:
    @tj.jit(autograph=True)
    def f(x: Any) -> Any:
        return halved(x) + 1

    assert [f(4.0), f(-4.0)] == [3.0, -4.0]


def raises(x: Any) -> Any:
    if x > 0:
        raise ValueError("positive")
    return x * 2


def raises_in_one_branch(x: Any) -> Any:
    if x > 0:
        y = 3
        raise ValueError("no")
    else:
        y = x
    return y


def raises_in_a_loop(x: Any) -> Any:
    i = 0
    while i < 5:
        i = i + 1
        if i > 2 - x:
            raise KeyError("too many")
    return i


def raises_in_a_known_loop(x: Any) -> Any:
    for i in range(40):
        if i + x > 39.5:
            raise KeyError("too many")
    return x


def raises_in_a_callee(x: Any) -> Any:
    return raises(x) + 1


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize(
    "function",
    [
        raises,
        raises_in_one_branch,
        raises_in_a_loop,
        raises_in_a_known_loop,
        raises_in_a_callee,
    ],
)
def test_raise_on_a_traced_condition(function: Any, check: bool) -> None:
    jitted = tj.jit(function, autograph=True, check=check)
    for x in (-8.0, 1.0, -9.0, 1.0):
        try:
            right = function(x)
        except (ValueError, KeyError) as error:
            with pytest.raises(type(error), match=str(error)):
                jitted(x)
        else:
            assert jitted(x) == right


def squares_above(x: Any) -> Any:
    total = 0.0
    for value in x:
        if value > 0:
            total = total + value * value
    return total


def test_transformed_functions() -> None:
    """``autograph=True`` reaches through grad, vmap and their like."""
    x = np.array([1.0, -2.0, 3.0])
    np.testing.assert_allclose(tj.jit(tj.grad(squares_above), autograph=True)(x), [2.0, 0.0, 6.0])
    value, slope = tj.jit(tj.value_and_grad(squares_above), autograph=True)(x)
    np.testing.assert_allclose((value, *slope), [10.0, 2.0, 0.0, 6.0])
    curvature = tj.jit(tj.vmap(tj.hessian(squares_above)), autograph=True)(x[None])
    np.testing.assert_allclose(curvature[0], np.diag([2.0, 0.0, 2.0]))
    outer = tj.jit(tj.checkpoint(tj.grad(squares_above)), autograph=True)
    np.testing.assert_allclose(outer(x), [2.0, 0.0, 6.0])
