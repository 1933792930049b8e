"""Arguments and results of programs by their shapes: arrays, tuples of them, tokens.

From outside, a dynamic array is an array of the sizes that it has.

flattened(shape, value)            the arrays of a value, in order
assembled(shape, iter(arrays))     the value again
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tracejit.backends.numpy.extents import Dynamic, leaving, padded
from tracejit.errors import ArgumentError
from tracejit.shapes import TOKEN, AnyShape, Shape, TupleShape


def value_of(shape: AnyShape, given: Any, name: str) -> Any:
    """``given`` as a value of ``shape``: an array, a tuple of values, or `TOKEN` for a token.

    Anything goes for a token. Raises `ArgumentError` unless a tuple has as many elements, and for
    an array of another element type or other sizes.
    """
    if isinstance(shape, Shape):
        array = np.asarray(given)
        fits = array.dtype == shape.dtype and (shape.is_dynamic or array.shape == shape.dimensions)
        if not fits:
            was = f"{array.dtype}{list(array.shape)}"
            raise ArgumentError(
                f"{name} must be {shape.dtype}[{shape.dimensions_text}]; it is {was}"
            )
        return padded(array, shape) if shape.is_dynamic else array
    if not isinstance(shape, TupleShape):
        return TOKEN
    if not isinstance(given, tuple | list) or len(given) != len(shape.elements):
        raise ArgumentError(f"{name} must be a tuple of {len(shape.elements)} values, {shape}")
    pairs = zip(shape.elements, given, strict=True)
    return tuple(value_of(s, g, f"{name}[{n}]") for n, (s, g) in enumerate(pairs))


def flattened(shape: AnyShape, value: Any) -> list[np.ndarray]:
    """The arrays of a value, as compiled code takes them; an empty one for a token."""
    if isinstance(value, Dynamic):
        return [value.padded, np.array(value.sizes, np.int32)]
    if isinstance(shape, Shape):
        return [value]
    if not isinstance(shape, TupleShape):
        return [np.zeros(0, np.bool_)]
    pairs = zip(shape.elements, value, strict=True)
    return [leaf for element, part in pairs for leaf in flattened(element, part)]


def assembled(shape: AnyShape, arrays: Iterator[np.ndarray]) -> Any:
    """The value of ``shape`` from the next arrays."""
    if isinstance(shape, TupleShape):
        return tuple(assembled(element, arrays) for element in shape.elements)
    array = next(arrays)
    if isinstance(shape, Shape) and shape.is_dynamic:
        return leaving(Dynamic(array, tuple(next(arrays).tolist())))
    return array if isinstance(shape, Shape) else TOKEN
