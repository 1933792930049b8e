"""Short names for the graph ops that NumPy functions use.

All take and return instructions of equal dimensions; a Python number becomes a constant of the
other operand's shape and element type.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit.errors import ArgumentError, DimensionError, TracejitError
from tracejit.graph import Instruction
from tracejit.ops import comparison, elementwise, elementwise_unary, layout
from tracejit.ops.constants import CONSTANT, constant
from tracejit.ops.element_types import bitcast_convert_type, convert_element_type
from tracejit.ops.layout import BROADCAST_IN_DIM
from tracejit.shapes import ElementType, canonical_dimension

Number = complex | np.generic
SIGNED_BITS = {bits: ElementType(f"s{bits}") for bits in (4, 8, 16, 32, 64)}


def fill(like: Instruction, value: Number) -> Instruction:
    """``value`` in every element of an array like ``like``."""
    shape = like.array_shape
    scalar = constant(np.asarray(value).astype(shape.dtype), shape.element_type)
    return layout.broadcast_in_dim(scalar, shape.dimensions, ())


def rounded_once(rule: Callable[..., Instruction]) -> Callable[..., Instruction]:
    """A rule of several operations that rounds float16 at its end alone, as NumPy does."""

    @functools.wraps(rule)
    def run(*operands: Any) -> Instruction:
        if operands[0].array_shape.element_type is not ElementType.F16:
            return rule(*operands)
        wide = [
            convert_element_type(x, ElementType.F32) if isinstance(x, Instruction) else x
            for x in operands
        ]
        return convert_element_type(rule(*wide), ElementType.F16)

    return run


def constant_value(operand: Instruction) -> Number | None:
    """The value that every element is known to have, or None."""
    if operand.op is BROADCAST_IN_DIM:
        operand = operand.operands[0]
    if operand.op is not CONSTANT or operand.array_shape.rank:
        return None
    value: Number = operand.attributes["literal"][()]
    return value


def where(condition: Instruction, x: Instruction, y: Instruction | Number) -> Instruction:
    """``x`` where the condition holds, else ``y``."""
    return elementwise.select(condition, x, y if isinstance(y, Instruction) else fill(x, y))


def equals(x: Instruction, value: Number) -> Instruction:
    """Which elements equal ``value``."""
    return comparison.eq(x, fill(x, value))


def is_negative(x: Instruction) -> Instruction:
    """Which elements are below zero; -0 is not."""
    return comparison.lt(x, fill(x, 0))


def is_nan(x: Instruction) -> Instruction:
    """Which elements are NaN; for complex numbers, in either part."""
    return comparison.ne(x, x)


def scaled(x: Instruction, factor: float) -> Instruction:
    """``x * factor``."""
    return elementwise.mul(x, fill(x, factor))


def shifted(x: Instruction, term: float) -> Instruction:
    """``x + term``."""
    return elementwise.add(x, fill(x, term))


def signed_bits(x: Instruction) -> Instruction:
    """The bits of floating numbers as signed integers."""
    return bitcast_convert_type(x, SIGNED_BITS[x.array_shape.element_type.bits])


def has_sign(x: Instruction) -> Instruction:
    """Which elements have their sign bit set; -0 has."""
    if not x.array_shape.element_type.is_signed:
        return comparison.ne(signed_bits(x), signed_bits(x))
    return is_negative(signed_bits(x))


def with_sign(x: Instruction, sign: Instruction) -> Instruction:
    """``x`` with the sign of ``sign``, in which -0 and the sign of a NaN count."""
    magnitude = elementwise_unary.abs(x)
    return where(has_sign(sign), elementwise_unary.neg(magnitude), magnitude)


def widened(x: Instruction) -> Instruction:
    """Floating numbers of fewer than 32 bits as f32, for sums; everything else as it is."""
    element_type = x.array_shape.element_type
    if element_type.is_floating and element_type.bits < 32:
        return convert_element_type(x, ElementType.F32)
    return x


def both_parts(x: Instruction) -> tuple[Instruction, Instruction]:
    """The real and the imaginary part."""
    return elementwise_unary.real(x), elementwise_unary.imag(x)


Axis = int | Sequence[int] | None


def along(axis: int, item: Any) -> tuple[Any, ...]:
    """The index that takes ``item`` along one axis and everything along those before it."""
    return (slice(None),) * axis + (item,)


def axes_of(function: str, axis: Axis, rank: int) -> tuple[int, ...]:
    """The dimension numbers that ``axis`` means, from the front; None means all.

    Raises `DimensionError` when one is out of range or repeated.
    """
    if axis is None:
        return tuple(range(rank))
    given = (axis,) if np.ndim(axis) == 0 else tuple(axis)  # type: ignore[arg-type]
    axes = tuple(canonical_axis(function, one, rank) for one in given)  # type: ignore[arg-type]
    if len(set(axes)) != len(axes):
        raise DimensionError(f"{function}: axis {axis} names a dimension twice")
    return axes


def integer(function: str, name: str, value: Any) -> int:
    """An argument that must be known and an integer. Raises `ArgumentError` for any other."""
    try:
        return operator.index(value)
    except TypeError as error:
        if isinstance(error, TracejitError):
            raise
        raise ArgumentError(f"{function}: {name} must be an integer, not {value!r}") from None


def canonical_axis(function: str, axis: int, rank: int) -> int:
    """An axis counted from the front.

    Raises `DimensionError` when it is out of range, `ArgumentError` when it is no integer.
    """
    position = integer(function, "axis", axis)
    if not -rank <= position < rank:
        raise DimensionError(
            f"{function}: axis {position} is out of bounds for array of dimension {rank}"
        )
    return canonical_dimension(position, rank, function)
