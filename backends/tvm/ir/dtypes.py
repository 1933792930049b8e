"""Maps element types to TVM dtypes, in memory and in registers.

    memory      uint8 for pred and f8, uint16 for bf16, floats for complex
    register    the type of arithmetic: f32 for f8, bf16 and f16, bool for pred, else as in memory

A complex value is a pair of real expressions, and is interleaved in a buffer of reals.
"""

from __future__ import annotations

from tracejit.shapes import ElementType

_MEMORY = {
    ElementType.PRED: "uint8",
    ElementType.S4: "int8",
    ElementType.S8: "int8",
    ElementType.S16: "int16",
    ElementType.S32: "int32",
    ElementType.S64: "int64",
    ElementType.U4: "uint8",
    ElementType.U8: "uint8",
    ElementType.U16: "uint16",
    ElementType.U32: "uint32",
    ElementType.U64: "uint64",
    ElementType.F8E4M3FN: "uint8",
    ElementType.F8E5M2: "uint8",
    ElementType.BF16: "uint16",
    ElementType.F16: "float16",
    ElementType.F32: "float32",
    ElementType.F64: "float64",
    ElementType.C64: "float32",
    ElementType.C128: "float64",
}

_NARROW_FLOATS = frozenset(
    {ElementType.F8E4M3FN, ElementType.F8E5M2, ElementType.BF16, ElementType.F16}
)


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
