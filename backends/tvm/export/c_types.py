"""Maps element types to C types."""

from __future__ import annotations

import numpy as np

_NAMES = {
    "float32": "float",
    "float64": "double",
    "complex64": "float",
    "complex128": "double",
    "bool": "uint8_t",
    "int4": "uint8_t",
    "uint4": "uint8_t",
    "float16": "uint16_t",
    "bfloat16": "uint16_t",
}
_NOTES = {
    "complex64": "real and imaginary parts in turn",
    "complex128": "real and imaginary parts in turn",
    "bool": "0 or 1",
    "int4": "two's complement in the low four bits",
    "uint4": "0 to 15",
    "float16": "bits of IEEE half precision",
    "bfloat16": "bits of bfloat16",
}

C_KEYWORDS = frozenset(
    "auto bool break case char const continue default do double else enum extern false float for "
    "goto if inline int long main nullptr register restrict return short signed sizeof static "
    "struct switch true typedef typeof union unsigned void volatile while and or not xor class "
    "delete export friend namespace new operator private protected public template this throw try "
    "catch using virtual asm".split()
)
"""Keywords of C and C++."""

C_NAMES = frozenset(
    "API EOF I INFINITY NAN NULL assert complex errno imaginary linux noreturn stderr stdin stdout "
    "unix int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t".split()
)
"""Macros of the C library's headers, and type names that prototypes use."""


def c_type(dtype: np.dtype) -> str:
    """The C type of the elements of an array of ``dtype``; a complex number is two of them."""
    if dtype.name in _NAMES:
        return _NAMES[dtype.name]
    # Floats of eight bits and less take a byte each.
    return f"{dtype.name}_t" if dtype.kind in "iu" else f"uint{8 * dtype.itemsize}_t"


def note(dtype: np.dtype) -> str:
    """What the C type leaves open about the elements; empty if nothing."""
    if dtype.name in _NOTES:
        return _NOTES[dtype.name]
    return "" if dtype.name in _NAMES or dtype.kind in "iu" else f"bits of {dtype.name}"
