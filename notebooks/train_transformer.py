"""A transformer block as a character model of about 100,000 parameters, on the licence's text.

    python notebooks/train_transformer.py [--steps 200] [--seed 0]

Causal attention by masking with -inf, layer normalisation, and a learning rate that warms up.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import tracejit as tj

Array = np.ndarray
Tree = dict[str, Any]

WIDTH = 88
HEADS = 4
LENGTH = 32
BATCH = 16
LICENCE = Path(__file__).resolve().parents[1] / "LICENSE"


def load(path: Path = LICENCE) -> tuple[Array, str]:
    """The text as numbers s32[n], and the letters that they stand for."""
    text = path.read_text(encoding="utf-8")
    letters = "".join(sorted(set(text)))
    return np.array([letters.index(c) for c in text], np.int32), letters


def make_parameters(rng: np.random.Generator, letters: int) -> Tree:
    """Matrices drawn with variance 1 / inputs, scales of one."""

    def draw(*shape: int) -> Array:
        return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

    return {
        "embedding": draw(letters, WIDTH),
        "position": draw(LENGTH, WIDTH),
        "qkv": draw(WIDTH, 3 * WIDTH),
        "project": draw(WIDTH, WIDTH),
        "up": draw(WIDTH, 4 * WIDTH),
        "down": draw(4 * WIDTH, WIDTH),
        "scales": [np.ones(WIDTH, np.float32) for _ in range(3)],
        "out": draw(WIDTH, letters),
    }


def normalise(x: Array, scale: Array) -> Array:
    """Mean zero and variance one along the last axis, times the scale."""
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale


def attend(x: Array, parameters: Tree) -> Array:
    """What every place takes from itself and those before it: f32[batch, length, width]."""
    batch, length, _ = x.shape
    qkv = (x @ parameters["qkv"]).reshape(batch, length, 3, HEADS, WIDTH // HEADS)
    q, k, v = (qkv[:, :, n].transpose(0, 2, 1, 3) for n in range(3))
    scores = q @ k.transpose(0, 1, 3, 2) / np.float32(np.sqrt(WIDTH // HEADS))
    mask = np.tril(np.ones((length, length), bool))
    weights = tj.nn.softmax(np.where(mask, scores, -np.inf))
    mixed = (weights @ v).transpose(0, 2, 1, 3).reshape(batch, length, WIDTH)
    return mixed @ parameters["project"]


def loss(parameters: Tree, text: Array) -> Array:
    """Mean of -log p(next character), text s32[batch, length + 1]."""
    x = parameters["embedding"][text[:, :-1]] + parameters["position"]
    first, second, last = parameters["scales"]
    x = x + attend(normalise(x, first), parameters)
    x = x + tj.nn.gelu(normalise(x, second) @ parameters["up"]) @ parameters["down"]
    logits = normalise(x, last) @ parameters["out"]
    picked = np.take_along_axis(tj.nn.log_softmax(logits), text[:, 1:, None], 2)
    return -np.mean(picked)


def main(steps: int = 200, seed: int = 0, target: str = "cpu") -> list[float]:
    """Trains, and gives the loss of every step."""
    rng = np.random.default_rng(seed)
    text, letters = load()
    parameters = make_parameters(rng, len(letters))
    rate = tj.optim.warmup_cosine_decay_schedule(0.0, 3e-3, max(steps // 10, 1), steps + 1)
    optimizer = tj.optim.adamw(rate)
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
    count = sum(leaf.size for leaf in tj.tree.leaves(parameters))
    print(f"{count} parameters; loss {losses[0]:.3f} -> {np.mean(losses[-10:]):.3f}")
    return losses


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train a transformer block on the licence.")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", default="cpu", help='what it trains on: "cpu" or "cuda"')
    options = parser.parse_args()
    main(options.steps, options.seed, options.target)
