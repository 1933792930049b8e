"""Computations built by hand, for tests."""

from __future__ import annotations

from collections.abc import Callable

from tracejit import ops
from tracejit.graph import Computation, Instruction
from tracejit.shapes import AnyShape


def computation(name: str, function: Callable[..., Instruction], *shapes: AnyShape) -> Computation:
    """What ``function`` builds from parameters of these shapes."""
    parameters = tuple(ops.parameter(i, shape) for i, shape in enumerate(shapes))
    return Computation(name, parameters, function(*parameters))
