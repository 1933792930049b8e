"""Arrays for comparisons with NumPy: drawn over dtypes, shapes, memory layouts, special values.

draw(seed, "r+", first)            real elements, at least one, of rank 1 to 3
draw(seed, "f=!", first)           floating, of the first array's shape, NaN and infinities too
draw(seed, "ab", first)            of a shape that stretches to the first array's

A word is a kind (a letter of KINDS), a shape (a sign of SHAPES) and perhaps ``!``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

BOOL = ("bool",)
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
KINDS: dict[str, tuple[str, ...]] = {
    "a": BOOL + SIGNED + UNSIGNED + FLOATS + COMPLEX,
    "n": SIGNED + UNSIGNED + FLOATS + COMPLEX,
    "r": BOOL + SIGNED + UNSIGNED + FLOATS,
    "o": SIGNED + UNSIGNED + FLOATS,
    "g": SIGNED + FLOATS,
    "x": FLOATS[1:] + COMPLEX,
    "f": FLOATS,
    "h": FLOATS[1:],
    "i": SIGNED + UNSIGNED,
    "j": ("int64",),
    "u": ("uint8",),
    "b": BOOL,
    "d": ("float64",),
    "c": COMPLEX,
}

Sizes = tuple[int, ...]


def _any_shape(rng: np.random.Generator) -> Sizes:
    return tuple(rng.integers(0, 5, rng.integers(0, 4)))


def _some_elements(rng: np.random.Generator) -> Sizes:
    return tuple(rng.integers(1, 5, rng.integers(1, 4)))


SHAPES: dict[str, Callable[[np.random.Generator], Sizes]] = {
    "*": _any_shape,
    "+": _some_elements,
    "v": lambda rng: (int(rng.integers(1, 7)),),
    "V": lambda rng: (int(rng.integers(4, 8)),),
    "m": lambda rng: tuple(rng.integers(1, 5, 2)),
    "M": lambda rng: (3, 4),
    "s": lambda rng: (3, 3),
    "C": lambda rng: (2, 3, 4),
    "0": lambda rng: (),
    "4": lambda rng: (4,),
}
SPECIAL = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0])


def draw(seed: int, word: str, first: np.ndarray | None) -> np.ndarray:
    """An array as the word says; see the module."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(str(rng.choice(KINDS[word[0]])))
    sign = word[1]
    if sign in "=b":
        assert first is not None, "the first array has no other before it"
        shape = first.shape
        if sign == "b":
            shape = tuple(1 if rng.random() < 0.3 else size for size in shape)
            shape = shape[int(rng.integers(0, len(shape) + 1)) :]
    else:
        shape = tuple(map(int, SHAPES[sign](rng)))
    return laid_out(rng, np.asarray(elements(rng, dtype, shape, word.endswith("!"))))


def elements(rng: np.random.Generator, dtype: np.dtype, shape: Sizes, special: bool) -> np.ndarray:
    """Small numbers, many of them equal, and special ones if asked for."""
    if dtype.kind in "bui":
        low = -9 if dtype.kind == "i" else 0
        return rng.integers(low, 2 if dtype.kind == "b" else 10, shape).astype(dtype)
    made = (rng.integers(-12, 13, shape) / 4).astype(dtype)
    if dtype.kind == "c":
        turned: np.ndarray = made + (1j * rng.integers(-12, 13, shape) / 4).astype(dtype)
        return turned
    if special:
        return np.where(rng.random(shape) < 0.3, rng.choice(SPECIAL, shape), made).astype(dtype)
    return made


def laid_out(rng: np.random.Generator, array: np.ndarray) -> np.ndarray:
    """The same array in memory that is contiguous, turned, reversed or strided."""
    way = rng.integers(0, 4)
    if way == 1:
        return np.asfortranarray(array) if array.ndim else array
    if way == 2 and array.ndim:
        turned: np.ndarray = array[::-1].copy()[::-1]
        return turned
    if way == 3 and array.ndim:
        return np.repeat(array, 2, 0)[::2]
    return array
