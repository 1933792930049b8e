"""Steps of two and three operands that keep every element in its place."""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import partial

from tests.fuzz.graph import Graph
from tracejit import ops
from tracejit.errors import ElementTypeError
from tracejit.graph import OPS, Instruction
from tracejit.ops.base import ORDERED
from tracejit.shapes import ElementType, Shape

# Complex functions have branch cuts, where a zero's sign decides: in graphs, only these go along.
_COMPLEX = {"Add", "Sub", "Mul", "Neg", "Conj", "Real", "Imag", "Abs", "Exp", "Complex"}
BINARY = [
    name
    for name, op in OPS.items()
    if op.family == "elementwise" and name not in ("Clamp", "Select")
]


@functools.cache
def accepted(name: str, operands: int, all_complex: bool) -> frozenset[ElementType]:
    """The element types that an op takes, asked of its shape rule."""
    found = set()
    for element_type in ElementType:
        if element_type.is_complex and not all_complex and name not in _COMPLEX:
            continue
        attributes = {a.name: a.default for a in OPS[name].attributes}
        try:
            OPS[name].shape_rule(*[Shape(element_type)] * operands, **attributes)
        except ElementTypeError:
            continue
        found.add(element_type)
    return frozenset(found)


def builder(name: str) -> Callable[..., Instruction]:
    """The function that builds an op."""
    function = OPS[name].function
    renamed = {"and": "and_", "or": "or_", "not": "not_"}.get(function, function)
    found: Callable[..., Instruction] = getattr(ops, renamed)
    return found


def binary(name: str, graph: Graph) -> Instruction:
    """Operands of one shape, or one of them a scalar, a vector, or with sizes 1 that stretch."""
    choices = graph.choices
    lhs = graph.value(accepted(name, 2, graph.is_single))
    shape = lhs.array_shape
    kind = choices.integer(0, 7)
    if kind == 5:
        rhs = graph.scalar(shape.element_type)
    elif kind == 6 and shape.rank > 1:
        dimension = choices.integer(0, shape.rank - 1)
        rhs = graph.like(shape.with_dimensions([shape.dimensions[dimension]]))
        return builder(name)(lhs, rhs, (dimension,))
    elif kind == 7:
        narrow = [1 if choices.chance(2) else size for size in shape.dimensions]
        rhs = graph.like(shape.with_dimensions(narrow))
    else:
        rhs = graph.like(shape)
    if choices.chance(4):
        lhs, rhs = rhs, lhs
    return builder(name)(lhs, rhs)


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


STEPS = {
    **{name: (partial(binary, name),) for name in BINARY},
    "Clamp": (clamp,),
    "Select": (select,),
}
