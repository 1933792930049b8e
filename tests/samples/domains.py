"""Values that samples draw where the usual ones would not do."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np

from tests.samples.base import Domain
from tracejit.shapes import ElementType, element_type_of


def distinct(rng: np.random.Generator, dimensions: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Values in random order with no ties, as far as the element type has that many."""
    element_type = element_type_of(dtype)
    places = rng.permutation(math.prod(dimensions)).reshape(dimensions)
    if element_type.is_integral:
        low = -(2 ** (element_type.bits - 1)) if element_type.is_signed else 0
        numbers: np.ndarray = places % 2 ** min(element_type.bits, 16) + max(low, -100)
        return numbers.astype(dtype)
    if element_type is ElementType.PRED:
        return (places % 2).astype(dtype)
    if not element_type.has_zero:
        return np.asarray(2.0 ** (places % 200 - 100)).astype(dtype)
    return (places * 0.25 - 2).astype(dtype)


def near_one(rng: np.random.Generator, dimensions: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Values between 0.5 and 1.5, integers 1 and 2, so that products stay small."""
    if element_type_of(dtype).is_inexact:
        return rng.uniform(0.5, 1.5, dimensions).astype(dtype)
    return rng.integers(1, 3, dimensions).astype(dtype)


def small_integers(
    rng: np.random.Generator, dimensions: tuple[int, ...], dtype: np.dtype
) -> np.ndarray:
    """Integers from -3 to 3, or 0 to 3, in any type: their sums of products are exact."""
    element_type = element_type_of(dtype)
    low = -3 if element_type.is_signed else 0 if element_type.has_zero else 1
    return rng.integers(low, 4, dimensions).astype(dtype)


def with_ties(rng: np.random.Generator, dimensions: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Few different values, so that equal elements are common."""
    return rng.integers(0 if element_type_of(dtype).has_zero else 1, 3, dimensions).astype(dtype)


def uniform(low: float, high: float) -> Domain:
    """A domain of values between ``low`` and ``high``; a complex one's imaginary part is positive.

    Integers are drawn from the whole numbers in between.
    """

    def draw(rng: np.random.Generator, dimensions: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        element_type = element_type_of(dtype)
        if not element_type.is_inexact:
            lowest = math.ceil(low) if element_type.is_signed else max(math.ceil(low), 0)
            return rng.integers(lowest, math.floor(high) + 1, dimensions).astype(dtype)
        values = rng.uniform(low, high, dimensions)
        if element_type.is_complex:
            return (values + 1j * rng.uniform(0.25, 0.75, dimensions)).astype(dtype)
        return values.astype(dtype)

    return draw


def away_from_zero(
    rng: np.random.Generator, dimensions: tuple[int, ...], dtype: np.dtype
) -> np.ndarray:
    """Magnitudes between 0.5 and 2 with either sign, of unsigned integers 1 and 2."""
    element_type = element_type_of(dtype)
    signs = rng.choice([-1, 1], dimensions) if element_type.is_signed else 1
    return (uniform(0.5, 2)(rng, dimensions, dtype).astype(_wide(dtype)) * signs).astype(dtype)


def edges(rng: np.random.Generator, dimensions: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """The ends of the range, infinities, NaN, both zeros, one, halves: whatever the type has."""
    element_type = element_type_of(dtype)
    if element_type is ElementType.PRED:
        return rng.choice([False, True], dimensions).astype(dtype)
    if element_type.is_integral:
        least = -(2 ** (element_type.bits - 1)) if element_type.is_signed else 0
        most = 2 ** (element_type.bits - element_type.is_signed) - 1
        values = [least, most, 0, 1, most - 1] + [-1, least + 1] * element_type.is_signed
        return np.array(rng.choice(np.array(values, _wide(dtype)), dimensions)).astype(dtype)
    largest = float(ml_dtypes.finfo(element_type.real.dtype).max)  # type: ignore[no-untyped-call]
    positive = [0.0, 0.5, 1.0, 1.5, 2.5, largest, math.inf, math.nan]
    values = [*positive, *(-value for value in positive)]
    return rng.choice(values, dimensions).astype(dtype)


def _wide(dtype: np.dtype) -> np.dtype:
    """A dtype of NumPy's own that holds every value of ``dtype``."""
    kind = element_type_of(dtype)
    if kind.is_integral:
        return np.dtype(np.int64 if kind.is_signed else np.uint64)
    return np.dtype(np.complex128 if kind.is_complex else np.float64)
