"""A character model with a GRU, on the text of this repository's licence.

    python notebooks/train_gru.py [--steps 300] [--seed 0]

`tj.lax.scan` runs the cell over the characters; its gradient goes back through the whole sequence.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import tracejit as tj

Array = np.ndarray
Tree = dict[str, Any]

HIDDEN = 64
LENGTH = 32
BATCH = 16
LICENCE = Path(__file__).resolve().parents[1] / "LICENSE"


def load(path: Path = LICENCE) -> tuple[Array, str]:
    """The text as numbers s32[n], and the letters that they stand for."""
    text = path.read_text(encoding="utf-8")
    letters = "".join(sorted(set(text)))
    return np.array([letters.index(c) for c in text], np.int32), letters


def make_parameters(rng: np.random.Generator, letters: int) -> Tree:
    """Matrices drawn with variance 1 / inputs."""

    def draw(*shape: int) -> Array:
        return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

    return {
        "embedding": draw(letters, HIDDEN),
        "gates": draw(2 * HIDDEN, 2 * HIDDEN),
        "gates_bias": np.zeros(2 * HIDDEN, np.float32),
        "candidate": draw(2 * HIDDEN, HIDDEN),
        "candidate_bias": np.zeros(HIDDEN, np.float32),
        "out": draw(HIDDEN, letters),
        "out_bias": np.zeros(letters, np.float32),
    }


def cell(parameters: Tree, state: Array, x: Array) -> Array:
    """The state after one more character (Cho and others, 2014): f32[batch, hidden]."""
    both = np.concatenate([x, state], axis=1)
    gates = tj.nn.sigmoid(both @ parameters["gates"] + parameters["gates_bias"])
    reset, keep = gates[:, :HIDDEN], gates[:, HIDDEN:]
    both = np.concatenate([x, reset * state], axis=1)
    candidate = np.tanh(both @ parameters["candidate"] + parameters["candidate_bias"])
    return keep * state + (1 - keep) * candidate


def loss(parameters: Tree, text: Array) -> Array:
    """Mean of -log p(next character), text s32[batch, length + 1]."""
    given, wanted = text[:, :-1], text[:, 1:]
    xs = parameters["embedding"][given.T]
    start = np.zeros((text.shape[0], HIDDEN), np.float32)

    def step(state: Array, x: Array) -> tuple[Array, Array]:
        state = cell(parameters, state, x)
        return state, state

    _, states = tj.lax.scan(step, start, xs)
    logits = states @ parameters["out"] + parameters["out_bias"]
    picked = np.take_along_axis(tj.nn.log_softmax(logits), wanted.T[:, :, None], 2)
    return -np.mean(picked)


def main(steps: int = 300, seed: int = 0, target: str = "cpu") -> list[float]:
    """Trains, and gives the loss of every step."""
    rng = np.random.default_rng(seed)
    text, letters = load()
    parameters = make_parameters(rng, len(letters))
    optimizer = tj.optim.chain(tj.optim.clip_by_global_norm(1.0), tj.optim.adam(3e-3))
    state = optimizer.init(parameters)

    @tj.jit(target=target)
    def step(parameters: Tree, state: Any, batch: Array) -> tuple[Tree, Any, Array]:
        value, gradient = tj.value_and_grad(loss)(parameters, batch)
        updates, state = optimizer.update(gradient, state, parameters)
        return tj.optim.apply_updates(parameters, updates), state, value

    losses = []
    for _ in range(steps):
        starts = rng.integers(0, len(text) - LENGTH - 1, BATCH)
        batch = text[starts[:, None] + np.arange(LENGTH + 1)]
        parameters, state, value = step(parameters, state, batch)
        losses.append(float(value))
    print(f"{len(letters)} letters; loss {losses[0]:.3f} -> {np.mean(losses[-10:]):.3f}")
    return losses


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train a GRU on the licence's characters.")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", default="cpu", help='what it trains on: "cpu" or "cuda"')
    options = parser.parse_args()
    main(options.steps, options.seed, options.target)
