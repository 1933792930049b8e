"""One training step of `notebooks/train_gru.py`: 32 characters through a GRU, clipping and Adam.

PyTorch runs the cell in a Python loop: the cell is that of the paper (Cho and others, 2014), which
resets the state before the product, as none of its own modules does.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from tests.benchmarks.case import Case, Target
from tests.benchmarks.cases.optimiser import TorchTraining, Tree, adam, begin, clipped

LENGTH, LETTERS = 32, 63
RATE, NORM = 3e-3, 1.0


def inputs(rng: numpy.random.Generator, batch: int, hidden: int) -> tuple[Any, ...]:
    """The state, and numbers of characters s32[batch, length + 1]."""

    def draw(*shape: int) -> numpy.ndarray:
        return numpy.asarray(rng.standard_normal(shape) / math.sqrt(shape[0]), numpy.float32)

    parameters = {
        "embedding": draw(LETTERS, hidden),
        "gates": draw(2 * hidden, 2 * hidden),
        "gates_bias": numpy.zeros(2 * hidden, numpy.float32),
        "candidate": draw(2 * hidden, hidden),
        "candidate_bias": numpy.zeros(hidden, numpy.float32),
        "out": draw(hidden, LETTERS),
        "out_bias": numpy.zeros(LETTERS, numpy.float32),
    }
    return begin(parameters), rng.integers(0, LETTERS, (batch, LENGTH + 1), dtype=numpy.int32)


def step(lib: Any, state: Tree, text: Any) -> Any:
    np = lib.numpy

    def cell(p: Tree, h: Any, x: Any) -> Any:
        hidden = h.shape[1]
        both = np.concatenate([x, h], axis=1)
        gates = lib.nn.sigmoid(both @ p["gates"] + p["gates_bias"])
        reset, keep = gates[:, :hidden], gates[:, hidden:]
        both = np.concatenate([x, reset * h], axis=1)
        candidate = np.tanh(both @ p["candidate"] + p["candidate_bias"])
        return keep * h + (1 - keep) * candidate

    def loss(p: Tree) -> Any:
        given, wanted = text[:, :-1], text[:, 1:]
        xs = p["embedding"][given.T]
        start = np.zeros(xs.shape[1:], np.float32)

        def turn(h: Any, x: Any) -> Any:
            h = cell(p, h, x)
            return h, h

        _, states = lib.lax.scan(turn, start, xs)
        logits = states @ p["out"] + p["out_bias"]
        picked = np.take_along_axis(lib.nn.log_softmax(logits), wanted.T[:, :, None], 2)
        return -np.mean(picked)

    value, gradient = lib.value_and_grad(loss)(state["parameters"])
    return value, adam(np, state, clipped(np, gradient, NORM), RATE)


def torch_loss(torch: Any, p: Tree, text: Any) -> Any:
    given, wanted = text[:, :-1], text[:, 1:]
    xs = torch.nn.functional.embedding(given.T, p["embedding"])
    h = torch.zeros(xs.shape[1:])
    states = []
    for x in xs:
        gates = torch.sigmoid(torch.addmm(p["gates_bias"], torch.cat([x, h], 1), p["gates"]))
        reset, keep = gates.chunk(2, dim=1)
        both = torch.cat([x, reset * h], 1)
        candidate = torch.tanh(torch.addmm(p["candidate_bias"], both, p["candidate"]))
        h = keep * h + (1 - keep) * candidate
        states.append(h)
    logits = torch.stack(states) @ p["out"] + p["out_bias"]
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), wanted.T.flatten().long())


CASES = [
    Case(
        "training step, GRU",
        (16, 64),
        tiny=(2, 4),
        inputs=inputs,
        tracejit=step,
        jax=step,
        torch=TorchTraining(torch_loss, RATE, clip=NORM),
        target=Target(0.8),
        tolerance=1e-3,
        memory=True,
    )
]
