"""The block of `train_transformer.py`, its matrices shared out: each rank has some of the heads.

    mpiexec -n 2 python notebooks/tensor_parallel.py [--steps 50] [--seed 0]
    python notebooks/tensor_parallel.py --devices 2         # threads

Each device has columns of the matrices that lead into attention and into the wide layer, and the
rows of those that lead out; two sums over the devices make the block whole. Optimiser and
parameters stay where their parts lie.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import tracejit as tj
from tracejit import P

Array = np.ndarray
Tree = dict[str, Any]

AXIS = "model"
WIDTH, HEADS, LENGTH, BATCH = 64, 4, 32, 16
RATE = 0.3
LICENCE = Path(__file__).resolve().parents[1] / "LICENSE"
SPECS = {
    "embedding": P(),
    "position": P(),
    "qkv": P(None, None, AXIS),
    "project": P(AXIS),
    "up": P(None, AXIS),
    "down": P(AXIS),
    "out": P(),
}


def make_parameters(rng: np.random.Generator, letters: int) -> Tree:
    """Whole matrices, drawn with variance 1 / inputs."""

    def draw(*shape: int, inputs: int) -> Array:
        return rng.standard_normal(shape) / np.sqrt(inputs)

    depth = WIDTH // HEADS
    return {
        "embedding": draw(letters, WIDTH, inputs=WIDTH),
        "position": draw(LENGTH, WIDTH, inputs=WIDTH),
        "qkv": draw(WIDTH, 3, HEADS, depth, inputs=WIDTH),
        "project": draw(HEADS, depth, WIDTH, inputs=WIDTH),
        "up": draw(WIDTH, 4 * WIDTH, inputs=WIDTH),
        "down": draw(4 * WIDTH, WIDTH, inputs=4 * WIDTH),
        "out": draw(WIDTH, letters, inputs=WIDTH),
    }


def normalise(x: Array) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)


def attend(x: Array, parameters: Tree) -> Array:
    """What this device's heads add: a part of a sum over the devices."""
    q, k, v = np.einsum("blw,wchd->cbhld", x, parameters["qkv"])
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(WIDTH // HEADS)
    mask = np.tril(np.ones((LENGTH, LENGTH), bool))
    weights = tj.nn.softmax(np.where(mask, scores, -np.inf))
    return np.einsum("bhld,hdw->blw", weights @ v, parameters["project"])


def loss(parameters: Tree, text: Array) -> Array:
    """Mean of -log p(next character), text s32[batch, length + 1], the same on every device."""
    x = parameters["embedding"][text[:, :-1]] + parameters["position"]
    x = x + tj.lax.psum(attend(normalise(x), parameters), AXIS)
    wide = tj.nn.gelu(normalise(x) @ parameters["up"])
    x = x + tj.lax.psum(wide @ parameters["down"], AXIS)
    logits = normalise(x) @ parameters["out"]
    return -np.mean(np.take_along_axis(tj.nn.log_softmax(logits), text[:, 1:, None], 2))


def step(parameters: Tree, text: Array) -> tuple[Tree, Array]:
    """One step of gradient descent on this device's part of the parameters."""

    def share(parameters: Tree) -> Array:
        # The derivative is that of the sum over all devices, which have the same loss.
        return loss(parameters, text) / tj.lax.axis_size(AXIS)

    value, gradient = tj.value_and_grad(share)(parameters)
    whole = {name: g for name, g in gradient.items() if SPECS[name] == P()}
    gradient = {**gradient, **tj.lax.psum(whole, AXIS)}
    updated = {name: p - RATE * gradient[name] for name, p in parameters.items()}
    return updated, tj.lax.psum(value, AXIS)


def main(steps: int = 50, seed: int = 0, devices: int | None = None) -> list[float]:
    """Trains, and gives the loss of every step."""
    if tj.distributed.is_launched():
        tj.distributed.initialize()
    count = devices or tj.distributed.process_count()
    mesh = tj.make_mesh((count,), (AXIS,))
    letters = "".join(sorted(set(LICENCE.read_text(encoding="utf-8"))))
    numbers = [letters.index(c) for c in LICENCE.read_text(encoding="utf-8")]
    text, rng = np.array(numbers, np.int32), np.random.default_rng(seed)
    parameters = make_parameters(rng, len(letters))
    train = tj.shard_map(step, mesh=mesh, in_specs=(SPECS, P()), out_specs=(SPECS, P()))
    losses = []
    for _ in range(steps):
        starts = rng.integers(0, len(text) - LENGTH - 1, BATCH)
        parameters, value = train(parameters, text[starts[:, None] + np.arange(LENGTH + 1)])
        losses.append(float(value))
    if tj.distributed.process_index() == 0:
        print(f"{count} devices; loss {losses[0]:.6f} -> {losses[-1]:.6f}")
    return losses


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train a transformer block on several devices.")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--devices", type=int)
    options = parser.parse_args()
    main(options.steps, options.seed, options.devices)
