"""Maps element types to TVM dtypes, in memory and in registers.

    memory      uint8 for pred and small floats, uint16 for bf16, floats for complex
    register    the type of arithmetic: f32 for small floats, bf16 and f16, bool for pred, else as
                in memory

A complex value is a pair of real expressions, and is interleaved in a buffer of reals.
"""

from __future__ import annotations

from tracejit.shapes import ElementType


def _in_memory(element_type: ElementType) -> str:
    if element_type.is_integral:
        return f"{'int' if element_type.is_signed else 'uint'}{8 * element_type.dtype.itemsize}"
    if element_type in _AS_FLOATS or element_type.is_complex:
        return f"float{element_type.real.bits}"
    return f"uint{8 * element_type.dtype.itemsize}"


_AS_FLOATS = frozenset({ElementType.F16, ElementType.F32, ElementType.F64})
_MEMORY = {t: _in_memory(t) for t in ElementType}
_NARROW_FLOATS = frozenset(t for t in ElementType if t.is_floating and t.bits < 32)
INDEX_TYPES = {"int32": ElementType.S32, "int64": ElementType.S64}
"""The element types of indices, by TVM's dtype."""


def memory_dtype(element_type: ElementType) -> str:
    """TVM's dtype for buffers of this element type."""
    return _MEMORY[element_type]


def register_dtype(element_type: ElementType) -> str:
    """TVM's dtype for arithmetic on this element type."""
    if element_type is ElementType.PRED:
        return "bool"
    return "float32" if element_type in _NARROW_FLOATS else _MEMORY[element_type]


def words(element_type: ElementType) -> int:
    """Buffer items per element: two for complex types, one otherwise."""
    return 2 if element_type.is_complex else 1


def is_narrow(element_type: ElementType) -> bool:
    """Whether registers are wider than memory, so that every op rounds its result."""
    return element_type in _NARROW_FLOATS
