"""Comparisons, the greater and the lesser of two, and which elements are NaN or infinite."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.graph import Instruction
from tracejit.numpy.building import both_parts, equals, fill, has_sign, is_nan, is_negative, where
from tracejit.numpy.storing import finish
from tracejit.numpy.universal import Ufunc
from tracejit.ops import comparison, elementwise, elementwise_unary
from tracejit.ops.computations import highest, lowest
from tracejit.ops.element_types import convert_element_type
from tracejit.shapes import ElementType
from tracejit.trace.convert import converted, operand, scalar
from tracejit.trace.public import implements


def _comparable(element_type: ElementType) -> ElementType:
    """The integer type in which numbers can be compared with those of s64."""
    return element_type if element_type is ElementType.U64 else ElementType.S64


class Comparison(Ufunc):
    """A comparison, in which a Python integer may be beyond the array's range.

    ``direction`` is EQ, NE, GE, GT, LE or LT.
    """

    def __init__(self, like: np.ufunc, direction: str) -> None:
        super().__init__(like, self._compare)
        self.direction = direction

    def operands(
        self, inputs: Any, dtype: Any = None, casting: Any = "same_kind"
    ) -> list[Instruction]:
        given = [operand(value) for value in inputs]
        arrays = [o.element_type for o in given if not o.is_weak]
        numbers = [o for o in given if o.type is int]
        if not (len(arrays) == len(numbers) == 1 and arrays[0].is_integral):
            return super().operands(inputs, dtype, casting)
        (array,), (number,) = arrays, numbers
        if isinstance(number.value, Instruction):
            return [o.to(_comparable(array)) if o is not number else o.natural for o in given]
        if lowest(array) <= number.value <= highest(array):
            return super().operands(inputs, dtype, casting)
        # Beside any number beyond its range an array answers as zeros beside one of that sign.
        sign = scalar(1 if number.value > 0 else -1, ElementType.S8)
        return [
            sign if o is number else fill(converted(o.natural, ElementType.S8), 0) for o in given
        ]

    def _compare(self, x: Instruction, y: Instruction) -> Instruction:
        left, right = x.array_shape.element_type, y.array_shape.element_type
        if left is not right:
            return self._compare_mixed(x, y)
        if left.is_complex and self.direction not in ("EQ", "NE"):
            return self._compare_complex(x, y)
        return comparison.compare(x, y, self.direction)

    def _compare_mixed(self, x: Instruction, y: Instruction) -> Instruction:
        """uint64 with int64: a negative number is less than all, others compare as uint64."""
        signed_left = x.array_shape.element_type.is_signed
        signed = x if signed_left else y
        unsigned = (
            convert_element_type(x, ElementType.U64),
            convert_element_type(y, ElementType.U64),
        )
        same = comparison.compare(unsigned[0], unsigned[1], self.direction)
        less = self.direction in (("LT", "LE", "NE") if signed_left else ("GT", "GE", "NE"))
        return where(is_negative(signed), fill(same, less), same)

    def _compare_complex(self, x: Instruction, y: Instruction) -> Instruction:
        """By real parts, then by imaginary parts."""
        (a, b), (c, d) = both_parts(x), both_parts(y)
        strict = self.direction[0] + "T"
        is_missing = elementwise.or_(is_nan(b), is_nan(d))
        by_real = comparison.compare(a, c, strict)
        by_real = elementwise.and_(by_real, elementwise_unary.not_(is_missing))
        by_imaginary = comparison.compare(b, d, self.direction)
        return elementwise.or_(by_real, elementwise.and_(comparison.eq(a, c), by_imaginary))


equal = Comparison(np.equal, "EQ")
not_equal = Comparison(np.not_equal, "NE")
greater_equal = Comparison(np.greater_equal, "GE")
greater = Comparison(np.greater, "GT")
less_equal = Comparison(np.less_equal, "LE")
less = Comparison(np.less, "LT")


def _complex_extreme(direction: str, x: Instruction, y: Instruction) -> Instruction:
    (a, b), (c, d) = both_parts(x), both_parts(y)
    tie = elementwise.and_(comparison.eq(a, c), comparison.compare(b, d, direction))
    first = elementwise.or_(comparison.compare(a, c, direction), tie)
    return where(elementwise.or_(first, is_nan(x)), x, y)


def _maximum(x: Instruction, y: Instruction) -> Instruction:
    if x.array_shape.element_type.is_complex:
        return where(is_nan(y), where(is_nan(x), x, y), _complex_extreme("GT", x, y))
    return elementwise.max(x, y)


def _minimum(x: Instruction, y: Instruction) -> Instruction:
    if x.array_shape.element_type.is_complex:
        return where(is_nan(y), where(is_nan(x), x, y), _complex_extreme("LT", x, y))
    return elementwise.min(x, y)


def _without_nan(extreme: Any, x: Instruction, y: Instruction) -> Instruction:
    """The other number where one is NaN."""
    if not x.array_shape.element_type.is_inexact:
        made: Instruction = extreme(x, y)
        return made
    return where(is_nan(x), y, where(is_nan(y), x, extreme(x, y)))


maximum = Ufunc(np.maximum, _maximum, "max")
minimum = Ufunc(np.minimum, _minimum, "min")
fmax = Ufunc(np.fmax, lambda x, y: _without_nan(_maximum, x, y))
fmin = Ufunc(np.fmin, lambda x, y: _without_nan(_minimum, x, y))


def _isnan(x: Instruction) -> Instruction:
    return is_nan(x)


def _isfinite(x: Instruction) -> Instruction:
    element_type = x.array_shape.element_type
    if element_type.is_complex:
        real, imaginary = both_parts(x)
        return elementwise.and_(
            elementwise_unary.is_finite(real), elementwise_unary.is_finite(imaginary)
        )
    if element_type.is_floating:
        return elementwise_unary.is_finite(x)
    return comparison.eq(x, x)


def _isinf(x: Instruction) -> Instruction:
    element_type = x.array_shape.element_type
    if element_type.is_complex:
        real, imaginary = both_parts(x)
        return elementwise.or_(_isinf(real), _isinf(imaginary))
    if element_type.is_floating and element_type.float_format.has_infinity:
        return equals(elementwise_unary.abs(x), np.inf)
    return comparison.ne(x, x) if not element_type.is_floating else fill(is_nan(x), False)


isnan = Ufunc(np.isnan, _isnan)
isfinite = Ufunc(np.isfinite, _isfinite)
isinf = Ufunc(np.isinf, _isinf)
signbit = Ufunc(np.signbit, has_sign)


@implements(np.isposinf)
def isposinf(x: Any, out: Any = None) -> Any:
    """Which elements are plus infinity.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.isposinf([np.inf, 1.0])
    array([ True, False])
    """
    value = operand(x).natural
    infinite = elementwise.and_(_isinf(value), comparison.gt(value, fill(value, 0)))
    return finish("isposinf", infinite, out)


@implements(np.isneginf)
def isneginf(x: Any, out: Any = None) -> Any:
    """Which elements are minus infinity.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.isneginf([-np.inf, 1.0])
    array([ True, False])
    """
    value = operand(x).natural
    return finish("isneginf", elementwise.and_(_isinf(value), is_negative(value)), out)
