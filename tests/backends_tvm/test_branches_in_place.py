"""Branches that write into the memory of what they are given: random programs of loops and branches
beside the interpreter, and what needs no copy."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracejit as tj
from tests.backends_tvm.compiled import check
from tracejit import lax
from tracejit.runtime import importing_tvm

with importing_tvm():
    from tests.lowered import lower
    from tracejit.backends.tvm.cpu.machine import Machine

ROWS, COLUMNS, ARRAYS = 6, 30, 3
SIZE = 5000
MACHINE = Machine(64, 2)

Arrays = tuple[Any, ...]


@dataclass(frozen=True)
class State:
    """What a program has at hand: arrays, a number, and how often the loops around it have run."""

    arrays: Arrays
    number: Any
    step: Any

    def with_array(self, place: int, array: Any) -> State:
        arrays = (*self.arrays[:place], array, *self.arrays[place + 1 :])
        return State(arrays, self.number, self.step)


@dataclass(frozen=True)
class Row:
    """Writes a row of one array, made of a row of another."""

    target: int
    source: int
    place: int
    shift: int

    def run(self, state: State) -> State:
        array, other = state.arrays[self.target], state.arrays[self.source]
        zero, at = np.int64(0), state.step + self.place
        row = lax.dynamic_slice(other, (at + self.shift, zero), (1, COLUMNS)) * 3 + state.number
        return state.with_array(self.target, lax.dynamic_update_slice(array, row, (at, zero)))


@dataclass(frozen=True)
class Scattered:
    """Adds to elements of one array."""

    target: int
    source: int

    def run(self, state: State) -> State:
        array = state.arrays[self.target].copy()
        array[np.array([0, 2, 0])] += state.arrays[self.source][1] + state.step
        return state.with_array(self.target, array)


@dataclass(frozen=True)
class Element:
    """Writes one element, at a place that data gives, which may lie outside."""

    target: int
    source: int

    def run(self, state: State) -> State:
        array, other = state.arrays[self.target].copy(), state.arrays[self.source]
        row = other[2, 3] % (ROWS + 2) - 1
        array[row, 4] = other[state.step, 4] - state.number
        return state.with_array(self.target, array)


@dataclass(frozen=True)
class Whole:
    """Makes all of an array anew, of each element alone, or of others as well."""

    target: int
    source: int
    is_reversed: bool

    def run(self, state: State) -> State:
        array, other = state.arrays[self.target], state.arrays[self.source]
        made = array * 2 + (other[::-1] if self.is_reversed else other)
        return state.with_array(self.target, made)


@dataclass(frozen=True)
class Swap:
    """Two arrays change their names, or one of them gets a second one."""

    one: int
    other: int
    both: bool

    def run(self, state: State) -> State:
        first, second = state.arrays[self.one], state.arrays[self.other]
        swapped = state.with_array(self.one, second)
        return swapped.with_array(self.other, first) if self.both else swapped


@dataclass(frozen=True)
class Read:
    """Remembers one element, which may be written over before it is used."""

    source: int
    row: int

    def run(self, state: State) -> State:
        number = state.number + state.arrays[self.source][self.row + state.step, 3]
        return State(state.arrays, number, state.step)


@dataclass(frozen=True)
class Chosen:
    """One of several lists of statements, by what a number or an element says.

    With ``captures`` branches see what is around them; ``results`` are the arrays that they make,
    the others being as they were.
    """

    branches: tuple[tuple[Any, ...], ...]
    by: int
    captures: bool
    results: tuple[int, ...]

    def run(self, state: State) -> State:
        operands = (state.arrays, state.number)

        def branch(statements: Sequence[Any]) -> Callable[..., Any]:
            def made(arrays: Arrays, number: Any) -> Any:
                inner = State(arrays, number, state.step)
                after = run(statements, state if self.captures else inner)
                return tuple(after.arrays[n] for n in self.results), after.number

            return made

        made = [branch(statements) for statements in self.branches]
        told = state.arrays[self.by][1, 2] + state.number
        if len(made) == 2:
            some, number = lax.cond(told % 2 == 0, *made, *operands)
        else:
            some, number = lax.switch((told % 3).astype(np.int32), made, *operands)
        for place, array in zip(self.results, some, strict=True):
            state = state.with_array(place, array)
        return State(state.arrays, number, state.step)


@dataclass(frozen=True)
class Repeated:
    """Statements in a loop; ``whole`` if all arrays are its state, else those with even numbers."""

    statements: tuple[Any, ...]
    times: int
    whole: bool

    def run(self, state: State) -> State:
        kept = tuple(range(0, ARRAYS, 1 if self.whole else 2))

        def step(i: Any, carried: Any) -> Any:
            some, number = carried
            inner = State(state.arrays, number, i)
            for place, array in zip(kept, some, strict=True):
                inner = inner.with_array(place, array)
            after = run(self.statements, inner)
            return tuple(after.arrays[n] for n in kept), after.number

        begin = tuple(state.arrays[n] for n in kept), state.number
        some, number = lax.fori_loop(np.int64(0), np.int64(self.times), step, begin)
        for place, array in zip(kept, some, strict=True):
            state = state.with_array(place, array)
        return State(state.arrays, number, state.step)


def run(statements: Sequence[Any], state: State) -> State:
    for statement in statements:
        state = statement.run(state)
    return state


def statements(depth: int) -> st.SearchStrategy[tuple[Any, ...]]:
    number = st.integers(0, ARRAYS - 1)
    simple = st.one_of(
        st.builds(Row, number, number, st.integers(0, 3), st.integers(-1, 2)),
        st.builds(Scattered, number, number),
        st.builds(Element, number, number),
        st.builds(Whole, number, number, st.booleans()),
        st.builds(Swap, number, number, st.booleans()),
        st.builds(Read, number, st.integers(0, 3)),
    )
    if not depth:
        return st.lists(simple, max_size=2).map(tuple)
    inner = statements(depth - 1)
    branches = st.one_of(
        st.tuples(inner, st.just(())), st.tuples(inner, inner), st.tuples(inner, st.just(()), inner)
    )
    results = st.lists(number, min_size=1, max_size=ARRAYS, unique=True).map(tuple)
    chosen = st.builds(Chosen, branches, number, st.booleans(), results)
    repeated = st.builds(Repeated, inner, st.integers(1, 3), st.booleans())
    return st.lists(st.one_of(simple, chosen, repeated), min_size=1, max_size=3).map(tuple)


def arrays() -> list[np.ndarray]:
    draws = np.random.default_rng(0)
    return [draws.integers(-9, 9, (ROWS, COLUMNS)) for _ in range(ARRAYS)]


def program(before: Sequence[Any], work: Sequence[Any], remembers: bool) -> Callable[..., Any]:
    """A function of the arrays: what they are in the end, and on the way if it ``remembers``."""

    def function(*given: Any) -> Any:
        state = run(before, State(given, np.int64(1), np.int64(0)))
        after = run(work, state)
        return (*after.arrays, after.number, *(state.arrays[:2] if remembers else ()))

    return function


@settings(max_examples=25, deadline=None)
@given(statements(0), statements(3), st.booleans(), st.booleans())
def test_same_as_the_interpreter(
    before: Sequence[Any], work: Sequence[Any], remembers: bool, donates: bool
) -> None:
    function = program(before, work, remembers)
    module = tj.jit(function).lower(*arrays()).module
    expected = check(module.entry, arrays())
    if not donates:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        made = tj.jit(function, donate_argnums=(0, 1, 2))(*arrays())
    for ours, theirs in zip(made, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def struck(flags: Any) -> Any:
    """A sieve: a loop over an array, in a branch, in a loop."""

    def multiples(i: Any, p: Any) -> Any:
        return lax.while_loop(
            lambda s: s[0] < SIZE,
            lambda s: (s[0] + i, lax.dynamic_update_slice(s[1], np.zeros(1, bool), (s[0],))),
            (i * i, p),
        )[1]

    def step(i: Any, p: Any) -> Any:
        return lax.cond(p[i], multiples, lambda i, p: p, i, p)

    return lax.fori_loop(np.int64(2), np.int64(SIZE), step, flags)


def test_a_loop_in_a_branch_in_a_loop_copies_nothing() -> None:
    flags = np.ones(SIZE, bool)
    module = tj.jit(struck).lower(flags).module
    program = lower(module.entry, MACHINE)
    # The flags are copied once, before the loop.
    assert len(program.kernels) == 2
    assert program.workspace_bytes < SIZE
    check(module.entry, [flags])


def test_branches_that_write_to_one_array_or_to_several() -> None:
    def step(i: Any, state: Any) -> Any:
        return lax.switch(
            (i % 3).astype(np.int32),
            [
                lambda a, b: (set_number(a, i, 1.5), b),
                lambda a, b: (a, set_number(b, i, a[3])),
                lambda a, b: (set_number(a, i, b[4]), set_number(b, i + 1, a[5])),
            ],
            *state,
        )

    def function(*state: Any) -> Any:
        return lax.fori_loop(np.int64(0), np.int64(9), step, state)

    given_arrays = [np.arange(SIZE, dtype=float), np.arange(SIZE, dtype=float)]
    module = tj.jit(function).lower(*given_arrays).module
    assert lower(module.entry, MACHINE).workspace_bytes < SIZE
    check(module.entry, given_arrays)


def set_number(array: Any, place: Any, value: Any) -> Any:
    return lax.dynamic_update_slice(array, np.asarray(value).reshape(1), (place,))


def test_an_array_that_is_needed_after_the_branches_is_copied() -> None:
    def function(x: Any, i: Any) -> Any:
        y = x * 2
        z = lax.cond(i > 2, lambda d: set_number(d, i, 7.0), lambda d: d, y)
        return z, y

    module = tj.jit(function).lower(np.arange(9.0), np.int64(4)).module
    for place in (1, 4):
        check(module.entry, [np.arange(9.0), np.int64(place)])


def test_two_results_of_one_array_have_memory_each() -> None:
    """Also where nobody reads one of them."""

    def function(x: Any, i: Any) -> Any:
        y = x * 2
        _, z = lax.cond(
            i > 2,
            lambda d: (d, set_number(d, i, 7.0)),
            lambda d: (set_number(d, i, 3.0), set_number(d, i, 5.0)),
            y,
        )
        return z

    module = tj.jit(function).lower(np.arange(9.0), np.int64(4)).module
    for place in (1, 4):
        check(module.entry, [np.arange(9.0), np.int64(place)])


@pytest.mark.parametrize("dtype", [np.float64, np.int8, np.complex128, np.bool_])
def test_elements_that_change_places(dtype: Any) -> None:
    """Where they lie is known only when the program runs."""

    def function(x: Any, places: Any) -> Any:
        def step(i: Any, y: Any) -> Any:
            y, a, b = y.copy(), places[i], places[i + 1]
            held = y[a]
            y[a] = y[b]
            y[b] = held
            return lax.cond(a > b, lambda z: z, lambda z: z[::-1], y)

        return lax.fori_loop(np.int64(0), np.int64(6), step, x)

    x = (np.arange(9) * (1 + 2j)).astype(dtype) if dtype is np.complex128 else np.arange(9) > 4
    given_arrays = [x.astype(dtype), np.array([3, -2, 5, 5, 11, 0, 8])]
    check(tj.jit(function).lower(*given_arrays).module.entry, given_arrays)
