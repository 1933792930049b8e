"""The values that samples are tried with: usual ones, and the ones that are easy to get wrong."""

from __future__ import annotations

import zlib
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
        low = -8 if element_type.is_signed else 0
        return rng.integers(low, 8, dimensions).astype(np.int8).astype(dtype)
    real = _away_from_zero(rng, dimensions)
    if not element_type.is_signed:
        real = np.abs(real)
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
    # Where there is no zero, XLA takes the least number for one.
    least = [float(limits.tiny)] * element_type.has_zero
    edges = [*least, float(limits.max), float(limits.eps)] if extremes else []
    form = element_type.float_format
    ends = [np.inf] * form.has_infinity + [np.nan] * form.has_nan
    values = np.array([0.0, 0.5, 1.0, 1.5, 2.5, 3.0, 8.0, *edges, *ends])
    with np.errstate(invalid="ignore"):  # f8e8m0fnu has neither zero nor negative numbers
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


BEYOND_XLA = frozenset({ElementType.S1, ElementType.U1})
"""Types that the XLA at hand has no code for: it takes s1 for pred, and has no constants of u1."""
UNLIKE_XLA = frozenset(
    {
        # XLA asks in f4e2m1fn, where the answer is yes, whether 6 is at least 7, or 127, or 65535.
        *((ElementType.F4E2M1FN, t) for t in ElementType if t.is_integral and t.bits > 2),
        # XLA takes the least power of two, a denormal number of f32, for zero.
        (ElementType.F8E8M0FNU, ElementType.PRED),
        (ElementType.F64, ElementType.F8E8M0FNU),
    }
)
"""Conversions, from and to, in which XLA is wrong."""
SIGNLESS_NAN = frozenset(
    t
    for t in ElementType
    if t.is_floating
    and t.has_zero
    and t.float_format.has_nan
    and not t.float_format.has_negative_zero
)
"""Types whose one NaN has no sign, but the code that is -0 elsewhere. It is the last in the total
order, as when NumPy sorts; XLA reads its highest bit as a sign, and lets it come first."""
TABLED = tuple(
    t
    for t in ElementType
    if (t.is_small_float or (t.is_integral and t.bits < 8))
    and str(t) not in ("s4", "u4", "f8e4m3fn", "f8e5m2")
)
"""Types that differ from another small one in what a table says of them, and in nothing else."""
_TABLED_OF_A_SAMPLE = 2


def element_types(sample: Sample) -> Sequence[ElementType]:
    """The sample's element types that XLA can judge, in the order of their definition.

    Of those in `TABLED` a sample has two, others than its neighbours, so that tests do not take
    half as long again: `tests.backends_tvm.test_small_types` tries all, and those `BEYOND_XLA`.
    """
    wanted = [t for t in ElementType if t in sample.element_types and t not in BEYOND_XLA]
    tabled = [t for t in wanted if t in TABLED]
    first = zlib.crc32(f"{sample.op} {sample.label}".encode())
    some = {tabled[(first + n) % len(tabled)] for n in range(_TABLED_OF_A_SAMPLE) if tabled}
    return [t for t in wanted if t not in TABLED or t in some]
