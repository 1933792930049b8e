"""Arrays for comparisons with NumPy: drawn over dtypes, shapes, memory layouts, special values.

arrays_of("r+", ())           real elements, at least one, of rank 1 to 3
arrays_of("f=!", arrays)      floating, of the first array's shape, NaN and infinities too
arrays_of("ab#", arrays)      of a shape that stretches to the first array's, elements of any size

A word is a kind (a letter of KINDS), a shape (a sign of SHAPES) and perhaps ``!`` or ``#``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

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
SHAPES: dict[str, st.SearchStrategy[Sizes]] = {
    "*": array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
    "+": array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4),
    "v": array_shapes(min_dims=1, max_dims=1, min_side=1, max_side=6),
    "V": array_shapes(min_dims=1, max_dims=1, min_side=4, max_side=7),
    "m": array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=4),
    "M": st.just((3, 4)),
    "s": st.just((3, 3)),
    "S": st.sampled_from([(3, 3), (2, 3, 3), (1, 2, 3, 3), (0, 3, 3)]),
    "C": st.just((2, 3, 4)),
    "0": st.just(()),
    "4": st.just((4,)),
}


@st.composite
def arrays_of(draw: st.DrawFn, word: str, before: Sequence[np.ndarray]) -> np.ndarray:
    """An array as the word says; see the module."""
    dtype = np.dtype(draw(st.sampled_from(KINDS[word[0]])))
    sign = word[1]
    if sign in "=b":
        shape = before[0].shape
        if sign == "b":
            ones = draw(st.lists(st.booleans(), min_size=len(shape), max_size=len(shape)))
            shape = tuple(1 if one else size for one, size in zip(ones, shape, strict=True))
            shape = shape[draw(st.integers(0, len(shape))) :]
    else:
        shape = draw(SHAPES[sign])
    made = draw(arrays(dtype, shape, elements=elements(dtype, word[2:]), fill=st.nothing()))
    return laid_out(made, draw(st.sampled_from(LAYOUTS)))


@cache
def elements(dtype: np.dtype, which: str) -> st.SearchStrategy[Any]:
    """Small numbers, many of them equal; special ones with ``!``, those of any size with ``#``.

    Sums and products of the small ones are exact.
    """
    if dtype.kind == "b":
        return st.booleans()
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        small = st.integers(max(limits.min, -9), 9)
        if which != "#":
            return small
        return small | st.sampled_from([limits.min, limits.min + 1, limits.max - 1, limits.max])
    if dtype.kind == "c":
        part = elements(np.empty(0, dtype).real.dtype, which)
        return st.builds(complex, part, part)
    quarters = st.integers(-12, 12).map(lambda n: n / 4)
    if not which:
        return quarters
    limits = np.finfo(dtype)
    special = [np.nan, np.inf, -np.inf, -0.0, 0.0, float(limits.smallest_subnormal)]
    if which == "!":
        return quarters | st.sampled_from(special)
    far = [float(limits.max), float(limits.min), float(limits.tiny), float(limits.eps)]
    return quarters | st.sampled_from(special + far) | st.floats(width=8 * dtype.itemsize)  # type: ignore[arg-type]


LAYOUTS = ("rows", "columns", "reversed", "strided", "broadcast", "turned", "read-only")


def laid_out(array: np.ndarray, layout: str) -> np.ndarray:
    """The same array in memory that lies otherwise; "broadcast" repeats the first row."""
    if not array.ndim:
        return array
    if layout == "columns":
        return np.asfortranarray(array)
    if layout == "reversed":
        turned: np.ndarray = array[::-1].copy()[::-1]
        return turned
    if layout == "strided":
        return np.repeat(array, 2, -1)[..., ::2]
    if layout == "broadcast" and len(array):
        return np.broadcast_to(array[:1], array.shape)
    if layout == "turned":
        return np.moveaxis(np.moveaxis(array, 0, -1).copy(), -1, 0)
    if layout == "read-only":
        array.flags.writeable = False
    return array
