"""What a gradient's graph is made of, and its values, for tests of single rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit import ops
from tracejit.autodiff import rules
from tracejit.autodiff.reverse import is_differentiable, pullback
from tracejit.backends.numpy import evaluate
from tracejit.graph import Computation, Instruction, Module
from tracejit.shapes import shape_of
from tracejit.traversal import in_order
from tracejit.verifier import verify

__all__ = ["gradients", "opcodes", "pulled_back", "rules"]  # the rules for the table they fill

Build = Callable[..., Instruction | Sequence[Instruction]]


def pulled_back(
    build: Build, *arrays: Any
) -> tuple[list[Instruction], list[Instruction], list[Instruction | None]]:
    """The parameters, the parameters that stand for cotangents, and the inputs' cotangents.

    Every result of ``build`` that can have a cotangent gets one.
    """
    inputs = [ops.parameter(i, shape_of(np.asarray(a))) for i, a in enumerate(arrays)]
    built = build(*inputs)
    roots = ops.elements_of(built) if isinstance(built, Instruction) else built
    outputs = [o for o in roots if is_differentiable(o)]
    arriving = [ops.parameter(len(inputs) + i, o.shape) for i, o in enumerate(outputs)]
    return inputs, arriving, pullback(outputs, inputs, arriving)


def opcodes(build: Build, *arrays: Any) -> Counter[str]:
    """How often each opcode occurs in what the inputs' cotangents need."""
    _, _, results = pulled_back(build, *arrays)
    return Counter(i.op.opcode for i in in_order([r for r in results if r is not None]))


def gradients(
    build: Build,
    arrays: Sequence[Any],
    cotangents: Sequence[Any],
) -> list[np.ndarray | None]:
    """The values of the inputs' cotangents, None where there is none."""
    inputs, arriving, results = pulled_back(build, *arrays)
    root = ops.tuple_([r for r in results if r is not None])
    computation = Computation("gradients", (*inputs, *arriving), root)
    verify(Module("gradients", computation))
    made = iter(evaluate(computation, [np.asarray(a) for a in (*arrays, *cotangents)]))
    return [None if r is None else next(made) for r in results]
