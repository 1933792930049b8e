"""Trees of arrays: what is a node, in which order, and classes of one's own."""

from __future__ import annotations

import collections
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit import tree
from tracejit.errors import ArgumentError


def test_flatten_and_back() -> None:
    value = {"b": [1, (2, None)], "a": collections.OrderedDict(z=3, y=4)}
    leaves, structure = tree.flatten(value)
    assert leaves == [3, 4, 1, 2]
    assert tree.unflatten(structure, leaves) == value
    assert tree.leaves(value) == leaves
    assert tree.structure(value) == structure
    assert tree.paths(structure, "p") == ["p['a']['z']", "p['a']['y']", "p['b'][0]", "p['b'][1][0]"]


def test_map() -> None:
    assert tree.map(lambda x, y: x + y, {"a": 1, "b": [2]}, {"a": 10, "b": [20]}) == {
        "a": 11,
        "b": [22],
    }
    with pytest.raises(ArgumentError, match=r"tree\.map: tree 1 is .*; they must be equal"):
        tree.map(lambda x, y: x, {"a": 1}, {"b": 1})
    with pytest.raises(ArgumentError, match="they must be equal"):
        tree.map(lambda x, y: x, [1, 2], (1, 2))


@tree.register_dataclass
@dataclass
class Layer:
    weight: Any
    bias: Any


@dataclass
class Named:
    array: Any
    name: str


tree.register_dataclass(Named, meta_fields=["name"])


class Custom:
    def __init__(self, parts: list[Any], label: str) -> None:
        self.parts = parts
        self.label = label


tree.register_node(
    Custom, lambda c: (c.parts, c.label), lambda label, parts: Custom(list(parts), label)
)


def test_classes() -> None:
    layer = tj.jit(lambda layer: tree.map(lambda x: x * 2, layer))(Layer(np.ones(2), 3.0))
    assert isinstance(layer, Layer)
    np.testing.assert_array_equal(layer.weight, [2, 2])
    assert layer.bias == 6.0
    traced = []

    @tj.jit
    def function(named: Named) -> Any:
        traced.append(named.name)
        return named

    assert function(Named(np.ones(2), "a")).name == "a"
    assert function(Named(np.zeros(2), "a")).name == "a"
    assert function(Named(np.ones(2), "b")).name == "b"
    assert traced == ["a", "b"]
    custom = tj.grad(lambda c: (c.parts[0] * c.parts[1]).sum())(Custom([np.ones(2), 3.0], "x"))
    assert custom.label == "x"
    np.testing.assert_array_equal(custom.parts[0], [3, 3])


def test_dataclasses_are_checked() -> None:
    with pytest.raises(ArgumentError, match="str is not a dataclass"):
        tree.register_dataclass(str)

    @dataclass
    class Wrong:
        a: int
        b: int

    with pytest.raises(ArgumentError, match="must be the fields of Wrong, a, b"):
        tree.register_dataclass(Wrong, data_fields=["a"])
