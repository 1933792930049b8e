"""Denormal numbers taken for zeros, as XLA's CPU backend may.

without_denormals(array)     the array, its denormal numbers zeros of their sign
flushed(value)               the same for every array within a value
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tests.fuzz.comparing import changed
from tracejit.shapes import ElementType, element_type_of


def without_denormals(array: np.ndarray) -> np.ndarray:
    """Denormal numbers as zeros of their sign, in the types whose arithmetic XLA does so in.

    Where there is no zero, it becomes NaN.
    """
    element_type = element_type_of(array.dtype)
    if not element_type.has_zero:
        least = np.uint8(0).view(array.dtype)
        return np.where(array == least, np.array(np.nan).astype(array.dtype), array)
    if element_type.is_complex:
        made = np.empty_like(array)
        made.real, made.imag = without_denormals(array.real), without_denormals(array.imag)
        return made
    if element_type not in (ElementType.BF16, ElementType.F32, ElementType.F64):
        return array
    tiny = float(ml_dtypes.finfo(array.dtype).tiny)  # type: ignore[no-untyped-call]
    wide = array.astype(np.float64)
    small = (np.abs(wide) < tiny) & (wide != 0)
    return np.where(small, np.copysign(0.0, wide).astype(array.dtype), array)


def flushed(value: Any) -> Any:
    """The value, denormal numbers in all of its arrays zeros."""
    return changed(without_denormals, value)
