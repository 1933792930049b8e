"""Flattening by a known structure: the same leaves as flattening by discovery."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracejit import tree
from tracejit.runtime.dispatch import flattener


class Pair(NamedTuple):
    x: Any
    y: Any


TREES = st.recursive(
    st.one_of(st.floats(allow_nan=False), st.none()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(st.text(max_size=2), inner, max_size=4),
        st.builds(Pair, inner, inner),
        st.lists(inner, max_size=3).map(lambda v: OrderedDict(enumerate(v))),
    ),
    max_leaves=12,
)


@given(TREES)
def test_the_leaves_are_those_of_a_general_flattening(value: Any) -> None:
    leaves, structure = tree.flatten(value)
    assert list(flattener(structure)(value)) == leaves


@given(TREES, TREES)
def test_another_structure_gives_no_leaves_alone(expected: Any, value: Any) -> None:
    """Either an error, or a container among the leaves, which is no array."""
    wanted, found = tree.structure(expected), tree.structure(value)
    try:
        leaves = flattener(wanted)(value)
    except LookupError:
        assert wanted != found
    else:
        containers = [leaf for leaf in leaves if not tree.structure(leaf).is_leaf()]
        assert bool(containers) == (wanted != found)


@pytest.mark.parametrize(
    ("expected", "value"),
    [
        ({"a": 1, "b": 2}, {"a": 1}),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": 1}, {"b": 1}),
        ({"a": 1}, OrderedDict(a=1)),
        ((1, 2), (1, 2, 3)),
        ((1, 2), [1, 2]),
        ([1], [1, 2]),
        ((1, 2), Pair(1, 2)),
        (Pair(1, 2), (1, 2)),
        (None, 1),
        ((1, {"a": (2, None)}), (1, {"a": (2, 3)})),
        ((1, {"a": (2, 3)}), (1, {"a": (2,)})),
        ({}, {"a": 1}),
        ((), (1,)),
    ],
)
def test_mismatches_are_found(expected: Any, value: Any) -> None:
    with pytest.raises(LookupError):
        flattener(tree.structure(expected))(value)


def test_dicts_are_taken_in_the_order_of_their_keys() -> None:
    flatten = flattener(tree.structure({"b": 1, "a": 2}))
    assert list(flatten({"b": 10, "a": 20})) == [20, 10]
    assert list(flatten({"a": 20, "b": 10})) == [20, 10]
