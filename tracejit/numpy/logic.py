"""Logical and bitwise functions, and tests of whole arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.graph import Instruction
from tracejit.numpy import arithmetic, comparison
from tracejit.numpy.reducing import reduced
from tracejit.numpy.universal import Ufunc
from tracejit.ops import elementwise, elementwise_unary
from tracejit.ops.element_types import convert_element_type
from tracejit.shapes import ElementType
from tracejit.trace.convert import Operand, converted, operand
from tracejit.trace.public import implements
from tracejit.trace.tracer import Tracer, lift


class Logical(Ufunc):
    """A function of truth values: every number but zero is true, NaN too."""

    takes_all = True

    def convert(self, value: Operand, element_type: ElementType) -> Instruction:
        return converted(value.natural, ElementType.PRED)

    def _reduce(self, array: Any, *args: Any, **kwargs: Any) -> Any:
        truth = lift(converted(operand(array).natural, ElementType.PRED), False)
        return super()._reduce(truth, *args, **kwargs)

    def _accumulate(self, array: Any, *args: Any, **kwargs: Any) -> Any:
        truth = lift(converted(operand(array).natural, ElementType.PRED), False)
        return super()._accumulate(truth, *args, **kwargs)


logical_and = Logical(np.logical_and, elementwise.and_, "and")
logical_or = Logical(np.logical_or, elementwise.or_, "or")
logical_xor = Logical(np.logical_xor, elementwise.xor, "xor")
logical_not = Logical(np.logical_not, elementwise_unary.not_)

bitwise_and = Ufunc(np.bitwise_and, elementwise.and_, "and")
bitwise_or = Ufunc(np.bitwise_or, elementwise.or_, "or")
bitwise_xor = Ufunc(np.bitwise_xor, elementwise.xor, "xor")
invert = bitwise_not = bitwise_invert = Ufunc(np.invert, elementwise_unary.not_)
left_shift = bitwise_left_shift = Ufunc(np.left_shift, elementwise.shift_left)


def _right_shift(x: Instruction, y: Instruction) -> Instruction:
    if x.array_shape.element_type.is_signed:
        return elementwise.shift_right_arithmetic(x, y)
    return elementwise.shift_right_logical(x, y)


right_shift = bitwise_right_shift = Ufunc(np.right_shift, _right_shift)


def _bitwise_count(x: Instruction) -> Instruction:
    """The bits set in the absolute value, as uint8."""
    magnitude = elementwise_unary.abs(x) if x.array_shape.element_type.is_signed else x
    return convert_element_type(elementwise_unary.population_count(magnitude), ElementType.U8)


bitwise_count = Ufunc(np.bitwise_count, _bitwise_count)


@implements(np.isclose)
def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Which elements satisfy |a - b| <= atol + rtol * |b|; equal infinities do.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tnp.isclose([1.0, 2.0], [1.0 + 1e-9, 2.1])
    array([ True, False])
    """
    x, y = lift(operand(a).natural, False), lift(operand(b).natural, False)
    distance = arithmetic.absolute(arithmetic.subtract(_number(x), _number(y)))
    allowed = arithmetic.add(atol, arithmetic.multiply(rtol, arithmetic.absolute(_number(y))))
    near = logical_and(comparison.less_equal(distance, allowed), comparison.isfinite(y))
    close = logical_or(near, comparison.equal(x, y))
    if not equal_nan:
        return close
    return logical_or(close, logical_and(comparison.isnan(x), comparison.isnan(y)))


def _number(x: Tracer) -> Tracer:
    return x if x.element_type.is_inexact else x.astype(np.float64)


@implements(np.allclose)
def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Whether all elements are close; see `isclose`.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tnp.allclose([1.0, 2.0], [1.0, 2.0 + 1e-9])
    np.True_
    """
    return reduced("and", isclose(a, b, rtol, atol, equal_nan))


@implements(np.array_equal)
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """Whether two arrays have the same shape and the same elements.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.array_equal([1, 2], [1, 2])
    np.True_
    """
    x, y = operand(a1), operand(a2)
    if x.dimensions != y.dimensions:
        return False
    same = comparison.equal(a1, a2)
    if equal_nan:
        same = logical_or(same, logical_and(comparison.isnan(a1), comparison.isnan(a2)))
    return reduced("and", same)


@implements(np.array_equiv)
def array_equiv(a1: Any, a2: Any) -> Any:
    """Whether two arrays stretch to one shape and have the same elements there.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.array_equiv([1, 1], 1)
    np.True_
    """
    x, y = operand(a1), operand(a2)
    try:
        np.broadcast_shapes(x.dimensions, y.dimensions)
    except ValueError:
        return False
    return reduced("and", comparison.equal(a1, a2))
