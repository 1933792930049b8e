"""A physics fit: the damping and the frequency of an oscillator, through a solver that adapts.

    python notebooks/fit_oscillator.py [--steps 60]

The solver (Heun's method with an error estimate from Euler's) is a While loop that chooses its own
steps, so how often it turns depends on the parameters; `grad` goes back through it all the same.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import tracejit as tj

Array = np.ndarray

TIMES = np.linspace(0.0, 4.0, 17)
TRUTH = np.array([0.4, 2.0])
START = np.array([1.0, 0.0])
TOLERANCE = 1e-4


def slope(y: Array, parameters: Array) -> Array:
    """Of place and speed: x'' = -damping x' - frequency² x."""
    damping, frequency = parameters[0], parameters[1]
    return np.stack([y[1], -damping * y[1] - frequency**2 * y[0]])


def advance(y: Array, duration: Array, parameters: Array) -> Array:
    """The state after ``duration``, by steps as long as the tolerance allows."""

    def goes_on(state: Any) -> Any:
        return state[0] < duration * (1 - 1e-9)

    def turn(state: Any) -> Any:
        time, length, y = state
        length = np.minimum(length, duration - time)
        first = slope(y, parameters)
        euler = y + length * first
        heun = y + length / 2 * (first + slope(euler, parameters))
        error = tj.stop_gradient(np.max(np.abs(heun - euler)))
        accepted = error < TOLERANCE
        factor = np.clip(0.9 * np.sqrt(TOLERANCE / (error + 1e-12)), 0.3, 3.0)
        time = np.where(accepted, time + length, time)
        return time, tj.stop_gradient(length * factor), np.where(accepted, heun, y)

    state = np.float64(0.0), np.float64(0.05), y
    return tj.lax.while_loop(goes_on, turn, state)[2]


def places(parameters: Array) -> Array:
    """Where the oscillator is at all times: f64[times]."""

    def move(y: Array, duration: Array) -> tuple[Array, Array]:
        y = advance(y, duration, parameters)
        return y, y[0]

    _, xs = tj.lax.scan(move, START, np.diff(TIMES))
    return xs


def exact(parameters: Array) -> Array:
    """The same by formula."""
    damping, frequency = parameters
    angular = np.sqrt(frequency**2 - damping**2 / 4)
    t = TIMES[1:]
    wave = np.cos(angular * t) + damping / (2 * angular) * np.sin(angular * t)
    return np.exp(-damping / 2 * t) * wave


def loss(parameters: Array, measured: Array) -> Array:
    """Mean of the squared differences."""
    return np.mean((places(parameters) - measured) ** 2)


def main(steps: int = 60) -> Array:
    """Fits, and gives damping and frequency."""
    measured = exact(TRUTH)
    parameters = np.array([0.1, 1.7])
    optimizer = tj.optim.adam(tj.optim.cosine_decay_schedule(0.1, steps, 0.02))
    state = optimizer.init(parameters)

    @tj.jit
    def step(parameters: Array, state: Any) -> tuple[Array, Any, Array]:
        value, gradient = tj.value_and_grad(loss)(parameters, measured)
        updates, state = optimizer.update(gradient, state, parameters)
        return tj.optim.apply_updates(parameters, updates), state, value

    for _ in range(steps):
        parameters, state, value = step(parameters, state)
    print(f"damping {parameters[0]:.4f}, frequency {parameters[1]:.4f}, loss {value:.2e}")
    return parameters


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Fit an oscillator.")
    parser.add_argument("--steps", type=int, default=60)
    main(parser.parse_args().steps)
