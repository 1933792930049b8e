"""Building computations: parameters, roots, side effects, and mistakes."""

from __future__ import annotations

import numpy as np
import pytest

import tracejit as tj
from tracejit.builder import XlaBuilder
from tracejit.errors import ArgumentError, AttributeValueError, ElementTypeError, ShapeError
from tracejit.graph import Computation, Instruction, Module
from tracejit.ops import DotDimensionNumbers, GatherDimensionNumbers
from tracejit.shapes import ElementType, Shape
from tracejit.verifier import verify

F32 = ElementType.F32
MATRIX, VECTOR = Shape(F32, (2, 3)), Shape(F32, (3,))
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def begun(*shapes: Shape) -> tuple[XlaBuilder, list[Instruction]]:
    builder = XlaBuilder("example")
    return builder, [builder.parameter(i, shape, f"p{i}") for i, shape in enumerate(shapes)]


def test_is_found_in_the_package() -> None:
    assert tj.builder.XlaBuilder is XlaBuilder


def test_a_computation_is_run_interpreted_and_compiled() -> None:
    builder, (x, v) = begun(MATRIX, VECTOR)
    made = builder.build(builder.mul(x, v, broadcast_dimensions=(1,)))
    assert isinstance(made, Computation)
    assert made.name == "example"
    v_values = np.array([1, 10, 100], np.float32)
    np.testing.assert_array_equal(tj.interpret(made, X, v_values), X * v_values)
    np.testing.assert_array_equal(tj.compile(made)(X, v_values), X * v_values)


def test_a_module_prints_as_hlo() -> None:
    builder, (x,) = begun(MATRIX)
    module = builder.build_module(builder.neg(x))
    assert isinstance(verify(module), Module)
    text = str(module)
    assert "HloModule example" in text
    assert str(tj.hlo.parse(text)) == text


def test_the_last_op_is_the_root_unless_told() -> None:
    builder, (y, x) = begun(Shape(F32), Shape(F32))
    greatest = builder.max(y, x)
    assert builder.build().root is greatest
    assert builder.build(y).root is y


def test_computations_are_arguments_of_ops() -> None:
    inner, (y, x) = begun(Shape(F32), Shape(F32))
    add = inner.build(inner.add(y, x))
    builder, (values,) = begun(MATRIX)
    made = builder.build(builder.reduce(values, builder.constant(np.float32(0)), add, (1,)))
    np.testing.assert_array_equal(tj.interpret(made, X), X.sum(axis=1))


def test_parameters_may_come_in_any_order_and_go_unused() -> None:
    builder = XlaBuilder("example")
    second = builder.parameter(1, VECTOR)
    first = builder.parameter(0, MATRIX)
    made = builder.build(builder.neg(second))
    assert made.parameters == (first, second)


def test_parameters_are_numbered_once_and_without_gaps() -> None:
    builder, _ = begun(MATRIX)
    with pytest.raises(AttributeValueError, match=r"number 0 is taken by parameter 0 \(p0\) f32"):
        builder.parameter(0, VECTOR)
    builder.parameter(2, VECTOR)
    with pytest.raises(AttributeValueError, match=r"without gaps, not \[0, 2\]"):
        builder.build()
    with pytest.raises(AttributeValueError, match="number -1 is negative"):
        builder.parameter(-1, VECTOR)


def test_a_root_of_another_builder_is_refused() -> None:
    builder, (x,) = begun(MATRIX)
    _, (foreign,) = begun(MATRIX)
    with pytest.raises(ArgumentError, match=r"example uses parameter 0 f32.* of another builder"):
        builder.build(builder.add(x, foreign))


def test_a_builder_needs_something_to_return() -> None:
    with pytest.raises(ArgumentError, match="build: empty has no op to return"):
        XlaBuilder("empty").build()
    builder, (x,) = begun(MATRIX)
    with pytest.raises(ArgumentError, match="build: root must be an op of this builder, not tuple"):
        builder.build((x,))  # type: ignore[arg-type]


def test_operands_must_be_ops() -> None:
    builder, (x,) = begun(MATRIX)
    with pytest.raises(ArgumentError, match="add: rhs must be an op of this builder, not float;"):
        builder.add(x, 1.0)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"add: lhs must .* not ndarray float32\[2, 3\]; make"):
        builder.add(lhs=X, rhs=x)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"concatenate: operands\[1\] must be an op of this"):
        builder.concatenate([x, X], 0)  # type: ignore[list-item]
    with pytest.raises(ArgumentError, match="sort: operands must be an op or several, not int"):
        builder.sort(3)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="tuple: elements must be a sequence of ops"):
        builder.tuple(x)  # type: ignore[arg-type]


