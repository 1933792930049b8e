"""Values through which no derivative passes."""

from __future__ import annotations

from tracejit.graph import Instruction
from tracejit.ops import elementwise, elementwise_unary
from tracejit.ops.element_types import bitcast_convert_type
from tracejit.shapes import ElementType

_BITS = {bits: ElementType(f"u{bits}") for bits in (4, 8, 16, 32, 64)}


def stopped(value: Instruction) -> Instruction:
    """The same value without a derivative: its bits as integers, and back.

    XLA has no operation for this; the text of the graph keeps the meaning so, and compilers drop
    the pair.
    """
    element_type = value.array_shape.element_type
    if element_type.is_complex:
        parts = stopped(elementwise_unary.real(value)), stopped(elementwise_unary.imag(value))
        return elementwise.complex(parts[0], parts[1])
    if not element_type.is_floating:
        return value
    return bitcast_convert_type(bitcast_convert_type(value, _BITS[element_type.bits]), element_type)
