"""Tokens, which order what has no data in common."""

from __future__ import annotations

from tests.fuzz.graph import Graph
from tracejit import ops
from tracejit.graph import Instruction


def after_all(graph: Graph) -> Instruction:
    """A value that waits for tokens joined."""
    tokens = [ops.after_all([]) for _ in range(graph.choices.integer(0, 2))]
    return ops.add_dependency(graph.value(), ops.after_all(tokens))


STEPS = {"AfterAll": (after_all,), "AddDependency": (after_all,)}
