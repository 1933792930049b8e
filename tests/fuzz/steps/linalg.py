"""Cholesky and TriangularSolve of well-conditioned matrices."""

from __future__ import annotations

from tests.fuzz.graph import Graph
from tests.samples.linalg import dominant, positive_definite
from tracejit import ops
from tracejit.graph import Instruction
from tracejit.ops.base import INEXACT

_SIZES = (3, 2, 1, 4, 5, 0, 8, 17)


def _matrices(graph: Graph) -> tuple[list[int], int]:
    """Batch dimensions, and the size of the matrices."""
    size = graph.choices.pick(_SIZES)
    batch = [graph.choices.pick((2, 1, 3, 0)) for _ in range(graph.choices.pick((0, 0, 1, 2)))]
    return batch, size


def cholesky(graph: Graph) -> Instruction:
    batch, size = _matrices(graph)
    shape = graph.shape(INEXACT, 0).with_dimensions([*batch, size, size])
    return ops.cholesky(graph.drawn(shape, positive_definite), graph.choices.chance(2))


def triangular_solve(graph: Graph) -> Instruction:
    batch, size = _matrices(graph)
    scalar = graph.shape(INEXACT, 0)
    matrix = graph.drawn(scalar.with_dimensions([*batch, size, size]), dominant)
    left_side, lower, unit_diagonal = (graph.choices.chance(2) for _ in range(3))
    sizes = [size, graph.choices.pick((1, 3, 2, 0, 16))]
    right = graph.like(scalar.with_dimensions([*batch, *(sizes if left_side else sizes[::-1])]))
    transposed = graph.choices.pick(("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"))
    return ops.triangular_solve(matrix, right, left_side, lower, unit_diagonal, transposed)


STEPS = {"Cholesky": (cholesky,), "TriangularSolve": (triangular_solve,)}
