"""Traits of ops, which passes ask instead of keeping lists of ops."""

from __future__ import annotations

from tracejit.graph import INTERNAL_OPS, OPS, Trait
from tracejit.runtime import importing_tvm

with importing_tvm():
    import tracejit.backends.tvm.ir.internal_ops  # noqa: F401  (fills the table)

ELEMENTWISE = ("comparison", "element_types", "elementwise", "elementwise_unary")


def test_traits_of_families() -> None:
    for op in (*OPS.values(), *INTERNAL_OPS.values()):
        assert op.is_elementwise == (op.family in ELEMENTWISE), op
        assert op.is_arithmetic == (op.is_elementwise and op.family != "element_types"), op


def test_movements() -> None:
    moving = {name for name, op in OPS.items() if op.is_movement}
    views = {"BroadcastInDim", "Reshape", "Rev", "Slice", "Transpose"}
    assert moving == views | {"Concatenate", "Pad"}
    assert {name for name, op in OPS.items() if op.is_view} == views
    assert all(Trait.MOVEMENT in op.traits for op in OPS.values() if op.is_view)
