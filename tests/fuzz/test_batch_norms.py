"""The judge's batch normalisation is XLA's, and what it excuses is no more than that."""

from __future__ import annotations

import numpy as np
import pytest

from tests.building import computation
from tests.fuzz.batch_norms import as_xla
from tests.fuzz.comparing import apart, leaves
from tests.fuzz.noise import disagreements
from tests.judge import run_xla
from tracejit import ops
from tracejit.backends.numpy import evaluate
from tracejit.graph import Computation, Instruction, Module
from tracejit.shapes import ElementType, shape_of

F32, BF16, F64 = ElementType.F32, ElementType.BF16, ElementType.F64


def built(kind: str, element_type: ElementType, seed: int) -> tuple[Computation, list[np.ndarray]]:
    """The op over one to four rows of three features; some operands are around the least normal."""
    rng = np.random.default_rng(seed)
    operand = (int(rng.integers(1, 5)), 3)
    sizes = {
        "training": [operand, (3,), (3,)],
        "inference": [operand, (3,), (3,), (3,), (3,)],
        "grad": [operand, (3,), (3,), (3,), operand],
    }[kind]
    least = np.log2(float(np.finfo(np.float64 if element_type is F64 else np.float32).tiny))
    arrays = []
    for size in sizes:
        scale = 2.0 ** rng.integers(least, least + 26, size) if rng.random() < 0.5 else 1
        arrays.append((rng.uniform(-2, 2, size) * scale).astype(element_type.dtype))
    variance = {"inference": 4, "grad": 3}.get(kind)
    if variance is not None:
        arrays[variance] = np.abs(arrays[variance])
    parameters = [ops.parameter(i, shape_of(a)) for i, a in enumerate(arrays)]
    root = getattr(ops, f"batch_norm_{kind}")(*parameters, 0.1, 1)
    return Computation("entry", tuple(parameters), root), arrays


@pytest.mark.parametrize("element_type", [F32, BF16, F64], ids=str)
@pytest.mark.parametrize("kind", ["training", "inference", "grad"])
def test_every_step_is_that_of_xla(kind: str, element_type: ElementType) -> None:
    for seed in range(8):
        entry, arrays = built(kind, element_type, seed)
        theirs = leaves(run_xla(Module("entry", entry), *arrays))
        made = leaves(as_xla(entry.root, arrays))
        relative = {F32: 2e-5, BF16: 0, F64: 1e-12}[element_type]
        assert not any(apart(a, b, relative).any() for a, b in zip(theirs, made, strict=True)), (
            f"seed {seed}"
        )


def vanishing() -> tuple[Computation, list[np.ndarray], list[np.ndarray]]:
    """A gradient whose products with the centred operand are denormal, made large by epsilon."""
    tiny = 2.0**-126
    operand = np.array([0.8828125, 0.96484375])
    numbers = np.array([-0.5, tiny])
    given = [operand, operand, numbers, np.abs(numbers), numbers]
    arrays = [a.astype(BF16.dtype) for a in given]

    def build(
        x: Instruction,
        scale: Instruction,
        mean: Instruction,
        variance: Instruction,
        grad: Instruction,
    ) -> Instruction:
        return ops.batch_norm_grad(x, scale, mean, variance, grad, 0.1, 0)

    entry = computation("entry", build, *map(shape_of, arrays))
    return entry, arrays, leaves(evaluate(entry, arrays))


def test_products_that_vanish_on_the_way() -> None:
    """XLA makes 0 of what is -3.3e-37, 28 times the least normal number."""
    entry, arrays, expected = vanishing()
    theirs = leaves(run_xla(Module("entry", entry), *arrays))
    assert float(theirs[0][1]) == 0
    assert float(expected[0][1]) < -3e-37
    assert not disagreements(entry, arrays, theirs, expected, True)
    assert disagreements(entry, arrays, theirs, expected, False), "compiled code keeps them"


def test_what_vanishes_excuses_nothing_else() -> None:
    entry, arrays, expected = vanishing()
    for place, wrong in ((0, 2.5), (1, -5e-36), (1, 1.0)):
        made = [a.copy() for a in expected]
        made[0][place] = wrong
        assert disagreements(entry, arrays, made, expected, True)
