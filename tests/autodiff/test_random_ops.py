"""Random single ops with any attributes: derivatives of order 1 and 2, by finite differences."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

import numpy as np
import pytest

from tests.autodiff.gradients import check_gradients
from tests.fuzz.choices import Choices
from tests.fuzz.single import Single, single
from tests.fuzz.table import STEPS
from tracejit import ops
from tracejit.autodiff.reverse import differentiate
from tracejit.backends.numpy import evaluate
from tracejit.errors import DerivativeError
from tracejit.graph import OPS, Computation, Instruction
from tracejit.shapes import ElementType, Shape
from tracejit.traversal import in_order, substitute

# What rounds has no differences to compare with.
ROUNDING = ("ReducePrecision",)
NAMES = [n for n in STEPS if differentiate.get(OPS[n]) is not None and n not in ROUNDING]
# Scatter and SelectAndScatter combine by ops of which not all can meet twice.
REFUSED = "where indices may repeat|where windows overlap"

LARGEST = 120


def drawn(name: str, seed: int) -> tuple[Instruction, Single] | None:
    """An op on small arrays of f64 or c128, and integers."""
    choices = random.Random(f"{name} {seed}")
    element_type = choices.choice([ElementType.F64, ElementType.F64, ElementType.C128])
    found = single(Choices(choices.randint), name, element_type)
    if found is None or found[0] in found[1].parameters:
        return None
    shapes = [s for i in in_order([found[0]]) for s in i.element_shapes if isinstance(s, Shape)]
    exact = all(not s.element_type.is_inexact or s.element_type.bits >= 64 for s in shapes)
    c64 = any(s.element_type is ElementType.C64 for s in shapes)
    return found if exact and not c64 and all(s.size <= LARGEST for s in shapes) else None


def values(graph: Single, rng: np.random.Generator) -> list[np.ndarray]:
    """Positive numbers, so that roots and logarithms have them; complex ones of both halves.

    No two elements of an array are near each other, so that differences do not change an order.
    """
    made = []
    for p in graph.parameters:
        shape = p.array_shape
        sizes, element_type = shape.dimensions, shape.element_type
        domain = graph.domains.get(p)
        if domain is not None:
            array = np.asarray(domain(rng, sizes, shape.dtype))
        elif element_type.is_inexact:
            steps = rng.permutation(shape.size).reshape(sizes) + rng.uniform()
            array = 0.2 + 0.7 / max(shape.size, 1) * steps
            if element_type.is_complex:
                array = array + 1j * rng.uniform(-0.9, 0.9, sizes)
        else:
            array = rng.integers(0, 2 if element_type is ElementType.PRED else 4, sizes)
        made.append(array.astype(shape.dtype))
    return made


def is_finite(
    made: Instruction, parameters: Sequence[Instruction], arrays: list[np.ndarray]
) -> bool:
    entry = Computation("value", tuple(parameters), ops.tuple_(ops.elements_of(made)))
    with np.errstate(all="ignore"):
        results = [np.asarray(r) for r in evaluate(entry, arrays)]
    return all(np.isfinite(r).all() for r in results if r.dtype.kind in "fc")


def has_ties(made: Instruction) -> bool:
    """Whether an op that chooses among its operands is given one of them twice."""
    return made.op.name in ("Clamp", "Max", "Min") and len({*made.operands}) < len(made.operands)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(2))
def test_derivatives_of_any_op(name: str, seed: int) -> None:
    for attempt in range(12):
        found = drawn(name, 100 * seed + attempt)
        if found is None or has_ties(found[0]):
            continue
        made, graph = found
        arrays = values(graph, np.random.default_rng([seed, attempt]))
        if not is_finite(made, graph.parameters, arrays):
            continue

        def build(
            *inputs: Instruction, made: Instruction = made, graph: Single = graph
        ) -> Instruction:
            return substitute([made], dict(zip(graph.parameters, inputs, strict=True)))[0]

        try:
            check_gradients(build, arrays, relative=2e-6)
        except DerivativeError as error:
            if not re.search(REFUSED, str(error)):
                raise
            continue
        return
