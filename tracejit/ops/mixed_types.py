"""Products of two element types: both operands in one type that holds the values of each.

of_one_type(f8e4m3fn, f8e5m2, None)     both f16, and so exact
"""

from __future__ import annotations

from tracejit.graph import Instruction
from tracejit.ops.element_types import convert_element_type
from tracejit.shapes import ElementType, Shape


def of_one_type(
    lhs: Instruction, rhs: Instruction, result: ElementType | None
) -> tuple[Instruction, Instruction]:
    """The operands of a dot or a convolution, converted where their types differ.

    ``result`` is the type of the sums, where that is known.
    """
    if not isinstance(lhs.shape, Shape) or not isinstance(rhs.shape, Shape):
        return lhs, rhs
    types = lhs.shape.element_type, rhs.shape.element_type
    if types[0] is types[1]:
        return lhs, rhs
    wide = common_type(*types, result)
    return convert_element_type(lhs, wide), convert_element_type(rhs, wide)


def common_type(a: ElementType, b: ElementType, result: ElementType | None) -> ElementType:
    """An element type for products of two others, which holds every value of narrower floats."""
    if ElementType.PRED in (a, b):
        return b if a is ElementType.PRED else a
    if a.is_complex or b.is_complex:
        double = ElementType.C128 in (a, b) or ElementType.F64 in (a, b)
        return ElementType.C128 if double else ElementType.C64
    if a.is_integral and b.is_integral:
        if result is not None and result.is_integral:
            return result  # sums wrap around, so higher bits do not matter
        signed = a.is_signed or b.is_signed
        bits = max(t.bits * 2 if signed and not t.is_signed else t.bits for t in (a, b))
        return ElementType(f"{'s' if signed else 'u'}{min(max(bits, 8), 64)}")
    floats = [t for t in (a, b) if t.is_floating]
    widest = max(floats, key=lambda t: t.bits)
    if len(floats) == 1:
        return widest if widest.bits >= 32 else ElementType.F32
    if widest.bits >= 32:
        return widest
    if all(t.embedding is ElementType.F16 for t in floats):
        return ElementType.F16
    # bf16 has the values of all small floats, f16 not those of f8e8m0fnu.
    return ElementType.F32 if ElementType.F16 in floats else ElementType.BF16
