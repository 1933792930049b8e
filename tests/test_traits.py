"""Traits of ops, which passes ask instead of keeping lists of ops."""

from __future__ import annotations

import numpy as np

import tracejit as tj
from tracejit.graph import INTERNAL_OPS, OPS, Computation, Trait
from tracejit.ops.base import make
from tracejit.ops.constants import constant
from tracejit.runtime import importing_tvm

with importing_tvm():
    import tracejit.backends.tvm.ir.internal_ops

ELEMENTWISE = ("comparison", "element_types", "elementwise", "elementwise_unary")


def test_traits_of_families() -> None:
    for op in (*OPS.values(), *INTERNAL_OPS.values()):
        assert op.is_elementwise == (op.family in ELEMENTWISE), op
        assert op.is_arithmetic == (op.is_elementwise and op.family != "element_types"), op


def test_functions_and_combinations() -> None:
    every = [*OPS.values(), *INTERNAL_OPS.values()]
    for op in every:
        assert not (op.is_cheap and op.is_transcendental), op
        assert op.is_elementwise or not (op.is_cheap or op.is_transcendental), op
        accurate = any(attribute.name == "result_accuracy" for attribute in op.attributes)
        assert op.is_transcendental or not accurate, op
    monoids = {op.name for op in every if op.is_monoid}
    assert monoids == {"Add", "And", "Max", "Min", "Mul", "Or", "Xor"}
    assert {op.name for op in every if op.is_idempotent} == {"And", "Max", "Min", "Or"}
    one = np.array([3, 5])
    for name in monoids:
        x, y, z = (constant(value) for value in (one, one[::-1], one * 2))
        made = make(OPS[name], make(OPS[name], x, y), z), make(OPS[name], x, make(OPS[name], z, y))
        left, right = (np.asarray(tj.interpret(Computation("f", (), m))) for m in made)
        np.testing.assert_array_equal(left, right)
        same = np.asarray(tj.interpret(Computation("f", (), make(OPS[name], x, x))))
        assert (same == one).all() == OPS[name].is_idempotent


def test_movements() -> None:
    moving = {name for name, op in OPS.items() if op.is_movement}
    views = {"BroadcastInDim", "Reshape", "Rev", "Slice", "Transpose"}
    assert moving == views | {"Concatenate", "Pad"}
    assert {name for name, op in OPS.items() if op.is_view} == views
    assert all(Trait.MOVEMENT in op.traits for op in OPS.values() if op.is_view)
