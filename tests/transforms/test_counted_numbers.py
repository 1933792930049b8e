"""Loops that are recorded once: Python's own numbers, lists with two names, objects that count."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.transforms import counted
from tests.transforms.counted import check, function_of, recorded
from tracejit.affine import Affine
from tracejit.ops.constants import parameter
from tracejit.ops.elementwise import add, sub
from tracejit.shapes import ElementType, Shape
from tracejit.trace.affine_bounds import affine, counting


@pytest.fixture(autouse=True, scope="module")
def soon() -> Iterator[None]:
    """Short traces count as long, short loops as worth it."""
    yield from counted.soon()


# Expressions of the counter, which runs from 0 to 5

EXACT = [
    "i * i * i - i // 3 + i % 7", "7 / (i + 1)", "-7 // (i + 1)", "-7 % (i + 1)", "7.5 % (i + 2)",
    "(i / 7 - 3.5) / (i + 2)", "2 ** i", "(i + 1) ** -0.5", "(-1) ** i", "3 << i", "(-99) >> i",
    "(i & 6) | (i ^ 3)", "~i", "abs(i - 3)", "min(i, 3) * max(i, 2, 4)", "float(i) + int(i / 3)",
    "round(i / 3)", "math.sqrt(i)", "math.log(i + 1, 3)", "math.exp(i)", "math.asin(i / 6)",
    "divmod(i, -3)[1]", "(i > 2) + (i != 4)", "math.pow(i, 3)", "(i - 7) ** 2", "+i", "-(i - 2)",
    "math.fmod(i, 2)", "(1.5 - i) ** 2.0",
]  # fmt: skip


@pytest.mark.parametrize("expression", EXACT)
def test_numbers_that_arrays_have_as_well(expression: str) -> None:
    function = function_of(["for i in range(6):", f"    x[i] += {expression}"])
    count, refusals = recorded(function)
    assert count
    assert not refusals
    check(function)


OTHERWISE = [
    "i ** 40", "2 ** (i * 20)", "1 << (i * 20)", "i * 10**10 * 10**9 * 3", "2 ** -i", "i ** -1",
    "7 / (i - 3)", "7 // (i - 3)", "7 % (i - 3)", "7.5 / (i * 0.5 - 1)", "divmod(7, i - 3)[0]",
    "abs((i - 3) ** 0.5)", "2.0 ** (i * 400)", "7 >> (i - 3)", "math.sqrt(3 - i)",
    "math.log(i - 3)", "math.exp(i * 200)", "math.asin(i)", "math.fmod(7, i - 3)",
    "math.pow(i - 3, 0.5)", "math.log(7, i + 1)", "math.acosh(i)", "math.cosh(i * 200)",
    "1 if isinstance(i, int) else 2", "1 if type(i) is int else 2",
    "1 if i.__class__ is int else 2", "(i * 6364136223846793005 + 1442695040888963407) % 1000",
    "np.int8(i * 30)",
]  # fmt: skip


@pytest.mark.parametrize("expression", OTHERWISE)
def test_numbers_that_only_python_has(expression: str) -> None:
    """Where an array would have another value, or none for an error, steps are recorded apart."""
    function = function_of(["for i in range(6):", f"    x[i] += 1e-9 * ({expression})"])
    assert not recorded(function)[0]
    check(function)


REASONS = {
    "i ** 40": "the result for Python's own numbers may be another than that for arrays",
    "math.asin(i)": "math.asin: the result for Python's own numbers",
    "1 if isinstance(i, int) else 2": "isinstance: a step's number is not the counter itself",
    "np.int8(i * 30)": "a number between 0 and 150 may not fit into s8",
}


@pytest.mark.parametrize("expression", REASONS)
def test_reasons(expression: str) -> None:
    function = function_of(["for i in range(6):", f"    x[i] += {expression}"])
    assert REASONS[expression] in recorded(function)[1]


CARRIED = [
    ["n = 0", "for i in range(6):", "    n += 2**61", "    x[i] += n * 1e-18"],
    ["n = 2**40", "for i in range(6):", "    n += 3", "    x[i] += n * n * 1e-24"],
    ["n = 2**62", "for i in range(6):", "    n += 1000000", "    x[i] += n * 1e-18"],
    ["n = -3.0", "for i in range(6):", "    n = n + 1", "    x[i] += 1 / n"],
]


@pytest.mark.parametrize("lines", CARRIED)
def test_numbers_that_grow(lines: list[str]) -> None:
    function = function_of(lines)
    count, refusals = recorded(function)
    assert not count
    assert "2**62" not in lines[0] or "the variable n is an integer of Python's" in refusals
    check(function)


HASHES = [
    ["h = 7", "for i in range(6):", "    h = (h * 31 + (x[i] > 1)) % 1000003", "return h"],
    ["h = 7", "for i in range(6):", "    h = (h << 5) ^ (h & 31) ^ (y[i] > 1)", "return h"],
]


@pytest.mark.parametrize("lines", HASHES)
def test_numbers_that_arrays_change(lines: list[str]) -> None:
    function = function_of(lines)
    assert recorded(function)[0]
    check(function)


@pytest.mark.parametrize("store", ["x[i] + i * 60", "i * 60"])
def test_numbers_that_do_not_fit_into_integers(store: str) -> None:
    function = function_of(["for i in range(6):", f"    x[i] = {store}", "return x"])
    given = np.zeros(6, np.uint8), np.zeros(6), np.zeros((6, 6))
    with pytest.raises(OverflowError):
        function(*(array.copy() for array in given))
    with pytest.raises(tj.errors.ValueRangeError):
        tj.jit(function)(*given)


# What is left of the loop's variables

AFTER = [
    ["for i in range(6):", "    x[i] += 1", "    if i == 3:", "        break", "return i"],
    ["for i in range(6):", "    i = 2 * i", "    y[0] += i", "return i"],
    ["for i in range(5, 0, -1):", "    i -= 1", "    y[i] += i", "return i"],
]


@pytest.mark.parametrize("lines", AFTER)
def test_the_counter_after_the_loop(lines: list[str]) -> None:
    function = function_of(lines)
    count, refusals = recorded(function)
    assert count
    assert not refusals
    check(function)


NAMES = {
    "a list": ["a = [0.0, 1.0]", "b = a", "{loop}    a[0] = a[0] / 2 + x[i]", "return b[0]"],
    "read in the loop": [
        "a = [0.0, 1.0]", "b = a", "{loop}    a[0] = a[0] / 2 + x[i]", "    y[i] = b[0]",
    ],
    "a dictionary": [
        "a = {'v': 0.0, 'n': 0}", "b = a", "{loop}    a['v'] += x[i]", "    b['n'] += 1",
        "return b['v'] + a['n']",
    ],
    "a list in a list": [
        "b = [0.0, 1.0]", "a = [b, 2.0]", "{loop}    a[0][1] = a[0][1] / 2 + x[i]", "return b[1]",
    ],
    "a list in it twice": [
        "b = [0.0, 1.0]", "a = [b, b]", "{loop}    a[0][1] = a[0][1] / 2 + x[i]",
        "return a[1][1]",
    ],
    "an array in a dictionary": [
        "b = y[:3] * 1", "a = {'w': b}", "{loop}    a['w'][0] = a['w'][0] / 2 + x[i]",
        "return b",
    ],
    "another array in a dictionary": [
        "b = y[:3] * 1", "a = {'w': b}", "{loop}    a['w'] = a['w'] / 2 + x[i]",
        "return b + a['w']",
    ],
    "another list": [
        "a = [0.0, 1.0]", "b = a", "{loop}    a = [a[1], a[0] / 2 + x[i]]",
        "return b[0] + a[0] + a[1]",
    ],
}  # fmt: skip
LOOPS = {
    "counted": "for i in range(6):",
    "traced": "for i in range((x[0] * 0).astype(int) + 6):",
    "branch": "i = 2\nif x[0] > 0:",
}


def with_loop(lines: list[str], loop: str) -> list[str]:
    return [one for line in lines for one in line.replace("{loop}", LOOPS[loop] + "\n").split("\n")]


@pytest.mark.parametrize("name", NAMES)
def test_lists_with_two_names_in_counted_loops(name: str) -> None:
    lines = with_loop(NAMES[name], "counted")
    assert recorded(function_of(lines))[0]
    check(function_of(lines))


@pytest.mark.parametrize("loop", ["traced", "branch"])
@pytest.mark.parametrize("name", NAMES)
def test_lists_with_two_names_where_the_graph_decides(name: str, loop: str) -> None:
    check(function_of(with_loop(NAMES[name], loop)))


class Counting:
    """Counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    @property
    def value(self) -> int:
        self.asked += 1
        return self.asked

    def __getitem__(self, number: int) -> int:
        self.asked += 1
        return self.asked

    def __iadd__(self, other: Any) -> Counting:
        self.asked += 1
        return self


