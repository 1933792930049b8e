"""Index arithmetic: an address and the indices it stands for say the same."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracejit.affine import Affine
from tracejit.backends.tvm.ir.affine import (
    LoopVariable,
    linear,
    moved,
    row_major_strides,
    split_row_major,
)

sizes = st.lists(st.integers(1, 5), min_size=1, max_size=4)


def value(index: Affine, at: dict[LoopVariable, int]) -> int:
    return index.constant + sum(factor * at[variable] for variable, factor in index.terms.items())


@given(sizes)
def test_an_address_is_split_into_its_indices(dimensions: list[int]) -> None:
    variables = [LoopVariable(f"d{i}", size) for i, size in enumerate(dimensions)]
    indices = [variable.index for variable in variables]
    address, opaque = linear(indices, dimensions)
    assert not opaque
    parts = split_row_major(address, dimensions)
    assert parts is not None
    for place in np.ndindex(*dimensions):
        at = dict(zip(variables, place, strict=True))
        assert tuple(value(part, at) for part in parts) == place
        assert value(address, at) == np.ravel_multi_index(place, dimensions)


@given(sizes, st.data())
def test_a_split_that_is_found_is_right(dimensions: list[int], data: st.DataObject) -> None:
    """Other dimensions of as many elements: where parts come back, they name the same element."""
    total = math.prod(dimensions)
    divisors = [n for n in range(1, total + 1) if total % n == 0]
    first = data.draw(st.sampled_from(divisors))
    other = [first, total // first]
    variables = [LoopVariable(f"d{i}", size) for i, size in enumerate(dimensions)]
    address, _ = linear([v.index for v in variables], dimensions)
    parts = split_row_major(address, other)
    for place in np.ndindex(*dimensions) if parts is not None else ():
        at = dict(zip(variables, place, strict=True))
        wanted = np.unravel_index(np.ravel_multi_index(place, dimensions), other)
        assert tuple(value(part, at) for part in parts or ()) == tuple(map(int, wanted))


def test_bounds_and_moves() -> None:
    variable = LoopVariable("i", 4)
    turned = moved(variable.index, -2, 7)
    assert isinstance(turned, Affine)
    assert turned.bounds() == (1, 7)
    assert row_major_strides([2, 3, 4]) == (12, 4, 1)
    assert LoopVariable("one", 1).index == Affine()


@pytest.mark.parametrize("seed", range(20))
def test_expressions_have_the_values_of_their_terms(seed: int) -> None:
    random = np.random.default_rng(seed)
    variables = [LoopVariable(f"d{i}", int(random.integers(1, 5))) for i in range(3)]

    def any_expression() -> Affine[LoopVariable]:
        terms = [v.index * int(random.integers(-3, 4)) for v in variables]
        return sum(terms, Affine(int(random.integers(-9, 10))))

    one, other = any_expression(), any_expression()
    replaced, factor = variables[0], int(random.integers(-3, 4))
    values = []
    for numbers in itertools.product(*(range(v.extent) for v in variables)):
        at = dict(zip(variables, numbers, strict=True))
        left, right = value(one, at), value(other, at)
        assert value(one + other, at) == left + right
        assert value(one - other, at) == left - right
        assert value(-one * factor + 5, at) == 5 - left * factor
        assert value(one.add(other, factor), at) == left + right * factor
        assert value(one.replace(replaced, other), at) == value(one, {**at, replaced: right})
        assert value(one.without(replaced), at) == value(one, {**at, replaced: 0})
        values.append(left)
    assert one.bounds() == (min(values), max(values))
    assert one - other + other == one
    assert len({one, other + one - other}) == 1
