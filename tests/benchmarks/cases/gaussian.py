"""One step of `notebooks/gaussian_process.py`: the marginal likelihood's gradient, and Adam."""

from __future__ import annotations

from typing import Any

import numpy

from tests.benchmarks.case import Case, Target
from tests.benchmarks.cases.optimiser import TorchTraining, Tree, adam, begin

RATE, NOISE = 0.1, 0.1


def inputs(rng: numpy.random.Generator, points: int) -> tuple[Any, ...]:
    """The state, points and values: f64[points]."""
    x = numpy.sort(rng.uniform(0, 6, points))
    y = numpy.sin(x) + NOISE * rng.standard_normal(points)
    return begin({"logs": numpy.array([-0.2, 0.1, -3.0])}), x, y


def loss(lib: Any, solve: Any, eye: Any, logs: Any, x: Any, y: Any) -> Any:
    """Minus the logarithm of the marginal likelihood, for each point."""
    distance = (x[:, None] - x[None, :]) / lib.exp(logs[0])
    covariance = lib.exp(logs[1]) * lib.exp(-0.5 * distance**2)
    lower = lib.linalg.cholesky(covariance + lib.exp(logs[2]) * eye)
    white = solve(lower, y)
    determinant = lib.sum(lib.log(lib.diagonal(lower)))
    return (0.5 * white @ white + determinant) / len(x) + 0.5 * numpy.log(2 * numpy.pi)


def step(lib: Any, solve: Any, state: Tree, x: Any, y: Any) -> Any:
    def of_logs(logs: Any) -> Any:
        return loss(lib.numpy, solve, lib.numpy.eye(len(x)), logs, x, y)

    value, gradient = lib.value_and_grad(of_logs)(state["parameters"]["logs"])
    return value, adam(lib.numpy, state, {"logs": gradient}, RATE)


def step_tracejit(tj: Any, *arguments: Any) -> Any:
    return step(tj, tj.numpy.linalg.solve, *arguments)


def step_jax(jax: Any, *arguments: Any) -> Any:
    def solve(lower: Any, y: Any) -> Any:
        return jax.scipy.linalg.solve_triangular(lower, y, lower=True)

    return step(jax, solve, *arguments)


def torch_loss(torch: Any, p: Tree, x: Any, y: Any) -> Any:
    def solve(lower: Any, y: Any) -> Any:
        return torch.linalg.solve_triangular(lower, y[:, None], upper=False)[:, 0]

    return loss(torch, solve, torch.eye(len(x), dtype=x.dtype), p["logs"], x, y)


CASES = [
    Case(
        "fit step, Gaussian process",
        (40,),
        tiny=(4,),
        inputs=inputs,
        tracejit=step_tracejit,
        jax=step_jax,
        torch=TorchTraining(torch_loss, RATE),
        target=Target(0.8),
        tolerance=1e-6,
        memory=True,
    )
]