class Computing:
    """Gives the same each time."""

    def __init__(self) -> None:
        self.step = 0.5

    @property
    def half(self) -> float:
        return self.step / 2

    def __mul__(self, other: Any) -> Any:
        return self.step * other


@pytest.mark.parametrize("use", ["x[i] += box.value", "x[i] += box[1]", "box += 1"])
@pytest.mark.parametrize("held", ["box", "[box][0]"])
def test_objects_that_change(use: str, held: str) -> None:
    function = function_of(
        ["box = Box()", f"other = {held}", "for i in range(6):", f"    {use}", "return box.asked"],
        Box=Counting,
    )
    assert not recorded(function)[0]
    check(function)


BOX = Counting()
"""One that functions find in their module."""


def test_objects_of_the_module() -> None:
    function = function_of(["for i in range(6):", "    x[i] += BOX.value"], BOX=BOX)
    assert not recorded(function)[0]


@dataclass(frozen=True)
class Settings:
    """Data with methods that Python wrote."""

    step: float = 0.5


def test_objects_that_only_compute() -> None:
    lines = ["box = Box()", "for i in range(6):", "    x[i] += box.step * i"]
    function = function_of(lines, Box=Settings)
    assert recorded(function)[0]
    check(function)
    lines = ["box = Box()", "for i in range(6):", "    x[i] += box.half + (box * i)"]
    function = function_of(lines, Box=Computing)
    assert recorded(function)[0]
    check(function)


def test_float32_stays_with_numbers_of_pythons() -> None:
    function = function_of(
        [
            "for i in range(5):",
            "    x = x * min(i, 7) + int(i / 2) + float(i) + round(i / 3)",
            "return x",
        ]
    )
    x, y, A = np.ones(6, np.float32), np.zeros(6), np.zeros((6, 6))
    made = tj.jit(function)(x, y, A)
    assert made.dtype == np.float32
    np.testing.assert_allclose(made, function(x, y, A), 1e-6)


def test_numbers_made_of_themselves_again_and_again() -> None:
    """In 2 ** 100 ways."""
    counter = parameter(0, Shape(ElementType.S64))
    with counting(counter, Affine(0), Affine(9)):
        grown = same = counter
        for _ in range(100):
            grown = add(grown, grown)
            same = add(same, sub(same, same))
        assert affine(grown) is None  # it does not fit
        assert affine(same) == Affine(0, {counter: 1})
