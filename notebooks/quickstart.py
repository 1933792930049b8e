"""The quickstart as a script: a function, its derivative, and a network that learns, on any target.

python notebooks/quickstart.py [--target cuda] [--steps 300] [--seed 0]
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import tracejit as tj

HIDDEN = 16
RATE = 0.5


def softmax(x: Any) -> Any:
    """The shares of each row."""
    exponentials = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return exponentials / np.sum(exponentials, axis=-1, keepdims=True)


def wave(t: Any) -> Any:
    """A function to differentiate, element by element."""
    return np.exp(-(t**2)) * np.sin(3 * t)


def half_moons(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Points f32[count, 2] of two interleaved half-moons, and labels -1 and 1."""
    angles = rng.uniform(0, np.pi, count)
    labels = np.where(np.arange(count) % 2, 1.0, -1.0)
    points = np.stack([np.cos(angles) * labels, np.sin(angles) * labels], axis=1)
    points[labels < 0] += [1, 0.5]
    return (points + rng.normal(scale=0.1, size=points.shape)).astype("f"), labels.astype("f")


def network(parameters: Any, points: Any) -> Any:
    """A score for each point: its sign is the label that is guessed."""
    hidden = np.tanh(points @ parameters["w1"] + parameters["b1"])
    return hidden @ parameters["w2"]


def loss(parameters: Any, points: Any, labels: Any) -> Any:
    """Small where the scores have the signs of the labels."""
    return np.mean(np.log1p(np.exp(-labels * network(parameters, points))))


def step(parameters: Any, points: Any, labels: Any) -> Any:
    """The loss, and parameters a step down its gradient."""
    value, gradient = tj.value_and_grad(loss)(parameters, points, labels)
    return value, tj.tree.map(lambda p, g: p - RATE * g, parameters, gradient)


def main(steps: int = 300, seed: int = 0, target: str = "cpu") -> list[float]:
    """Computes, differentiates and trains; returns the losses."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(3, 4)).astype("f")
    print("shares add up to", np.asarray(tj.jit(softmax, target=target)(rows)).sum(-1))

    slope = tj.jit(tj.grad(lambda t: np.sum(wave(t))), target=target)
    t, h = np.linspace(-3, 3, 400), 1e-6
    difference = (wave(t + h) - wave(t - h)) / (2 * h)
    print("greatest difference of slopes:", np.max(np.abs(np.asarray(slope(t)) - difference)))

    points, labels = half_moons(rng, 400)
    parameters = {
        "w1": rng.normal(size=(2, HIDDEN)).astype("f"),
        "b1": np.zeros(HIDDEN, "f"),
        "w2": rng.normal(size=HIDDEN).astype("f") / HIDDEN,
    }
    train, losses = tj.jit(step, target=target), []
    for _ in range(steps):
        value, parameters = train(parameters, points, labels)
        losses.append(value)
    scores = np.asarray(tj.jit(network, target=target)(parameters, points))
    print(f"loss {float(losses[0]):.3f} to {float(losses[-1]):.3f}, ", end="")
    print(f"{np.mean(np.sign(scores) == labels):.0%} of the points told apart")
    return [*map(float, losses)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="tracejit's quickstart")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", default="cpu", help='what it runs on: "cpu" or "cuda"')
    options = parser.parse_args()
    main(options.steps, options.seed, options.target)
