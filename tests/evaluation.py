"""A graph on the spot: built for some arrays, verified, and run by the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit import ops
from tracejit.backends.numpy import evaluate
from tracejit.graph import Computation, Instruction, Module
from tracejit.shapes import ElementType, Shape, shape_of
from tracejit.verifier import verify


def evaluated(build: Callable[..., Instruction], *arrays: np.ndarray) -> Any:
    """``build`` applied to one parameter per array, as the interpreter computes it."""
    parameters = [ops.parameter(i, shape_of(array)) for i, array in enumerate(arrays)]
    entry = Computation("entry", tuple(parameters), build(*parameters))
    return evaluate(verify(Module("test", entry)).entry, arrays)


def given(text: str, number: int = 0) -> Instruction:
    """A parameter of the shape that ``text`` writes as HLO does: ``f32[2,3]``."""
    element_type, _, sizes = text.rstrip("]").partition("[")
    dimensions = tuple(int(size) for size in sizes.split(",") if size)
    return ops.parameter(number, Shape(ElementType(element_type), dimensions))
