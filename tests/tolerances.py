"""How close two results must be, by element type, and the comparison itself."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tracejit.shapes import ElementType, element_type_of

# Relative to the value: a few units in the last place. Integers and pred must be equal.
RELATIVE = {
    **{t: 1.04 * 0.5**t.float_format.mantissa_bits for t in ElementType if t.is_small_float},
    ElementType.BF16: 0.016,
    ElementType.F16: 0.002,
    ElementType.F32: 2e-6,
    ElementType.F64: 4e-15,
    ElementType.C64: 4e-6,
    ElementType.C128: 1e-14,
}


def differences(
    actual: np.ndarray,
    expected: np.ndarray,
    relative: float | None = None,
    scale: float = 0.0,
) -> str:
    """What differs, in words; empty when ``actual`` is as close to ``expected`` as it must be.

    ``relative`` None means the element type's usual tolerance. ``scale`` is a size to which errors
    may be proportional as well, for sums whose terms are larger than the result. NaN equals NaN,
    and numbers below the smallest normal one equal 0, as XLA flushes them on the CPU. Where there
    is no zero, such a number equals NaN.
    """
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return (
            f"{actual.dtype}{list(actual.shape)} instead of {expected.dtype}{list(expected.shape)}"
        )
    element_type = element_type_of(expected.dtype)
    if not element_type.is_inexact:
        wrong = actual != expected
    elif element_type.is_complex:
        wrong = _apart(actual.real, expected.real, element_type, relative, scale, abs(expected))
        wrong |= _apart(actual.imag, expected.imag, element_type, relative, scale, abs(expected))
    else:
        wrong = _apart(actual, expected, element_type, relative, scale, abs(expected))
    return first_of(wrong, actual, expected)


def first_of(wrong: np.ndarray, actual: np.ndarray, expected: np.ndarray) -> str:
    """How many elements differ, and the first of them; '' where ``wrong`` nowhere is true."""
    places = np.argwhere(wrong)
    if not len(places):
        return ""
    first = tuple(int(i) for i in places[0])
    return (
        f"{len(places)} of {expected.size} elements differ, first at {list(first)}: "
        f"{actual[first]} instead of {expected[first]}"
    )


def same_bits(actual: np.ndarray, expected: np.ndarray) -> str:
    """What differs, in words, when every bit must be equal, NaN's sign and payload excepted."""
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return differences(actual, expected)
    if element_type_of(expected.dtype).is_complex:
        return same_bits(actual.real, expected.real) or same_bits(actual.imag, expected.imag)
    left, right = np.asarray(actual).reshape(-1), np.asarray(expected).reshape(-1)
    with np.errstate(invalid="ignore"):
        both_nan = (left != left) & (right != right)
    bits = (np.ascontiguousarray(a).view(f"u{a.dtype.itemsize}") for a in (left, right))
    wrong = np.not_equal(*bits) & ~both_nan
    places = np.flatnonzero(wrong)
    if not len(places):
        return ""
    return (
        f"{len(places)} of {left.size} elements differ, first number {places[0]}: "
        f"{left[places[0]]} instead of {right[places[0]]}"
    )


def _apart(
    actual: np.ndarray,
    expected: np.ndarray,
    element_type: ElementType,
    relative: float | None,
    scale: float,
    magnitude: np.ndarray,
) -> np.ndarray:
    tolerance = RELATIVE[element_type] if relative is None else relative
    limits = ml_dtypes.finfo(element_type.real.dtype)  # type: ignore[no-untyped-call]
    tiny, step = float(limits.tiny), float(limits.smallest_subnormal)
    wide = np.complex128 if element_type.is_complex else np.float64
    with np.errstate(invalid="ignore"):  # Some processors report the cast of a signalling NaN.
        left, right = actual.astype(np.float64), expected.astype(np.float64)
        sizes = np.abs(magnitude.astype(wide))
    if not element_type.has_zero:
        left, right = (np.where(a == step, np.nan, a) for a in (left, right))
    with np.errstate(invalid="ignore", over="ignore"):
        allowed = tolerance * (np.where(np.isfinite(sizes), sizes, 0) + scale)
        # Small floats are not flushed: the least step counts, which near zero is all there is.
        allowed = np.maximum(allowed, step) if element_type.is_small_float else allowed + tiny
        close = np.abs(left - right) <= allowed
    same = (left == right) | (np.isnan(left) & np.isnan(right))
    return np.asarray(~(close | same))
