"""One training step of a perceptron of three layers on images of 28 by 28, with Adam."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy

from tests.benchmarks.case import Case, Target
from tests.benchmarks.cases.optimiser import TorchTraining, Tree, adam, begin

PIXELS, CLASSES = 28 * 28, 10
RATE = 1e-3


def inputs(rng: numpy.random.Generator, batch: int, hidden: int) -> tuple[Any, ...]:
    """The state, images f32[batch, 784] and labels s32[batch]."""
    widths = PIXELS, hidden, hidden // 2, CLASSES
    parameters = {}
    for i, (given, made) in enumerate(itertools.pairwise(widths)):
        drawn = rng.standard_normal((given, made)) * math.sqrt(2 / given)
        parameters[f"weights{i}"] = numpy.asarray(drawn, numpy.float32)
        parameters[f"bias{i}"] = numpy.zeros(made, numpy.float32)
    images = rng.random((batch, PIXELS), dtype=numpy.float32)
    return begin(parameters), images, rng.integers(0, CLASSES, batch, dtype=numpy.int32)


def step(lib: Any, state: Tree, images: Any, labels: Any) -> Any:
    np = lib.numpy

    def loss(p: Tree) -> Any:
        h = np.maximum(images @ p["weights0"] + p["bias0"], 0)
        h = np.maximum(h @ p["weights1"] + p["bias1"], 0)
        scores = lib.nn.log_softmax(h @ p["weights2"] + p["bias2"])
        return -np.mean(np.take_along_axis(scores, labels[:, None], 1))

    value, gradient = lib.value_and_grad(loss)(state["parameters"])
    return value, adam(np, state, gradient, RATE)


def torch_loss(torch: Any, p: Tree, images: Any, labels: Any) -> Any:
    h = torch.relu(torch.addmm(p["bias0"], images, p["weights0"]))
    h = torch.relu(torch.addmm(p["bias1"], h, p["weights1"]))
    scores = torch.addmm(p["bias2"], h, p["weights2"])
    return torch.nn.functional.cross_entropy(scores, labels.long())


CASES = [
    Case(
        "training step, perceptron",
        (128, 512),
        tiny=(4, 8),
        inputs=inputs,
        tracejit=step,
        jax=step,
        torch=TorchTraining(torch_loss, RATE),
        target=Target(0.8),
        tolerance=1e-3,
    )
]
