"""Sums of cotangents of slices and places: any of them, what they are made of, and how many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracejit as tj
from tests.building import computation
from tracejit import ops
from tracejit.autodiff.accumulator import CotangentAccumulator
from tracejit.graph import Instruction, Module
from tracejit.ops.computations import scalar_computation
from tracejit.shapes import ElementType, Shape, shape_of
from tracejit.traversal import instructions

Dimensions = tuple[int, ...]
Made = tuple[np.ndarray, Instruction]


def values(*sizes: int) -> np.ndarray:
    return np.random.default_rng(sum(sizes)).standard_normal(sizes)


@st.composite
def anything(draw: st.DrawFn, sizes: Dimensions) -> Made:
    value = values(*sizes) + draw(st.integers(0, 3))
    return value, ops.constant(value)


@st.composite
def padded(draw: st.DrawFn, sizes: Dimensions) -> Made:
    """What a Slice's cotangent is, with steps in some."""
    whole, places, around = np.zeros(sizes), [], []
    is_strided = draw(st.booleans())
    for size in sizes:
        start = draw(st.integers(0, size))
        places.append(slice(start, draw(st.integers(start, size)), 1 + is_strided))
    part = values(*whole[tuple(places)].shape)
    whole[tuple(places)] = part
    for size, place, count in zip(sizes, places, part.shape, strict=True):
        inner = (count - 1) * place.step + 1 if count else 0
        around.append((place.start, size - place.start - inner, place.step - 1))
    return whole, ops.pad(ops.constant(part), ops.constant(0.0), around)


@st.composite
def updated(draw: st.DrawFn, sizes: Dimensions) -> Made:
    """What a DynamicSlice's cotangent is; its place may be out of range, and is clamped then."""
    parts = [draw(st.sampled_from([1, min(2, size), size])) for size in sizes]
    starts = [draw(st.integers(-2, size + 2)) for size in sizes]
    whole, part = np.zeros(sizes), values(*parts)
    places = zip(starts, sizes, parts, strict=True)
    clamped = [min(max(start, 0), size - part) for start, size, part in places]
    whole[tuple(slice(s, s + p) for s, p in zip(clamped, parts, strict=True))] = part
    numbers = [ops.constant(np.int32(start)) for start in starts]
    zeros = ops.full(shape_of(whole), 0)
    return whole, ops.dynamic_update_slice(zeros, ops.constant(part), numbers)


@st.composite
def scattered(draw: st.DrawFn, sizes: Dimensions) -> Made:
    """What the cotangent of rows that a Gather reads is."""
    count = draw(st.integers(1, 3))
    rows = draw(st.lists(st.integers(0, sizes[0] - 1), min_size=count, max_size=count))
    whole, part = np.zeros(sizes), values(count, *sizes[1:])
    np.add.at(whole, np.array(rows), part)
    numbers = ops.ScatterDimensionNumbers(tuple(range(1, len(sizes))), (0,), (0,), 1)
    added = scalar_computation("add", ElementType.F64)
    indices = ops.constant(np.array(rows))
    zeros = ops.full(shape_of(whole), 0)
    return whole, ops.scatter(zeros, indices, ops.constant(part), added, numbers)


def total_of(made: list[Made]) -> Instruction:
    total = CotangentAccumulator(made[0][1])
    for _, cotangent in made[1:]:
        total.add(cotangent)
    return total.total()


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_sum(data: st.DataObject) -> None:
    sizes = tuple(data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=3)))
    kinds = data.draw(st.sets(st.sampled_from([anything, padded, updated, scattered]), min_size=1))
    one = st.sampled_from(sorted(kinds, key=lambda kind: kind.__name__))
    made = [data.draw(data.draw(one)(sizes)) for _ in range(data.draw(st.integers(1, 14)))]
    module = Module("sum", computation("sum", lambda: total_of(made)))
    np.testing.assert_allclose(tj.interpret(module), sum(value for value, _ in made), 1e-12, 1e-12)


