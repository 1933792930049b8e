"""Constants and structure."""

from __future__ import annotations

from tests.fuzz.graph import Graph
from tracejit import ops
from tracejit.graph import Computation, Instruction
from tracejit.ops.base import NUMERIC
from tracejit.shapes import AnyShape, Shape, TupleShape


def parameter(graph: Graph) -> Instruction | None:
    return None if graph.closed else graph.parameter(graph.shape())


def constant(graph: Graph) -> Instruction:
    return graph.constant(graph.shape())


def iota(graph: Graph) -> Instruction:
    sizes = graph.dimensions() or (3,)
    shape = Shape(graph.element_type(NUMERIC), sizes)
    return ops.iota(shape, graph.choices.integer(0, len(sizes) - 1))


def tuple_(graph: Graph) -> Instruction:
    """Values in a tuple, one of them twice, which a computation hands on."""
    values = [graph.value() for _ in range(graph.choices.integer(0, 3))]
    values = [*values, graph.value(), *values[:1]]
    return _passed_on(ops.tuple_(values))


def get_tuple_element(graph: Graph) -> Instruction:
    """An element of a tuple inside a tuple, both made elsewhere."""
    inner = ops.tuple_([graph.value(), graph.value()])
    outer = _passed_on(ops.tuple_([graph.value(), inner, graph.value()]))
    index = graph.choices.integer(0, 2)
    element = ops.get_tuple_element(outer, index)
    if index == 1:
        return ops.get_tuple_element(element, graph.choices.integer(0, 1))
    return element


def _passed_on(made: Instruction) -> Instruction:
    """The same as the result of a computation, which takes and returns tuples."""
    given = ops.parameter(0, made.shape)
    return ops.call(Computation("passed", (given,), _rebuilt(given, made.shape)), [made])


def _rebuilt(value: Instruction, shape: AnyShape) -> Instruction:
    if not isinstance(shape, TupleShape):
        return value
    parts = [ops.get_tuple_element(value, i) for i in range(len(shape.elements))]
    return ops.tuple_([_rebuilt(part, part.shape) for part in parts])


STEPS = {
    "Parameter": (parameter,),
    "Constant": (constant,),
    "Iota": (iota,),
    "Tuple": (tuple_,),
    "GetTupleElement": (get_tuple_element,),
}