def test_errors_name_op_argument_shapes_rule_and_line() -> None:
    builder, (x, y) = begun(Shape(F32, (2, 3)), Shape(F32, (4, 5)))
    with pytest.raises(ShapeError) as caught:
        builder.dot(x, y)
    message = str(caught.value)
    assert "dot_general: contracting dimensions must have equal sizes" in message
    assert "lhs f32[2,3] dimension 1 is 3, rhs f32[4,5] dimension 0 is 4" in message
    assert "(test_builder.py:" in message
    with pytest.raises(ElementTypeError, match=r"and: lhs f32.2,3. has element type f32; allowed"):
        builder.and_(x, x)


def test_instructions_know_the_line_that_made_them() -> None:
    builder, (x,) = begun(MATRIX)
    source = builder.neg(x).source
    assert source is not None
    assert source.file == __file__


def test_side_effects_run_though_the_root_needs_none_of_them() -> None:
    builder, (x,) = begun(MATRIX)
    token = builder.outfeed(x)
    made = builder.build(builder.neg(x))
    assert made.effects == (token,)
    assert made.has_effect


def test_infeed_gives_data() -> None:
    builder = XlaBuilder("reader")
    data = builder.infeed(VECTOR)
    assert data.shape == VECTOR
    made = builder.build(builder.neg(data))
    assert made.has_effect


def test_conditional_has_both_of_xlas_forms() -> None:
    inner, (v,) = begun(VECTOR)
    negate = inner.build(inner.neg(v))
    builder, (p, i, x) = begun(Shape(ElementType.PRED), Shape(ElementType.S32), VECTOR)
    two = builder.conditional(p, x, negate, x, negate)
    many = builder.conditional(i, [negate, negate, negate], [x, x, x])
    named = builder.conditional(branch_index=i, branch_computations=[negate], branch_operands=[x])
    assert {made.shape for made in (two, many, named)} == {VECTOR}


def test_map_takes_scalars_that_stay_the_same() -> None:
    inner, (a, b) = begun(Shape(F32), Shape(F32))
    add = inner.build(inner.add(a, b))
    builder, (x, v, s) = begun(MATRIX, VECTOR, Shape(F32))
    made = builder.build(builder.map(x, add, (0, 1), [s]))
    result = tj.interpret(made, X, np.zeros(3, np.float32), np.float32(5))
    np.testing.assert_array_equal(result, X + 5)
    with pytest.raises(ShapeError, match=r"map: static operand 0 f32\[3\] must be a scalar"):
        builder.map(x, add, (0, 1), static_operands=[v])


def test_builders_of_one_name_do_not_meet() -> None:
    first, (x,) = begun(VECTOR)
    second, (y,) = begun(VECTOR)
    assert first.build(first.neg(x)).parameters == (x,)
    assert second.build(second.abs(y)).parameters == (y,)
    assert repr(first) == "<XlaBuilder example with 1 parameters>"


def test_dimension_numbers_may_be_lists() -> None:
    builder, (x, y) = begun(MATRIX, Shape(F32, (3, 2)))
    product = builder.dot_general(x, y, DotDimensionNumbers([1], [0]))  # type: ignore[arg-type]
    rows = GatherDimensionNumbers([1], [0], [0], 1)  # type: ignore[arg-type]
    taken = builder.gather(x, builder.constant(np.array([[1]])), rows, [1, 3])
    assert product.array_shape.dimensions == (2, 2)
    assert taken.array_shape.dimensions == (1, 3)
    assert hash(rows) == hash(GatherDimensionNumbers((1,), (0,), (0,), 1))
    verify(builder.build_module(builder.tuple([product, taken])))


def test_element_types_may_be_dtypes() -> None:
    builder, (x,) = begun(MATRIX)
    made = builder.convert_element_type(x, np.int32)  # type: ignore[arg-type]
    assert made.shape == Shape(ElementType.S32, (2, 3))
    with pytest.raises(ArgumentError, match="names no element type"):
        builder.bitcast_convert_type(x, "no type")  # type: ignore[arg-type]
