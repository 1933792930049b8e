"""One step of `notebooks/fit_oscillator.py`: the gradient through a solver that chooses its steps.

JAX has no reverse mode for loops that turn an unknown number of times: it goes forward, along both
parameters at once. PyTorch runs the loop in Python.
"""

from __future__ import annotations

from typing import Any

import numpy

from tests.benchmarks.case import Case, Target
from tests.benchmarks.cases.optimiser import TorchTraining, Tree, adam, begin

RATE, TOLERANCE, DURATION = 0.1, 1e-4, 4.0
DAMPING, FREQUENCY = 0.4, 2.0


def inputs(rng: numpy.random.Generator, times: int) -> tuple[Any, ...]:
    """The state, and where the oscillator was at each time."""
    t = numpy.linspace(0, DURATION, times + 1)[1:]
    angular = numpy.sqrt(FREQUENCY**2 - DAMPING**2 / 4)
    wave = numpy.cos(angular * t) + DAMPING / (2 * angular) * numpy.sin(angular * t)
    parameters = {"fitted": numpy.array([0.1, 1.7])}
    return begin(parameters), numpy.exp(-DAMPING / 2 * t) * wave


def loss(lib: Any, parameters: Any, measured: Any) -> Any:
    """Mean of the squared differences."""
    np, lax = lib.numpy, lib.lax
    stop_gradient = getattr(lib, "stop_gradient", None) or lax.stop_gradient

    def slope(y: Any) -> Any:
        damping, frequency = parameters[0], parameters[1]
        return np.stack([y[1], -damping * y[1] - frequency**2 * y[0]])

    def move(y: Any, duration: Any) -> Any:
        def goes_on(state: Any) -> Any:
            return state[0] < duration * (1 - 1e-9)

        def turn(state: Any) -> Any:
            time, length, y = state
            length = np.minimum(length, duration - time)
            first = slope(y)
            euler = y + length * first
            heun = y + length / 2 * (first + slope(euler))
            error = stop_gradient(np.max(np.abs(heun - euler)))
            accepted = error < TOLERANCE
            factor = np.clip(0.9 * np.sqrt(TOLERANCE / (error + 1e-12)), 0.3, 3.0)
            time = np.where(accepted, time + length, time)
            return time, stop_gradient(length * factor), np.where(accepted, heun, y)

        y = lax.while_loop(goes_on, turn, (np.float64(0.0), np.float64(0.05), y))[2]
        return y, y[0]

    durations = numpy.full(measured.shape, DURATION / measured.shape[0])
    _, xs = lax.scan(move, np.array([1.0, 0.0]), durations)
    return np.mean((xs - measured) ** 2)


def step_tracejit(tj: Any, state: Tree, measured: Any) -> Any:
    fitted = state["parameters"]["fitted"]
    value, gradient = tj.value_and_grad(lambda p: loss(tj, p, measured))(fitted)
    return value, adam(tj.numpy, state, {"fitted": gradient}, RATE)


def step_jax(jax: Any, state: Tree, measured: Any) -> Any:
    def twice(p: Any) -> Any:
        value = loss(jax, p, measured)
        return value, value

    gradient, value = jax.jacfwd(twice, has_aux=True)(state["parameters"]["fitted"])
    return value, adam(jax.numpy, state, {"fitted": gradient}, RATE)


def torch_loss(torch: Any, p: Tree, measured: Any) -> Any:
    damping, frequency = p["fitted"].unbind()

    def slope(y: Any) -> Any:
        return torch.stack([y[1], -damping * y[1] - frequency**2 * y[0]])

    duration = DURATION / measured.shape[0]
    y = torch.tensor([1.0, 0.0], dtype=torch.float64)
    xs = []
    for _ in range(measured.shape[0]):
        time, length = 0.0, 0.05
        while time < duration * (1 - 1e-9):
            length = min(length, duration - time)
            first = slope(y)
            euler = y + length * first
            heun = y + length / 2 * (first + slope(euler))
            error = float((heun - euler).detach().abs().max())
            if error < TOLERANCE:
                time, y = time + length, heun
            length *= min(max(0.9 * (TOLERANCE / (error + 1e-12)) ** 0.5, 0.3), 3.0)
        xs.append(y[0])
    return torch.mean((torch.stack(xs) - measured) ** 2)


CASES = [
    Case(
        "fit step, oscillator",
        (16,),
        tiny=(2,),
        inputs=inputs,
        tracejit=step_tracejit,
        jax=step_jax,
        torch=TorchTraining(torch_loss, RATE),
        target=Target(0.8),
        tolerance=1e-6,
        memory=True,
    )
]
