"""One step of `notebooks/logistic_newton.py`: logistic regression by Newton's method."""

from __future__ import annotations

from typing import Any

import numpy

from tests.benchmarks.case import Case, Target

DECAY = 1e-3


def inputs(rng: numpy.random.Generator, samples: int, features: int) -> tuple[Any, ...]:
    """Weights f64[features], inputs f64[samples, features] and labels, 0 and 1."""
    x = rng.standard_normal((samples, features))
    chance = 1 / (1 + numpy.exp(-x @ rng.standard_normal(features)))
    labels = (rng.uniform(size=samples) < chance).astype(numpy.float64)
    return numpy.full(features, 0.1), x, labels


def loss(softplus: Any, weights: Any, x: Any, labels: Any) -> Any:
    """Mean of -log p(label), with a small decay of the weights."""
    logits = x @ weights
    return (softplus(logits) - labels * logits).mean() + DECAY * weights @ weights / 2


def step(lib: Any, weights: Any, x: Any, labels: Any) -> Any:
    """The next weights, and the norm of the gradient before."""

    def of_weights(w: Any) -> Any:
        return loss(lib.nn.softplus, w, x, labels)

    gradient, curvature = lib.grad(of_weights)(weights), lib.hessian(of_weights)(weights)
    linalg = lib.numpy.linalg
    return weights - linalg.solve(curvature, gradient), linalg.norm(gradient)


def step_torch(torch: Any, weights: Any, x: Any, labels: Any) -> Any:
    def of_weights(w: Any) -> Any:
        return loss(torch.nn.functional.softplus, w, x, labels)

    gradient = torch.func.grad(of_weights)(weights)
    curvature = torch.func.hessian(of_weights)(weights)
    return weights - torch.linalg.solve(curvature, gradient), torch.linalg.norm(gradient)


CASES = [
    Case(
        "Newton step, logistic regression",
        (400, 6),
        tiny=(20, 2),
        inputs=inputs,
        tracejit=step,
        jax=step,
        torch=step_torch,
        target=Target(0.8),
        tolerance=1e-6,
        memory=True,
    )
]
