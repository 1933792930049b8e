"""Logistic regression by Newton's method, with `hessian`.

python notebooks/logistic_newton.py [--steps 8] [--seed 0]
"""

from __future__ import annotations

import argparse

import numpy as np

import tracejit as tj

Array = np.ndarray

FEATURES = 6
SAMPLES = 400
DECAY = 1e-3


def draw(rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Inputs f64[n, features], labels 0 and 1, and the weights that they were drawn with."""
    x = rng.standard_normal((SAMPLES, FEATURES))
    weights = rng.standard_normal(FEATURES)
    chance = 1 / (1 + np.exp(-x @ weights))
    return x, (rng.uniform(size=SAMPLES) < chance).astype(np.float64), weights


def loss(weights: Array, x: Array, labels: Array) -> Array:
    """Mean of -log p(label), with a small decay of the weights."""
    logits = x @ weights
    return np.mean(tj.nn.softplus(logits) - labels * logits) + DECAY * weights @ weights / 2


@tj.jit
def newton(weights: Array, x: Array, labels: Array) -> tuple[Array, Array]:
    """The next weights, and the norm of the gradient before."""
    gradient = tj.grad(loss)(weights, x, labels)
    curvature = tj.hessian(loss)(weights, x, labels)
    return weights - np.linalg.solve(curvature, gradient), np.linalg.norm(gradient)


def main(steps: int = 8, seed: int = 0) -> tuple[Array, Array, list[float]]:
    """Fits; gives the weights, those of the data, and the norms of the gradients."""
    x, labels, truth = draw(np.random.default_rng(seed))
    weights = np.zeros(FEATURES)
    norms = []
    for _ in range(steps):
        weights, norm = newton(weights, x, labels)
        norms.append(float(norm))
    print("norms of the gradients: " + ", ".join(f"{norm:.1e}" for norm in norms))
    return weights, truth, norms


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Logistic regression by Newton's method.")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    main(options.steps, options.seed)
