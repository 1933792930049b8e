"""The verifier accepts what the builders make and finds what a careless pass would break."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tracejit import ops
from tracejit.errors import VerificationError
from tracejit.graph import Computation, Instruction, Module, Op
from tracejit.ops.base import define
from tracejit.ops.elementwise import ADD
from tracejit.ops.layout import TRANSPOSE
from tracejit.shapes import ElementType, Shape
from tracejit.verifier import verify

F32 = ElementType.F32
X = Shape(F32, (2, 3))


def module(root: Instruction, *parameters: Instruction) -> Module:
    return Module("example", Computation("main", parameters, root))


def test_a_good_module_comes_back() -> None:
    x, y = ops.parameter(0, X), ops.parameter(1, X)
    made = module(ops.reduce_sum(ops.add(x, y), (0,)), x, y)
    assert verify(made) is made


def test_shape_that_the_rule_does_not_give() -> None:
    x = ops.parameter(0, X)
    wrong = Instruction(ADD, (x, x), Shape(F32, (3, 2)), {}, x.source)
    with pytest.raises(VerificationError, match=r"should have the shape f32\[2,3\]") as caught:
        verify(module(wrong, x))
    assert "test_verifier.py:" in str(caught.value)
    assert caught.value.source == x.source


def test_operands_that_the_rule_refuses() -> None:
    x, y = ops.parameter(0, X), ops.parameter(1, Shape(F32, (2, 4)))
    wrong = Instruction(ADD, (x, y), X, {})
    with pytest.raises(
        VerificationError, match=r"breaks its rule: add: .*f32\[2,3\], rhs f32\[2,4\]"
    ):
        verify(module(wrong, x, y))


def test_attributes_that_the_rule_refuses() -> None:
    x = ops.parameter(0, X)
    wrong = replace(ops.transpose(x, (1, 0)), attributes={"dimensions": (1, 1)})
    with pytest.raises(VerificationError, match=r"breaks its rule: transpose: permutation \(1, 1"):
        verify(module(wrong, x))


def test_attributes_that_are_missing_or_too_many() -> None:
    x = ops.parameter(0, X)
    missing = Instruction(TRANSPOSE, (x,), Shape(F32, (3, 2)), {})
    with pytest.raises(VerificationError, match=r"has the attributes \[\], not \['dimensions'\]"):
        verify(module(missing, x))
    extra = Instruction(ADD, (x, x), X, {"dimensions": (0,)})
    with pytest.raises(VerificationError, match=r"has the attributes \['dimensions'\], not \[\]"):
        verify(module(extra, x))


def test_number_of_operands() -> None:
    x = ops.parameter(0, X)
    for operands in ((x,), (x, x, x)):
        with pytest.raises(VerificationError, match=f"does not take {len(operands)} operands"):
            verify(module(Instruction(ADD, operands, X, {}), x))


def test_parameters_out_of_order() -> None:
    x, y = ops.parameter(0, X), ops.parameter(1, X)
    with pytest.raises(VerificationError, match="is parameter 0 but numbered 1"):
        verify(module(ops.add(x, y), y, x))
    with pytest.raises(VerificationError, match="stands in place of parameter 1"):
        verify(module(ops.add(x, y), x, ops.neg(x)))


def test_parameter_of_another_computation() -> None:
    x, y = ops.parameter(0, X), ops.parameter(1, X)
    with pytest.raises(VerificationError, match="is not among the computation's parameters"):
        verify(module(ops.add(x, y), x))


def test_called_computations_are_verified() -> None:
    x, inner = ops.parameter(0, X), ops.parameter(0, X)
    wrong = Instruction(ADD, (inner, inner), Shape(F32, (3, 2)), {})
    called = Computation("wrong", (inner,), wrong)
    with pytest.raises(VerificationError, match="in computation wrong should have the shape"):
        verify(module(ops.call(called, [x]), x))


def test_instruction_older_than_its_operand() -> None:
    x = ops.parameter(0, X)
    old, new = ops.neg(x), ops.neg(x)
    wrong = replace(old, operands=(new,))
    with pytest.raises(VerificationError, match="was made before its operand"):
        verify(module(wrong, x))


def test_op_that_the_table_lacks() -> None:
    x = ops.parameter(0, X)
    stranger = Op("Add", "add", "elementwise", "add", ADD.shape_rule)
    with pytest.raises(VerificationError, match="is of an op that the op table lacks"):
        verify(module(Instruction(stranger, (x, x), X, {}), x))


def test_an_op_cannot_be_defined_twice() -> None:
    with pytest.raises(ValueError, match="op Add is defined twice"):
        define("Add", "add")(lambda lhs, rhs: X)
