"""From a graph to something to call, and the comparison with the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tests.fuzz.comparing import leaves
from tests.fuzz.noise import disagreements
from tests.runtime.programs import loaded
from tracejit import ops
from tracejit.backends.numpy import evaluate
from tracejit.graph import Computation, Instruction, Module
from tracejit.runtime import Executable, importing_tvm
from tracejit.shapes import Shape
from tracejit.verifier import verify

with importing_tvm():
    from tracejit.backends.tvm.compile import compile_for


def compiled(entry: Computation) -> Executable:
    """The machine code of a computation, kept nowhere."""
    return loaded(compile_for(Module("test", entry)))


def computation(build: Callable[..., Instruction], *shapes: Shape) -> Computation:
    """``build`` applied to one parameter for each shape."""
    parameters = tuple(ops.parameter(i, shape) for i, shape in enumerate(shapes))
    return Computation("entry", parameters, build(*parameters))


def check(entry: Computation, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results of the compiled computation, which must be the interpreter's."""
    verify(Module("test", entry))
    before = [array.tobytes() for array in arguments]
    actual = compiled(entry)(arguments)
    assert [array.tobytes() for array in arguments] == before, "compiled code wrote to its input"
    expected = leaves(evaluate(entry, arguments))
    found = disagreements(entry, arguments, actual, expected, by_xla=False)
    assert not found, "\n".join(f"result {n}: {text}" for n, text in found.items())
    return actual
