"""Arrays compared: as numbers within a tolerance, and what differs in words.

apart(actual, expected, 2e-6)       where numbers are further apart than that
described(wrong, ours, theirs)      how many elements are wrong, and the first of them
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np

from tests.tolerances import first_of
from tracejit.backends.numpy.extents import Dynamic
from tracejit.shapes import element_type_of


def leaves(value: Any) -> list[np.ndarray]:
    """The arrays of a value, tuples taken apart."""
    if isinstance(value, tuple):
        return [leaf for element in value for leaf in leaves(element)]
    return [np.asarray(value)]


def changed(change: Callable[[np.ndarray], np.ndarray], value: Any) -> Any:
    """The value with every array in it changed, also within tuples and of dynamic sizes."""
    if isinstance(value, tuple):
        return tuple([changed(change, element) for element in value])
    if isinstance(value, Dynamic):
        return replace(value, padded=change(value.padded))
    return change(np.asarray(value)) if isinstance(value, np.ndarray | np.generic) else value


def wide(array: np.ndarray) -> np.ndarray:
    """The array in a type of NumPy's own that can be subtracted."""
    element_type = element_type_of(array.dtype)
    if element_type.is_complex:
        return array.astype(np.complex128)
    return array.astype(np.float64) if element_type.is_inexact else array


def same(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Where two floating-point arrays are equal, NaN equal to NaN, by parts for complex ones."""
    if left.dtype.kind == "c":
        return np.asarray(same(left.real, right.real) & same(left.imag, right.imag))
    return np.asarray((left == right) | (np.isnan(left) & np.isnan(right)))


def apart(
    actual: np.ndarray, expected: np.ndarray, relative: float, noise: np.ndarray | float = 0
) -> np.ndarray:
    """Where numbers of one type are further apart than that; the smallest ones equal zero.

    Where there is no zero, the least number equals NaN, which a zero becomes. Complex numbers are
    compared by parts, relative to the size of the whole.
    """
    left, right = wide(actual), wide(expected)
    real = element_type_of(expected.dtype).real.dtype
    tiny = float(ml_dtypes.finfo(real).tiny)  # type: ignore[no-untyped-call]
    if not element_type_of(real).has_zero:
        left, right = (np.where(a == tiny, np.nan, a) for a in (left, right))
    if tiny < 1e-30:  # terms of a sum may have been flushed to zero
        tiny *= 16
    with np.errstate(all="ignore"):
        size = np.abs(right)
        allowed = tiny + relative * np.where(np.isfinite(size), size, 0) + noise
        parts = [(left, right)]
        if left.dtype.kind == "c":
            parts = [(left.real, right.real), (left.imag, right.imag)]
        close = [same(a, b) | (np.abs(a - b) <= allowed) for a, b in parts]
    return np.asarray(~np.logical_and.reduce(close))


def described(wrong: np.ndarray, ours: np.ndarray, theirs: np.ndarray) -> str:
    """What differs where ``wrong`` is true; '' where it nowhere is."""
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return f"{ours.dtype}{ours.shape} instead of {theirs.dtype}{theirs.shape}"
    return first_of(wrong, ours, theirs)
