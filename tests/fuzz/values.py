"""Values that an element type can hold, the odd ones among them.

array(rng, shape)        of one kind drawn at random: usual, small, special, wide, bits, sprinkled
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.samples.values import special_values, usual_values
from tracejit.shapes import ElementType, Shape


def array(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """An array whose values are all of one kind, or usual with a few odd ones."""
    element_type, sizes = shape.element_type, shape.dimensions
    kind = rng.choice(["usual", "small", "special", "wide", "bits", "sprinkled"])
    if kind == "sprinkled":
        odd = _KINDS[rng.choice(["special", "wide", "bits"])](rng, sizes, element_type)
        usual = usual_values(rng, sizes, element_type)
        return np.where(rng.random(sizes) < 0.2, odd, usual).astype(shape.dtype)
    made = np.asarray(_KINDS[kind](rng, sizes, element_type))
    assert made.dtype == shape.dtype
    assert made.shape == sizes
    return made


def _small(
    rng: np.random.Generator, sizes: tuple[int, ...], element_type: ElementType
) -> np.ndarray:
    least = -2 if element_type.is_signed else 0
    with np.errstate(invalid="ignore"):  # f8e8m0fnu has neither zero nor negative numbers
        return rng.integers(least, 4, sizes).astype(element_type.dtype)


def _special(
    rng: np.random.Generator, sizes: tuple[int, ...], element_type: ElementType
) -> np.ndarray:
    values = special_values(element_type)
    if element_type.is_floating:
        dtype = element_type.dtype
        least = float(ml_dtypes.finfo(dtype).smallest_subnormal)  # type: ignore[no-untyped-call]
        values = np.concatenate([values, np.array([least, -3 * least]).astype(dtype)])
    if element_type.is_integral and element_type.bits > 4:
        near = np.array([element_type.bits - 1, element_type.bits, element_type.bits + 1])
        values = np.concatenate([values, near.astype(element_type.dtype)])
    return rng.choice(values, sizes)


def _wide(
    rng: np.random.Generator, sizes: tuple[int, ...], element_type: ElementType
) -> np.ndarray:
    """Numbers of every size that the type holds."""
    if element_type.is_complex:
        real, imag = (_wide(rng, sizes, element_type.real) for _ in range(2))
        return (real + 1j * imag).astype(element_type.dtype)
    if not element_type.is_floating:
        return _bits(rng, sizes, element_type)
    info = ml_dtypes.finfo(element_type.dtype)  # type: ignore[no-untyped-call]
    exponents = rng.uniform(np.log2(float(info.tiny)), np.log2(float(info.max)), sizes)
    signs = rng.choice([-1.0, 1.0], sizes)
    return np.asarray(signs * 2.0**exponents).astype(element_type.dtype)


def _bits(
    rng: np.random.Generator, sizes: tuple[int, ...], element_type: ElementType
) -> np.ndarray:
    """Any bits: NaN of every sign and payload, denormal numbers, integers of every size."""
    dtype = element_type.dtype
    if element_type is ElementType.PRED:
        return rng.integers(0, 2, sizes).astype(bool)
    if element_type.bits < 8:
        return rng.integers(0, 1 << element_type.bits, sizes, np.uint8).view(dtype)
    whole = rng.integers(0, 256, (*sizes, dtype.itemsize), np.uint8)
    return whole.view(dtype).reshape(sizes)


_KINDS = {
    "usual": usual_values,
    "small": _small,
    "special": _special,
    "wide": _wide,
    "bits": _bits,
}


def strided(rng: np.random.Generator, given: np.ndarray) -> np.ndarray:
    """An equal array whose elements lie in memory in some other way."""
    kind = rng.integers(0, 6)
    if kind == 0 and given.ndim:
        return np.flip(np.flip(given, 0).copy(), 0)
    if kind == 1 and given.ndim:
        return np.asfortranarray(given)
    if kind == 2 and given.ndim:
        return np.repeat(given, 2, -1)[..., ::2]
    if kind == 3:
        whole = np.empty(given.nbytes + 1, np.uint8)
        off = whole[1:].view(given.dtype).reshape(given.shape) if given.size else given.copy()
        off[...] = given
        return off
    return given
