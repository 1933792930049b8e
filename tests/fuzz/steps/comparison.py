"""Comparisons."""

from __future__ import annotations

from tests.fuzz.graph import Graph
from tracejit import ops
from tracejit.graph import Instruction


def compare(graph: Graph) -> Instruction:
    lhs = graph.value()
    element_type = lhs.array_shape.element_type
    directions = ["EQ", "NE"] if element_type.is_complex else ["LT", "EQ", "NE", "GE", "GT", "LE"]
    total = element_type.is_floating and graph.choices.chance(4)
    direction = graph.choices.pick(directions)
    return ops.compare(lhs, graph.like(lhs.array_shape), direction, "TOTALORDER" if total else None)


STEPS = {"Compare": (compare,)}
