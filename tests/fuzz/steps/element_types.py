"""Steps that change the element type, or how much of it is used."""

from __future__ import annotations

from tests.fuzz.graph import Graph
from tests.samples.values import BEYOND_XLA
from tracejit import ops
from tracejit.graph import Instruction
from tracejit.ops.base import COMPLEX, FLOATING, NUMERIC
from tracejit.shapes import ElementType

_JUDGED = [t for t in ElementType if t not in BEYOND_XLA]


def convert(graph: Graph) -> Instruction:
    """From the type that is wanted, or to it."""
    if graph.is_single and graph.choices.chance(2):
        target = graph.element_type()
        shape = graph.shape()
        sources = [t for t in _JUDGED if target in COMPLEX or t not in COMPLEX]
        operand = graph.new(shape.with_element_type(graph.choices.pick(sources)))
        return ops.convert_element_type(operand, target)
    operand = graph.value()
    is_complex = operand.array_shape.element_type.is_complex
    targets = [t for t in _JUDGED if t.is_complex or not is_complex]
    return ops.convert_element_type(operand, graph.choices.pick(targets))


def bitcast(graph: Graph) -> Instruction | None:
    real = [t for t in _JUDGED if t in NUMERIC and not t.is_complex]
    operand = graph.value(real)
    shape = operand.array_shape
    old = shape.element_type
    same = [t for t in real if t.bits == old.bits]
    narrower = [t for t in real if t.bits < old.bits]
    wider = [t for t in real if t.bits > old.bits]
    new = graph.choices.pick([*same, *narrower, *wider])
    if new.bits > old.bits:
        parts = new.bits // old.bits
        if shape.dimensions[-1:] != (parts,):
            operand = graph.like(shape.with_dimensions([*shape.dimensions[:-1], parts]))
    if shape.size * old.bits // new.bits > graph.elements:
        return None
    return ops.bitcast_convert_type(operand, new)


def reduce_precision(graph: Graph) -> Instruction:
    operand = graph.value(FLOATING)
    exponent = graph.choices.integer(1, 12)
    mantissa = graph.choices.pick((*range(1, 12), 0, 23, 24, 51, 52, 53))
    return ops.reduce_precision(operand, exponent, mantissa)


STEPS = {
    "ConvertElementType": (convert,),
    "BitcastConvertType": (bitcast,),
    "ReducePrecision": (reduce_precision,),
}