def made_of(function: Callable[..., Any], *args: Any) -> Counter[str]:
    """How many of each op the gradient has."""
    entry = tj.jit(tj.grad(function)).lower(*args).module.entry
    return Counter(i.op.opcode for i in instructions(entry))


def windows(x: Any) -> Any:
    return sum(np.tanh(x[i : i + 3]).sum() for i in range(30))


def triangle(x: Any) -> Any:
    a = x[:25].reshape(5, 5)
    return sum(np.tanh(a[i, j]) for i in range(5) for j in range(i))


def squares(x: Any) -> Any:
    a = x[:25].reshape(5, 5)
    return sum(np.tanh(a[i : i + 2, j : j + 2]).sum() for i in range(4) for j in range(4))


def same(x: Any) -> Any:
    s = 0.0
    for _ in range(30):
        s = np.tanh(s * x[0] + x[1])
    return s


def chosen(x: Any) -> Any:
    return sum(np.where(x[i] > 0, np.sqrt(x[i]), 0.0) for i in range(30))


@pytest.mark.parametrize(
    ("function", "pads", "concatenations"),
    [(windows, 3, 3), (triangle, 6, 5), (squares, 5, 4 + 8), (same, 1, 1), (chosen, 1, 1)],
)
def test_slices_of_a_loop_make_few_arrays(
    function: Callable[..., Any], pads: int, concatenations: int
) -> None:
    x = values(33)
    made = made_of(function, x)
    assert made["pad"] <= pads
    assert made["concatenate"] <= concatenations
    with np.errstate(all="ignore"):
        tj.check_grads(function, (np.abs(x),), order=2)


def test_places_of_a_loop_make_one_scatter() -> None:
    places = np.array([3, -1, 3, 0, 9, 4, -2, 1, 1, 5])

    def elements(table: Any, numbers: Any) -> Any:
        h = np.zeros(2)
        for i in range(10):
            h = np.tanh(h + table[numbers[i]])
        return h.sum()

    def rows(table: Any, numbers: Any) -> Any:
        h = np.zeros((5, 2))
        for i in range(2):
            h = np.tanh(h + table[numbers.reshape(5, 2)[:, i]])
        return h.sum()

    table = values(10, 2)
    for function in (elements, rows):
        assert made_of(function, table, places)["scatter"] == 1
        tj.check_grads(lambda t, f=function: f(t, places), (table,), order=2)
        compiled = tj.jit(tj.grad(function))(table, places)
        np.testing.assert_allclose(compiled, tj.grad(function)(table, places), 1e-12)


def test_what_was_taken_out_and_put_back_is_the_array() -> None:
    x = ops.parameter(0, Shape(ElementType.F64, (8,)))
    start = [ops.parameter(1, Shape(ElementType.S32))]
    part = ops.dynamic_slice(x, start, (1,))
    cleared = ops.dynamic_update_slice(x, ops.full_like(part, 0), start)
    total = CotangentAccumulator(cleared)
    total.add(ops.dynamic_update_slice(ops.full_like(x, 0), part, start))
    assert total.total() is x


def test_infinities_stay_where_they_are() -> None:
    def function(x: Any) -> Any:
        return sum(np.sqrt(x[i : i + 2]).sum() for i in range(4))

    with np.errstate(all="ignore"):
        gradient = tj.jit(tj.grad(function))(np.array([0.0, 1.0, 1.0, np.nan, 4.0]))
    np.testing.assert_array_equal(gradient, [np.inf, 1, 1, np.nan, 0.25])


def test_many_slices_take_time_in_proportion() -> None:
    x = ops.parameter(0, Shape(ElementType.F64, (10_000,)))
    total = CotangentAccumulator(ops.full_like(x, 0))
    for i in reversed(range(9_998)):
        part = ops.slice_in_dim(x, i, i + 2, 1, 0)
        total.add(ops.pad(part, ops.constant(0.0), [(i, 9_998 - i, 0)]))
    made = Counter(i.op.opcode for i in instructions(computation("sum", lambda: total.total())))
    assert (made["pad"], made["concatenate"], made["add"]) == (2, 2, 2)
