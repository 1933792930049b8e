"""The values that samples are tried with: usual ones, and the ones that are easy to get wrong."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np

from tests.samples.base import Operand, Sample
from tracejit.shapes import ElementType


def usual_values(
    rng: np.random.Generator, dimensions: tuple[int, ...], element_type: ElementType
) -> np.ndarray:
    """Values between -2 and 2 that are not near 0, integers from -8 to 7; no sign, none below 0."""
    dtype = element_type.dtype
    if element_type is ElementType.PRED:
        return rng.integers(0, 2, dimensions).astype(dtype)
    if element_type.is_integral:
        return rng.integers(-8 if element_type.is_signed else 0, 8, dimensions).astype(dtype)
    real = _away_from_zero(rng, dimensions)
    if element_type.is_complex:
        return (real + 1j * _away_from_zero(rng, dimensions)).astype(dtype)
    return real.astype(dtype)


def _away_from_zero(rng: np.random.Generator, dimensions: tuple[int, ...]) -> np.ndarray:
    return np.asarray(rng.uniform(0.2, 2, dimensions) * rng.choice([-1, 1], dimensions))


def special_values(element_type: ElementType, extremes: bool = True) -> np.ndarray:
    """Zeros, infinities, NaN, the extremes and halves; for integers the extremes and small ones.

    Without ``extremes`` no sum of a few values overflows, whatever its order, integers excepted,
    which wrap.
    """
    dtype = element_type.dtype
    if element_type is ElementType.PRED:
        return np.array([False, True])
    if element_type.is_integral:
        low = -(2 ** (element_type.bits - 1)) if element_type.is_signed else 0
        high = low + 2**element_type.bits - 1
        numbers = {low, low + 1, high - 1, high, 0, 1, 2, 3, max(-1, low), max(-2, low)}
        wide = np.uint64 if element_type is ElementType.U64 else np.int64
        return np.array(sorted(numbers), wide).astype(dtype)
    if element_type.is_complex:
        parts = [0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan]
        return np.array([complex(a, b) for a in parts for b in parts], dtype)
    limits = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    edges = [float(limits.tiny), float(limits.max), float(limits.eps)] if extremes else []
    ends = [np.nan] if element_type is ElementType.F8E4M3FN else [np.inf, np.nan]
    values = np.array([0.0, 0.5, 1.0, 1.5, 2.5, 3.0, 8.0, *edges, *ends])
    return np.concatenate([values, -values]).astype(dtype)


def operand_type(operand: Operand, element_type: ElementType) -> ElementType:
    """The element type of an operand when its sample is tried with ``element_type``."""
    return element_type if operand.element_type is None else operand.element_type


def draw(
    sample: Sample,
    element_type: ElementType,
    rng: np.random.Generator,
    special: bool = False,
    extremes: bool = True,
) -> list[np.ndarray]:
    """One array for each operand; ``special`` draws special values where the sample lets us."""
    arrays = []
    for operand in sample.operands:
        given = operand_type(operand, element_type)
        if operand.domain is not None:
            array = operand.domain(rng, operand.dimensions, given.dtype)
        elif special:
            array = rng.choice(special_values(given, extremes), operand.dimensions)
        else:
            array = usual_values(rng, operand.dimensions, given)
        array = np.asarray(array)
        assert array.dtype == given.dtype, f"{sample.op}: domain makes {array.dtype} for {given}"
        assert array.shape == operand.dimensions, f"{sample.op}: domain makes {array.shape}"
        arrays.append(array)
    return arrays


def takes_special(sample: Sample) -> bool:
    """Whether some operand of the sample draws from its whole element type."""
    return any(operand.domain is None for operand in sample.operands)


def element_types(sample: Sample) -> Sequence[ElementType]:
    """The sample's element types, in the order of their definition."""
    return [t for t in ElementType if t in sample.element_types]
