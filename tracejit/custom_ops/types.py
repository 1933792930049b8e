"""The element types that definitions of ops name, as NumPy dtypes.

type_named("float")        dtype('float32'); also DT_FLOAT, float32 and XLA's f32
SETS["numbertype"]         every type that is a number

``STRING`` is the type of tensors of text, which no graph holds: an op on them runs at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.errors import ArgumentError
from tracejit.shapes import ElementType, element_type_of

STRING = np.dtype(np.str_)

_OTHER_NAMES = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "string": STRING.name,
}

_TYPES: dict[str, np.dtype] = {t.dtype.name: t.dtype for t in ElementType}
_TYPES |= {t.value: t.dtype for t in ElementType}
_TYPES |= {other: _TYPES.get(name, STRING) for other, name in _OTHER_NAMES.items()}
_TYPES |= {f"DT_{name.upper()}": dtype for name, dtype in _TYPES.items()}

_NUMBERS = tuple(t.dtype for t in ElementType if t.is_numeric)

SETS: dict[str, tuple[np.dtype, ...] | None] = {
    "type": None,
    "numbertype": _NUMBERS,
    "numerictype": _NUMBERS,
    "realnumbertype": tuple(t for t in _NUMBERS if not element_type_of(t).is_complex),
}
"""Names for many types at once; None is any type."""

UNSUPPORTED = {
    "quantizedtype": "no element type is quantised",
    "resource": "a graph holds arrays, no resources",
    "variant": "a graph holds arrays, no variants",
}
"""Names that definitions for other libraries use, and why there is no such type here."""


def type_named(name: str) -> np.dtype | None:
    """The type of that name, or None."""
    return _TYPES.get(name)


def as_type(value: Any) -> np.dtype:
    """The type that a value names: a dtype, a scalar type of NumPy's, an element type, a name.

    Raises `ArgumentError` for anything else.
    """
    if isinstance(value, str):
        named = type_named(value)
        if named is not None:
            return named
    if value is str or (isinstance(value, np.dtype) and is_text(value)):
        return STRING
    if isinstance(value, int | float) or value is None:
        raise ArgumentError(f"{value!r} names no element type")
    return element_type_of(value).dtype


def is_text(dtype: np.dtype) -> bool:
    """Whether arrays of this dtype hold text: bytes, str or Python objects."""
    return dtype.kind in "SUOT"


def type_name(dtype: np.dtype) -> str:
    """``float32``, ``bool``, ``string``: what documentation and texts of graphs say."""
    return "string" if dtype == STRING else dtype.name
