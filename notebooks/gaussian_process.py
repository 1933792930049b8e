"""A Gaussian process: its length scale, variance and noise, by the marginal likelihood.

    python notebooks/gaussian_process.py [--steps 100] [--seed 0]

The likelihood goes through `np.linalg.cholesky` and two triangular systems, and so does its
gradient.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import tracejit as tj

Array = np.ndarray

POINTS = 40
NOISE = 0.1


def covariance(x: Array, y: Array, logs: Array) -> Array:
    """Squared exponentials, f64[n, m]; ``logs`` are those of length scale, variance and noise."""
    distance = (x[:, None] - y[None, :]) / np.exp(logs[0])
    return np.exp(logs[1]) * np.exp(-0.5 * distance**2)


def factor(x: Array, logs: Array) -> Array:
    """Cholesky's factor of the covariance of noisy values."""
    return np.linalg.cholesky(covariance(x, x, logs) + np.exp(logs[2]) * np.eye(len(x)))


def loss(logs: Array, x: Array, y: Array) -> Array:
    """Minus the logarithm of the marginal likelihood, for each point."""
    lower = factor(x, logs)
    white = np.linalg.solve(lower, y)
    determinant = np.sum(np.log(np.diagonal(lower)))
    return (0.5 * white @ white + determinant) / len(x) + 0.5 * np.log(2 * np.pi)


def predict(logs: Array, x: Array, y: Array, at: Array) -> Array:
    """The mean of the process elsewhere: f64[m]."""
    lower = factor(x, logs)
    weights = np.linalg.solve(lower.T, np.linalg.solve(lower, y))
    return covariance(at, x, logs) @ weights


def main(steps: int = 100, seed: int = 0) -> tuple[Array, float]:
    """Fits; gives the logarithms and the root mean square error of the predicted mean."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(0, 6, POINTS))
    y = np.sin(x) + NOISE * rng.standard_normal(POINTS)
    logs = np.zeros(3)
    optimizer = tj.optim.adam(0.1)
    state = optimizer.init(logs)

    @tj.jit
    def step(logs: Array, state: Any) -> tuple[Array, Any, Array]:
        value, gradient = tj.value_and_grad(loss)(logs, x, y)
        updates, state = optimizer.update(gradient, state, logs)
        return tj.optim.apply_updates(logs, updates), state, value

    for _ in range(steps):
        logs, state, value = step(logs, state)
    at = np.linspace(0.2, 5.8, 50)
    error = float(np.sqrt(np.mean((tj.jit(predict)(logs, x, y, at) - np.sin(at)) ** 2)))
    print(f"noise {np.exp(logs[2] / 2):.3f}, loss {value:.3f}, error {error:.3f}")
    return logs, error


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Fit a Gaussian process.")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    main(options.steps, options.seed)
