"""Steps of one, two and three operands that keep every element in its place."""

from __future__ import annotations

import functools
from collections.abc import Callable

from tests.fuzz.graph import Graph
from tracejit import ops
from tracejit.errors import ElementTypeError
from tracejit.graph import OPS, Instruction
from tracejit.ops.base import ALL, FLOATING, NUMERIC, ORDERED
from tracejit.shapes import ElementType, Shape

# Complex functions have branch cuts, where a zero's sign decides: only these go along.
_COMPLEX = {"Add", "Sub", "Mul", "Neg", "Conj", "Real", "Imag", "Abs", "Exp", "Complex"}


@functools.cache
def accepted(name: str, operands: int) -> frozenset[ElementType]:
    """The element types that an op takes, asked of its shape rule."""
    found = set()
    for element_type in ElementType:
        if element_type.is_complex and name not in _COMPLEX:
            continue
        attributes = {a.name: a.default for a in OPS[name].attributes}
        try:
            OPS[name].shape_rule(*[Shape(element_type)] * operands, **attributes)
        except ElementTypeError:
            continue
        found.add(element_type)
    return frozenset(found)


BINARY = [
    name
    for name, op in OPS.items()
    if op.family == "elementwise" and name not in ("Clamp", "Select")
]
UNARY = [name for name, op in OPS.items() if op.family == "elementwise_unary"]


def builder(name: str) -> Callable[..., Instruction]:
    """The function that builds an op."""
    function = OPS[name].function
    renamed = {"and": "and_", "or": "or_", "not": "not_"}.get(function, function)
    found: Callable[..., Instruction] = getattr(ops, renamed)
    return found


def binary(graph: Graph) -> Instruction:
    name = graph.choices.pick(BINARY)
    lhs = graph.value(accepted(name, 2))
    shape = lhs.array_shape
    if graph.choices.chance(4):
        rhs = graph.scalar(shape.element_type)
    elif shape.rank > 1 and graph.choices.chance(4):
        dimension = graph.choices.integer(0, shape.rank - 1)
        rhs = graph.like(shape.with_dimensions([shape.dimensions[dimension]]))
        return builder(name)(lhs, rhs, (dimension,))
    else:
        rhs = graph.like(shape)
    if graph.choices.chance(4):
        lhs, rhs = rhs, lhs
    return builder(name)(lhs, rhs)


def unary(graph: Graph) -> Instruction:
    name = graph.choices.pick(UNARY)
    return builder(name)(graph.value(accepted(name, 1)))


def clamp(graph: Graph) -> Instruction:
    operand = graph.value(ORDERED)
    shape = operand.array_shape
    low, high = (
        graph.scalar(shape.element_type) if graph.choices.chance(2) else graph.like(shape)
        for _ in range(2)
    )
    return ops.clamp(low, operand, high)


def select(graph: Graph) -> Instruction:
    on_true = graph.value()
    shape = on_true.array_shape
    pred = Shape(ElementType.PRED, () if graph.choices.chance(4) else shape.dimensions)
    return ops.select(graph.like(pred), on_true, graph.like(shape))


def compare(graph: Graph) -> Instruction:
    lhs = graph.value()
    element_type = lhs.array_shape.element_type
    directions = ["EQ", "NE"] if element_type.is_complex else ["LT", "EQ", "NE", "GE", "GT", "LE"]
    total = element_type.is_floating and graph.choices.chance(4)
    direction = graph.choices.pick(directions)
    return ops.compare(lhs, graph.like(lhs.array_shape), direction, "TOTALORDER" if total else None)


def convert(graph: Graph) -> Instruction:
    operand = graph.value()
    complex_only = operand.array_shape.element_type.is_complex
    accepts = [t for t in ElementType if t.is_complex] if complex_only else ALL
    return ops.convert_element_type(operand, graph.element_type(accepts))


def bitcast(graph: Graph) -> Instruction | None:
    real = [t for t in NUMERIC if not t.is_complex]
    operand = graph.value(real)
    shape = operand.array_shape
    old = shape.element_type
    same = [t for t in ElementType if t in real and t.bits == old.bits]
    narrower = [t for t in ElementType if t in real and t.bits < old.bits]
    wider = [t for t in ElementType if t in real and shape.rank and t.bits > old.bits]
    wider = [t for t in wider if t.bits == old.bits * shape.dimensions[-1]]
    new = graph.choices.pick([*same, *narrower, *wider])
    if shape.size * old.bits // new.bits > graph.elements:
        return None
    return ops.bitcast_convert_type(operand, new)


def reduce_precision(graph: Graph) -> Instruction:
    operand = graph.value(FLOATING)
    exponent, mantissa = graph.choices.integer(2, 9), graph.choices.integer(1, 12)
    return ops.reduce_precision(operand, exponent, mantissa)


STEPS = {
    binary: 8,
    unary: 8,
    clamp: 1,
    select: 2,
    compare: 2,
    convert: 3,
    bitcast: 1,
    reduce_precision: 1,
}
