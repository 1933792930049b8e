"""Long loops of Python that `jit` records once: any small program gives what NumPy gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracejit as tj
from tests.transforms import counted
from tests.transforms.counted import SIZE, arrays, check, function_of, recorded


@pytest.fixture(autouse=True, scope="module")
def soon() -> Iterator[None]:
    """Short traces count as long, short loops as worth it."""
    yield from counted.soon()


# Programs that are made up

PLACES = ["{v}", "{v} - 1", "{v} + 1", f"{SIZE - 1} - {{v}}", "{w}", "{v} + {w}", "0", "-1",
          "({v} + {w}) % 6", "({v} - 1) % 6", "{v} // 2", "abs({v} - {w})"]  # fmt: skip
RANGES = [
    "{n}", "1, {n}", "1, {n} - 1", "{n} - 1, -1, -1", "{n} - 2, 0, -1", "0, {n}, 2",
    "{w}", "{w}, {n}", "{w} + 1, {n}", "{w}, -1, -1",
]  # fmt: skip
SLICES = [
    "[:{v}]", "[{v}:]", "[{v} + 1:]", "[{w}:{v}]", "[{v}:{v} + 2]", "[{v} - 1:{v} + 2]", "[1:-1]",
    "[:]", "[:-{v}]", "[:{v} + 1]",
]  # fmt: skip


@st.composite
def index(draw: st.DrawFn, names: list[str]) -> str:
    v, w = draw(st.sampled_from(names)), draw(st.sampled_from(names))
    return draw(st.sampled_from(PLACES)).format(v=v, w=w)


@st.composite
def vector(draw: st.DrawFn, names: list[str]) -> str:
    """A vector of some length."""
    v, w = draw(st.sampled_from(names)), draw(st.sampled_from(names))
    part = draw(st.sampled_from(SLICES)).format(v=v, w=w)
    place = draw(index(names))
    kind = draw(st.integers(0, 3))
    if kind == 2:
        return f"A[{place}, {part[1:]}"
    if kind == 3:
        return f"A[{part[1:-1]}, {place}]"
    return f"{'xy'[kind]}{part}"


@st.composite
def number(draw: st.DrawFn, names: list[str]) -> str:
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return "s"
    if kind == 8:
        part = draw(vector(names))
        return draw(st.sampled_from(["np.flip({0}) @ {0}", "np.dot({0}, np.flip({0}))"])).format(
            part
        )
    if kind == 9:
        rows = draw(st.sampled_from(SLICES)).format(v=draw(st.sampled_from(names)), w=names[0])
        return draw(st.sampled_from(["(A{0} @ y).sum()", "(x @ A[:, {1}]).max(initial=0)"])).format(
            rows, rows[1:-1]
        )
    if kind == 1:
        return f"0.1 * {draw(st.sampled_from(names))}"
    if kind == 2:
        return f"A[{draw(index(names))}, {draw(index(names))}]"
    if kind == 3:
        return f"({draw(vector(names))}).sum()"
    if kind == 4:
        first = draw(vector(names))
        second = draw(st.one_of(st.just(first), vector(names)))
        return draw(st.sampled_from(["{} @ {}", "np.dot({}, {})"])).format(first, second)
    return f"{draw(st.sampled_from('xy'))}[{draw(index(names))}]"


@st.composite
def statement(draw: st.DrawFn, names: list[str]) -> list[str]:
    kind = draw(st.integers(0, 6))
    value = f"np.tanh({draw(number(names))}) + 0.5 * np.tanh({draw(number(names))})"
    if kind == 0:
        return [f"s = {value}"]
    if kind == 1:
        return [f"A[{draw(index(names))}, {draw(index(names))}] = {value}"]
    if kind == 2:
        part = draw(vector(names))
        return [f"{part} {draw(st.sampled_from(['+=', '-=', '=']))} 0.3 * {part} + {value}"]
    if kind == 3:
        return [f"r = {draw(vector(names))}", f"r *= {value}"]
    if kind == 4:
        test = draw(st.sampled_from(["{v} > 1", "s > 0.7", "{v} % 2 == 0", "{v} < {w}"]))
        test = test.format(v=draw(st.sampled_from(names)), w=draw(st.sampled_from(names)))
        then = draw(
            st.sampled_from(
                [["s = s * 0.5"], ["continue"], ["break"], ["return s"], [f"y[0] = {value}"]]
            )
        )
        return [f"if {test}:", *(f"    {line}" for line in then)]
    if kind == 5:
        return [f"s += {draw(number(names))}", "k += 1"]
    return [f"{draw(st.sampled_from('xy'))}[{draw(index(names))}] = {value}"]


@st.composite
def block(draw: st.DrawFn, names: list[str], depth: int) -> list[str]:
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        if depth < 3 and draw(st.booleans()):
            lines += draw(loop(names, depth))
        else:
            lines += draw(statement(names))
    return lines


@st.composite
def loop(draw: st.DrawFn, names: list[str], depth: int = 0) -> list[str]:
    own = "ijk"[depth] if depth < 2 else "m"
    ranges = RANGES if names else RANGES[:6]
    limits = draw(st.sampled_from(ranges)).format(n=SIZE, w=draw(st.sampled_from(names or ["0"])))
    body = draw(block([*names, own], depth + 1))
    return [f"for {own} in range({limits}):", *(f"    {line}" for line in body)]


@settings(max_examples=60, deadline=None)
@given(loop([]), st.sampled_from(["s", "s, k", "x.sum() + s", "x[1:] * k", "None"]))
def test_any_program(lines: list[str], result: str) -> None:
    check(function_of(["s, k = 0.25, 0", *lines, f"return {result}"]), interpreted=True)


# What is recorded once

ONCE = {
    "triangular products": [
        "for i in range(1, 6):",
        "    for j in range(i):",
        "        A[i, j] -= A[i, :j] @ A[:j, j]",
        "        A[i, j] /= 2 + A[j, j]",
    ],
    "slices of one size": ["for i in range(4):", "    x[i:i + 2] += 0.5 * y[i + 1:i + 3]"],
    "a view that grows": [
        "for i in range(5):", "    r = x[:i + 1]", "    r *= 1.5", "    y[i] = r.sum()",
    ],
    "a view of other places": [
        "for i in range(1, 6):", "    r = x[:i]", "    x[0] = i", "    y[i] = r.max()",
    ],
    "slices the other way round": [
        "for i in range(1, 6):",
        "    y[i] = np.flip(x[:i]) @ y[:i] + np.dot(np.flip(A[i, i:]), x[i:])",
        "    x[1:i] += 0.5 * np.flip(x[1:i])",
        "    A[:i, 1:] -= np.flip(A[:i, 1:])",
        "    A[1:, i:] *= np.flip(A[1:, i:], 0) + np.flip(A[1:, i:], (1,))",
    ],
    "products along the other axis": [
        "for i in range(5):",
        "    A[i:, i] = A[i, i:] = A[:, i] @ A[:, i:] / 6",
        "    x[i:] -= A[i:] @ y + A[i:].dot(x)",
        "    y[0] = (A[i:] @ A).sum() + (A @ A[:, i:]).max()",
    ],
    "backwards": ["for i in range(4, -1, -1):", "    x[i] = 0.5 * x[i + 1] + y[i]"],
    "steps of a counter": [
        "for i in range(1, 6):",
        "    for j in range(i * i, 6, i):",
        "        x[j] += y[i]",
        "    for j in range(5, i, -i):",
        "        y[j] -= x[i]",
    ],
    "remainders": [
        "for i in range(6):",
        "    for d in range(-1, 2):",
        "        x[i] += 0.1 * y[(i + d) % 6] + A[i // 2, abs(i - 3)]",
    ],
    "ranges that data give": [
        "n = (x * 4).astype(int)",
        "for i in range(1, 6):",
        "    s = 0.0",
        "    for j in range(n[i]):",
        "        s += A[i, j] * x[j]",
        "    for j in range(n[i] - 1, i - 1, -1):",
        "        y[j] -= s",
        "    for j in range(0, 6, n[i]):",
        "        A[i, j] = s",
    ],
    "steps of two": ["for i in range(1, 6, 2):", "    x[i] = x[i - 1]"],
    "the end is no index": ["for i in range(5):", "    if i + 1 < 6:", "        x[i] = x[i + 1]"],
    "branches known for all steps": [
        "for i in range(5, -1, -1):",
        "    for j in range(i + 1, 6):",
        "        if j - 1 >= 0 and i + 1 < 6 and not i == j:",
        "            A[i, j] = max(A[i, j - 1], A[i + 1, j])",
    ],
    "places that hold in a branch": [
        "for i in range(6):",
        "    for j in range(3):",
        "        if i - j >= 0 and i + j < 6:",
        "            x[i - j] += A[i + j, i - j]",
        "        elif i > 0:",
        "            y[i - 1] += 1",
    ],
    "branches that differ": ["for i in range(6):", "    x[i] = y[i] if i % 2 == 0 else -y[i]"],
    "rows": ["for row in A:", "    row[1:] *= row[:-1]", "    x += row"],
    "elements": ["for v in y:", "    x *= v"],
    "what is read after it": [
        "for i in range(5):", "    t = x[i] * 2", "return t + i, i",
    ],
    "a number that Python counts": [
        "n = 0", "for i in range(5):", "    n += 2", "    x[i] = n", "return n",
    ],
    "a sum": ["s = 0", "for i in range(5):", "    s += x[i]", "return s"],
    "a list of arrays": [
        "z = [x, y]", "for i in range(5):", "    z[0] = z[0] + z[1][i]", "return z[0]",
    ],
    "break": ["for i in range(6):", "    if x[i] > 1.2:", "        break", "    y[i] = 0"],
    "a function": [
        "def half(v):", "    w = v / 2", "    return w",
        "for i in range(5):", "    x[i] = half(y[i])",
    ],
    "steps of slices": ["for i in range(1, 5):", "    x[i] = y[:i:2].sum() + y[i::-1].max()"],
    "outer ones alone": [
        "for i in range(5):", "    for k in range(2):", "        x[i] += k * y[i]",
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", ONCE)
def test_recorded_once(name: str) -> None:
    function = function_of(ONCE[name])
    count, refusals = recorded(function)
    assert count
    assert not refusals
    check(function)


# What is recorded step by step

CHANGES = [0.0]
STEPWISE = {
    "np.matmul along other axes": [
        "for i in range(5):", "    x[i] = (np.stack([A, A]) @ A[:, i:]).sum()",
    ],
    "index: it is not known": ["for i in range(5):", "    x[i] = y[i - 1]"],
    "slice: it is not known": ["for i in range(5):", "    x[i] = y[:i - 1].sum()"],
    "a slice with unknown bounds beside": [
        "for i in range(5):", "    x[i] = A[:i, np.array([1, 2])].sum()",
    ],
    "a slice between counters of loops cannot be written": [
        "n = (x[0] * 0).astype(int)", "for i in range(4):", "    A[n, i:i + 2] = y[i]",
    ],
    "elements that different masks select": [
        "for i in range(1, 5):", "    x[i] = x[:i] @ y[1:i + 1]",
    ],
    "may become greater than an array's can": [
        "f = 1", "for i in range(1, 6):", "    f += 2000000 * i", "return f % 7",
    ],
    "list.append: may do more than compute a value": [
        "z = []", "for i in range(5):", "    z.append(x[i])", "return z",
    ],
    "loud: may do more than compute a value": ["for i in range(5):", "    loud()"],
    "add: cannot cast float64 to int64 by the rule same_kind": [
        "z = np.zeros(6, int)", "for i in range(1, 5):", "    z[:i] += 0.5",
    ],
    "a step of more than one": ["z = [1, 2, 3, 4, 5]", "for i in range(5):", "    x[i] = z[i]"],
}  # fmt: skip


def loud() -> None:
    CHANGES[0] += 1


@pytest.mark.parametrize("message", STEPWISE)
def test_recorded_step_by_step(message: str) -> None:
    function = function_of(STEPWISE[message], loud=loud)
    CHANGES[0] = 0
    _, refusals = recorded(function)
    assert message in refusals or message == "a step of more than one"
    assert refusals
    assert CHANGES == [5.0 * (message == "loud: may do more than compute a value")]
    if message != "loud: may do more than compute a value":
        check(function)


QUIET = {
    "an attribute": ["for i in range(5):", "    box.total = i", "return box.total"],
    "a global": ["global box", "for i in range(5):", "    box = i", "return box"],
    "a dictionary of another's": ["for i in range(5):", "    names['a'] = i", "return names['a']"],
    "an array that is no argument": [
        "for i in range(5):", "    memory[0] += 1", "    x[i] = memory[0]",
    ],
    "a context": ["for i in range(5):", "    with np.errstate(all='ignore'):", "        x[i] = 1"],
}  # fmt: skip


@pytest.mark.parametrize("name", QUIET)
def test_what_does_more_than_compute_is_left_alone(name: str) -> None:
    class Box:
        total = 0

    def made() -> Callable[..., Any]:
        return function_of(QUIET[name], box=Box(), names={}, memory=np.zeros(1))

    assert recorded(made())[0] == 0
    expected, given = arrays(), arrays()
    result = made()(*expected)
    found = tj.jit(made(), mutates="x")(*given)
    np.testing.assert_array_equal(given[0], expected[0])
    assert found == result


def test_an_index_out_of_range_is_found() -> None:
    function = function_of(["for i in range(6):", "    x[i] = x[i + 1]"])
    with pytest.raises(IndexError, match="index 6 is out of bounds for axis 0 with size 6"):
        tj.jit(function, mutates="x")(*arrays())


def test_derivatives_are_of_the_single_steps() -> None:
    lines = [
        "def f(v):",
        "    for i in range(1, 6):",
        "        v = v * np.sin(x[i])",
        "    return v",
    ]
    function = function_of([*lines, "return grad(f)(x[0])"], grad=tj.grad)
    given = arrays()
    np.testing.assert_allclose(tj.jit(function)(*given), np.prod(np.sin(given[0][1:])))


def test_a_long_trace_is_no_exception_to_the_function() -> None:
    lines = ["try:", "    for i in range(5):", "        x[i] = y[i]"]
    function = function_of([*lines, "except Exception:", "    return 0", "return x.sum()"])
    x, y, A = arrays()
    assert tj.jit(function)(x, y, A) == pytest.approx(y[:5].sum() + x[5])


def test_without_source() -> None:
    namespace: dict[str, Any] = {}
    exec("def f(x):\n    for i in range(5):\n        x = x + i\n    return x", namespace)
    assert tj.jit(namespace["f"])(np.float64(1)) == 11.0


def test_methods_and_static_arguments() -> None:
    class Model:
        rate = 0.5

        @tj.jit(static_argnums=(0, 2))
        def run(self, x: Any, n: int) -> Any:
            for _ in range(n):
                x = x + self.rate * x
            return x

    np.testing.assert_allclose(Model().run(np.ones(3), 20), 1.5**20 * np.ones(3))


def test_long_loops_are_one_loop_of_the_graph() -> None:
    function = function_of(["for i in range(5):", "    x[i] = y[i]", "return x"])
    assert str(tj.jit(function).lower(*arrays()).module).count(" while(") == 1
