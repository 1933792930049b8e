"""The op table, walked row by row: an op that lacks a part fails by name."""

from __future__ import annotations

import pytest

from tests.samples.cases import all_samples, families
from tracejit import ops
from tracejit.autodiff.reverse import differentiate
from tracejit.backends.numpy import interpret
from tracejit.graph import OPS, Op
from tracejit.hlo.attributes import READABLE, WRITABLE

__all__ = ["ops"]  # imported for the table it fills

# Builder functions whose plain name would hide a Python built-in.
HIDING = {"and", "map", "not", "or", "slice", "tuple", "while"}


@pytest.fixture(params=list(OPS.values()), ids=list(OPS))
def op(request: pytest.FixtureRequest) -> Op:
    row: Op = request.param
    return row


def test_has_a_shape_rule_and_a_docstring_on_its_builder(op: Op) -> None:
    assert callable(op.shape_rule)
    name = f"{op.function}_" if op.function in HIDING else op.function
    assert getattr(ops, name, None) is not None, f"tracejit.ops lacks {name}"
    assert getattr(ops, name).__doc__, f"{name} has no docstring"


def test_has_an_opcode_of_its_own(op: Op) -> None:
    assert [o.name for o in OPS.values() if o.opcode == op.opcode] == [op.name]


def test_has_attributes_that_text_can_hold(op: Op) -> None:
    kinds = {attribute.kind for attribute in op.attributes}
    assert kinds <= WRITABLE
    assert kinds <= READABLE


def test_has_an_interpreter_rule(op: Op) -> None:
    assert interpret.get(op) or interpret.reason(op)


def test_has_a_derivative_or_a_reason_why_not(op: Op) -> None:
    assert differentiate.get(op) or differentiate.reason(op)


def test_has_samples_in_its_family(op: Op) -> None:
    own = [sample for sample in families().get(op.family, []) if sample.op == op.name]
    assert own, f"tests/samples/{op.family}.py has no sample of {op.name}"


def test_samples_name_ops_of_the_table() -> None:
    assert {sample.op for sample in all_samples()} <= set(OPS)
