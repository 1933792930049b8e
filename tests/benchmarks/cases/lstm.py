"""One training step of an LSTM (Hochreiter and Schmidhuber, 1997) that predicts the next character.

PyTorch runs its own LSTM, which is written in C++; the others scan over the characters.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from tests.benchmarks.case import Case, Target
from tests.benchmarks.cases.optimiser import TorchTraining, Tree, adam, begin

LENGTH, LETTERS = 32, 63
RATE = 3e-3


def inputs(rng: numpy.random.Generator, batch: int, hidden: int) -> tuple[Any, ...]:
    """The state, and numbers of characters s32[batch, length + 1].

    The gates' columns are those of the input, forget, cell and output gates, as PyTorch has them.
    """

    def draw(*shape: int) -> numpy.ndarray:
        return numpy.asarray(rng.standard_normal(shape) / math.sqrt(shape[0]), numpy.float32)

    parameters = {
        "embedding": draw(LETTERS, hidden),
        "of_input": draw(hidden, 4 * hidden),
        "of_state": draw(hidden, 4 * hidden),
        "bias": numpy.zeros(4 * hidden, numpy.float32),
        "out": draw(hidden, LETTERS),
        "out_bias": numpy.zeros(LETTERS, numpy.float32),
    }
    return begin(parameters), rng.integers(0, LETTERS, (batch, LENGTH + 1), dtype=numpy.int32)


def step(lib: Any, state: Tree, text: Any) -> Any:
    np = lib.numpy

    def loss(p: Tree) -> Any:
        given, wanted = text[:, :-1], text[:, 1:]
        xs = p["embedding"][given.T]
        start = np.zeros(xs.shape[1:], np.float32)

        def turn(carried: Any, x: Any) -> Any:
            h, c = carried
            gates = x @ p["of_input"] + h @ p["of_state"] + p["bias"]
            take, keep, new, show = np.split(gates, 4, axis=1)
            c = lib.nn.sigmoid(keep) * c + lib.nn.sigmoid(take) * np.tanh(new)
            h = lib.nn.sigmoid(show) * np.tanh(c)
            return (h, c), h

        _, states = lib.lax.scan(turn, (start, start), xs)
        logits = states @ p["out"] + p["out_bias"]
        picked = np.take_along_axis(lib.nn.log_softmax(logits), wanted.T[:, :, None], 2)
        return -np.mean(picked)

    value, gradient = lib.value_and_grad(loss)(state["parameters"])
    return value, adam(np, state, gradient, RATE)


def torch_loss(torch: Any, p: Tree, text: Any) -> Any:
    given, wanted = text[:, :-1], text[:, 1:]
    xs = torch.nn.functional.embedding(given.T, p["embedding"])
    start = torch.zeros((1, *xs.shape[1:]))
    weights = [p["of_input"].T, p["of_state"].T, p["bias"], torch.zeros_like(p["bias"])]
    states, _, _ = torch.lstm(xs, (start, start), weights, True, 1, 0.0, True, False, False)
    logits = states @ p["out"] + p["out_bias"]
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), wanted.T.flatten().long())


CASES = [
    Case(
        "training step, LSTM",
        (16, 128),
        tiny=(2, 4),
        inputs=inputs,
        tracejit=step,
        jax=step,
        torch=TorchTraining(torch_loss, RATE),
        target=Target(0.8),
        tolerance=1e-3,
    )
]
