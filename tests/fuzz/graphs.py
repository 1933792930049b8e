"""Random well-typed graphs of every op, several of them in one module.

cases(graphs=3, steps=20)       a strategy of verified modules

A graph grows step by step; each step takes values that are there, or new ones, and adds what it
makes. What nothing uses becomes a result, so that the rest can be fused away.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.fuzz.choices import Choices
from tests.fuzz.graph import Graph
from tests.fuzz.table import grow
from tracejit import ops
from tracejit.graph import Computation, Instruction, Module
from tracejit.verifier import verify


def results(graph: Graph) -> list[Instruction]:
    """Most values that nothing uses, and now and then any, one twice, or a parameter."""
    choices = graph.choices
    used = {operand for value in graph.made for operand in value.operands}
    unused = [value for value in graph.made if value not in used]
    found = [value for value in unused[::-1] if not choices.chance(4)] or graph.values[-1:]
    for kind in (found, graph.values, graph.parameters):
        if kind and choices.chance(4):
            found.append(choices.pick(kind[::-1]))
    return found


def drawn(
    choices: Choices, graphs: int, steps: int, elements: int = 1500, least: int = 1
) -> Module:
    """A verified module of ``graphs`` graphs of ``least`` to ``steps`` steps; its root is a tuple.

    Half of the graphs have ``steps`` steps.
    """
    parameters: list[Instruction] = []
    outputs: list[Instruction] = []
    for _ in range(graphs):
        graph = Graph(choices, elements)
        graph.parameters = parameters
        grow(graph, choices.integer(least, steps) if choices.chance(2) else steps)
        if graph.values:
            outputs += results(graph)
    entry = Computation("entry", tuple(parameters), ops.tuple_(outputs))
    return verify(Module("graph", entry))


class Case:
    """A module, which hypothesis is not to print whole: a test notes its text."""

    def __init__(self, module: Module) -> None:
        self.module = module

    def __repr__(self) -> str:
        return f"<{len(self.module.entry.root.operands)} results>"


@st.composite
def cases(draw: Any, graphs: int = 3, steps: int = 20, elements: int = 1500) -> Case:
    """Modules as `drawn` makes them, from decisions that hypothesis takes."""
    choices = Choices(lambda low, high: draw(st.integers(low, high)))
    return Case(drawn(choices, draw(st.integers(1, graphs)), steps, elements))
