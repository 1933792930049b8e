"""Computing with element types that NumPy alone does not compute with well.

arithmetic(np.add)        narrow floats through f32, narrow integers through eight bits
wide(np.exp)              every floating type through f64, every complex one through c128
bits_of(x), from_bits(bits, dtype)

The first two make a rule, which rounds once, at the end, to the element type of the result.
Denormals are kept, as NumPy keeps them; XLA on the CPU flushes those of f32 and f64 to zero.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

from tracejit.backends.numpy.interpreter import Value
from tracejit.graph import Instruction
from tracejit.shapes import ElementType, element_type_of


def widened(array: np.ndarray) -> np.ndarray:
    """The same values in a dtype of NumPy's own: float32 for narrow floats, int8 for int4."""
    element_type = element_type_of(array.dtype)
    if element_type.is_small_float:
        return np.asarray(_values(element_type)[array.view(np.uint8)])
    if element_type.is_floating and element_type.bits < 32:
        return array.astype(np.float32)
    if element_type.is_integral and element_type.bits < 8:
        return array.astype(np.int8 if element_type.is_signed else np.uint8)
    return array


@functools.cache
def _values(element_type: ElementType) -> np.ndarray:
    """What each code of a small float is; a NaN that has no sign is positive."""
    codes = np.arange(256, dtype=np.uint8) & np.uint8((1 << element_type.bits) - 1)
    values: np.ndarray = codes.view(element_type.dtype).astype(np.float32)
    if not element_type.float_format.has_negative_zero:
        values[np.isnan(values)] = np.nan
    return values


def narrowed(values: np.ndarray, element_type: ElementType) -> Value:
    """``values``, as NumPy computes with them, rounded to an element type; integers wrap."""
    if not element_type.is_small_float:
        return np.asarray(values.astype(element_type.dtype))
    form = element_type.float_format
    made = values.astype(element_type.dtype)
    if form.has_nan:
        return made
    return np.where(np.isnan(values), np.uint8(form.nan).view(element_type.dtype), made)


def widest(array: np.ndarray) -> np.ndarray:
    """The same values as float64 or complex128."""
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


@dataclass(frozen=True)
class Rounded:
    """A rule that computes with ``widen``ed operands and rounds to the result's element type.

    In the element types ``exact`` nothing is widened or rounded: the ``function`` says it all.
    """

    function: Callable[..., Value]
    widen: Callable[[np.ndarray], np.ndarray]
    exact: Collection[ElementType]

    def __call__(self, instruction: Instruction, *operands: np.ndarray) -> np.ndarray:
        value = np.asarray(self.function(*[self.widen(operand) for operand in operands]))
        return np.asarray(narrowed(value, instruction.array_shape.element_type))


def arithmetic(function: Callable[..., Value]) -> Rounded:
    """A rule from a function that is exact, or rounds once, in f32, f64, c64, c128 and int8 up.

    Integers wrap, those of fewer than eight bits at their own width.
    """
    return Rounded(function, widened, ARITHMETIC)


def wide(function: Callable[..., Value]) -> Rounded:
    """A rule from a function on float64 or complex128, which only the last step rounds."""
    return Rounded(function, widest, _WIDEST)


_WIDEST = (ElementType.F64, ElementType.C128)
ARITHMETIC = (ElementType.F32, ElementType.C64, *_WIDEST)


def bits_of(array: np.ndarray) -> Value:
    """Each element's bits as an unsigned integer of its width, of eight bits for narrower ones."""
    bits = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").reshape(array.shape)
    width = element_type_of(array.dtype).bits
    return bits & np.uint8((1 << width) - 1) if width < 8 else bits


def from_bits(bits: np.ndarray, dtype: np.dtype) -> Value:
    """The inverse of `bits_of`; bits that ``dtype`` lacks are dropped."""
    width = element_type_of(dtype).bits
    if width < 8:
        bits = bits & bits.dtype.type((1 << width) - 1)
    return np.ascontiguousarray(bits.astype(f"u{dtype.itemsize}")).view(dtype).reshape(bits.shape)
