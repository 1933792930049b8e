"""Values that samples draw where the usual ones would not do."""

from __future__ import annotations

import math

import numpy as np

from tracejit.shapes import ElementType, element_type_of


def distinct(rng: np.random.Generator, dimensions: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Values in random order with no ties, as far as the element type has that many."""
    element_type = element_type_of(dtype)
    places = rng.permutation(math.prod(dimensions)).reshape(dimensions)
    if element_type.is_integral:
        low = -(2 ** (element_type.bits - 1)) if element_type.is_signed else 0
        return (places % 2 ** min(element_type.bits, 16) + max(low, -100)).astype(dtype)
    if element_type is ElementType.PRED:
        return (places % 2).astype(dtype)
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
    low = -3 if element_type.is_signed else 0
    return rng.integers(low, 4, dimensions).astype(dtype)


def with_ties(rng: np.random.Generator, dimensions: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Few different values, so that equal elements are common."""
    return rng.integers(0, 3, dimensions).astype(dtype)
