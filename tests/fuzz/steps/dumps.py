"""Ops that only dumps of compiled modules hold."""

from __future__ import annotations

from tests.building import computation
from tests.fuzz.graph import Graph
from tracejit import ops
from tracejit.graph import Computation, Instruction
from tracejit.ops.base import NUMERIC


def bitcast(graph: Graph) -> Instruction:
    """The same elements under other dimensions."""
    operand = graph.value()
    shape = operand.array_shape
    return ops.bitcast(operand, shape.with_dimensions([shape.size]))


def copy(graph: Graph) -> Instruction:
    return ops.copy(graph.value())


def copy_start(graph: Graph) -> Instruction:
    return ops.copy_done(ops.copy_start(graph.value()))


def fusion(graph: Graph) -> Instruction:
    called, operands = _called(graph)
    return ops.fusion(called, operands, graph.choices.pick(("kLoop", "kInput", "kOutput")))


def async_start(graph: Graph) -> Instruction:
    called, operands = _called(graph)
    bundle = ops.async_start(called, operands)
    if graph.choices.chance(2):
        bundle = ops.async_update(bundle)
    return ops.async_done(bundle)


def _called(graph: Graph) -> tuple[Computation, list[Instruction]]:
    """A computation of two arrays, and arrays for it."""
    first = graph.value(NUMERIC)
    operands = [first, graph.like(first.array_shape)]
    functions = [ops.add, lambda x, y: ops.tuple_([y, ops.sub(x, y)]), ops.mul]
    function = graph.choices.pick(functions)
    return computation("called", function, *[o.shape for o in operands]), operands


STEPS = {
    "Bitcast": (bitcast,),
    "Copy": (copy,),
    "CopyStart": (copy_start,),
    "CopyDone": (copy_start,),
    "Fusion": (fusion,),
    "AsyncStart": (async_start,),
    "AsyncUpdate": (async_start,),
    "AsyncDone": (async_start,),
}
