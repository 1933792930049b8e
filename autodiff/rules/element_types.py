"""Ops that change the element type, or how much of it is used."""

from __future__ import annotations

from tracejit.autodiff.reverse import Cotangents, differentiate
from tracejit.graph import Instruction
from tracejit.ops.element_types import (
    BITCAST_CONVERT_TYPE,
    CONVERT_ELEMENT_TYPE,
    REDUCE_PRECISION,
    convert_element_type,
    reduce_precision,
)
from tracejit.ops.elementwise_unary import real

differentiate.decline(BITCAST_CONVERT_TYPE, "reads bits, not values, as stop_gradient does")


@differentiate.attach(CONVERT_ELEMENT_TYPE)
def convert_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    """The cotangent converted back; of a complex one, the real part to a real operand."""
    element_type = instruction.operands[0].array_shape.element_type
    if not element_type.is_differentiable:
        return (None,)
    if not element_type.is_complex and cotangent.array_shape.element_type.is_complex:
        cotangent = real(cotangent)
    return (convert_element_type(cotangent, element_type),)


@differentiate.attach(REDUCE_PRECISION)
def reduce_precision_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    """As if no rounding took place, with the cotangent rounded alike, as JAX does."""
    return (reduce_precision(cotangent, **instruction.attributes),)
