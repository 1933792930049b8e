"""Steps of one operand that keep every element in its place."""

from __future__ import annotations

from functools import partial

from tests.fuzz.graph import Graph
from tests.fuzz.steps.elementwise import accepted, builder
from tracejit.attributes import ResultAccuracy
from tracejit.graph import OPS, Instruction

UNARY = [name for name, op in OPS.items() if op.family == "elementwise_unary"]
_ACCURACIES = (None, None, ResultAccuracy("highest"), ResultAccuracy(rtol=1e-3, ulps=4))


def unary(name: str, graph: Graph) -> Instruction:
    operand = graph.value(accepted(name, 1, graph.is_single))
    if any(a.name == "result_accuracy" for a in OPS[name].attributes):
        return builder(name)(operand, graph.choices.pick(_ACCURACIES))
    return builder(name)(operand)


STEPS = {name: (partial(unary, name),) for name in UNARY}
