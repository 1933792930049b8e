"""What a definition of an op may not say, and errors of users' functions with the op's name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.custom_ops import Op
from tracejit.errors import ArgumentError, InvalidArgumentError, ShapeError


def test_an_attribute_called_name() -> None:
    with pytest.raises(ArgumentError, match="an attribute cannot be called 'name'"):
        Op("RefusedAttribute").attr("name: int")


def test_a_shape_function_that_is_none() -> None:
    with pytest.raises(ArgumentError, match="shape function 3 is no function"):
        Op("RefusedShapeFunction").set_shape_fn(3)  # type: ignore[arg-type]


def test_sizes_that_are_no_integers() -> None:
    op = Op("RefusedSizes").input("x: float").output("y: float").set_shape_fn(lambda c: (2.7,))
    with pytest.raises(ShapeError, match="RefusedSizes: a shape is a sequence of integers"):
        tj.jit(op).lower(np.zeros(2, np.float32))


def test_what_a_shape_function_raises() -> None:
    def shape(c: Any) -> Any:
        raise KeyError("missing")

    op = Op("RaisingShape").input("x: float").output("y: float").set_shape_fn(shape)
    with pytest.raises(InvalidArgumentError, match="RaisingShape: the shape function raised Key"):
        tj.jit(op).lower(np.zeros(2, np.float32))


def test_layout_constraints_are_the_memory_that_a_function_gets() -> None:
    def function(x: np.ndarray) -> np.ndarray:
        return np.array(x.strides, np.int32)

    text = """HloModule m
ENTRY e {
  x = f32[3,5] parameter(0)
  ROOT r = s32[2] custom-call(x), custom_call_target="strides_of", LAYOUT
}
"""
    tj.register_custom_call("strides_of", function)
    try:
        for layout, strides in (("{1,0}", [20, 4]), ("{0,1}", [4, 12])):
            constraint = f"operand_layout_constraints={{f32[3,5]{layout}}}"
            module = tj.hlo.parse(text.replace("LAYOUT", constraint))
            x = np.zeros((3, 5), np.float32)
            np.testing.assert_array_equal(tj.interpret(module, x), strides)
            np.testing.assert_array_equal(tj.compile(module)(x), strides)
    finally:
        tj.unregister_custom_call("strides_of")
