"""Adam for the training steps: one text for JAX and tracejit, and PyTorch's own in its way.

A state holds the parameters, their two moments and the count of the steps so far.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

Tree = dict[str, Any]

DECAY, DECAY_SQUARE, EPSILON = 0.9, 0.999, 1e-8
# Inputs are those of a run in progress: a second moment of zero would make the first update all
# sign, whatever the gradient's size.
COUNT, SQUARE = 100, 0.01


def begin(parameters: Tree) -> Tree:
    """The state of a training in progress with these parameters."""
    return {
        "parameters": parameters,
        "mu": {k: numpy.zeros_like(p) for k, p in parameters.items()},
        "nu": {k: numpy.full_like(p, SQUARE) for k, p in parameters.items()},
        "count": numpy.array(COUNT, numpy.int32),
    }


def clipped(np: Any, gradient: Tree, limit: float) -> Tree:
    """The gradient, scaled down where its norm is greater than ``limit``."""
    norm = np.sqrt(sum(np.sum(g * g) for g in gradient.values()))
    factor = limit / np.maximum(norm, limit)
    return {k: g * factor for k, g in gradient.items()}


def adam(np: Any, state: Tree, gradient: Tree, rate: Any, weight_decay: float = 0.0) -> Tree:
    """The next state (Kingma and Ba, 2015; Loshchilov and Hutter, 2019, with decay)."""
    count = state["count"] + 1
    power = count.astype(np.float32)
    first, second = 1 / (1 - DECAY**power), 1 / (1 - DECAY_SQUARE**power)

    def update(p: Any, m: Any, v: Any) -> Any:
        step = m * first.astype(p.dtype) / (np.sqrt(v * second.astype(p.dtype)) + EPSILON)
        return p - (rate * (step + weight_decay * p)).astype(p.dtype)

    mu = {k: DECAY * m + (1 - DECAY) * gradient[k] for k, m in state["mu"].items()}
    squares = {k: g * g for k, g in gradient.items()}
    nu = {k: DECAY_SQUARE * v + (1 - DECAY_SQUARE) * squares[k] for k, v in state["nu"].items()}
    parameters = {k: update(p, mu[k], nu[k]) for k, p in state["parameters"].items()}
    return {"parameters": parameters, "mu": mu, "nu": nu, "count": count}


class TorchTraining:
    """A training step in PyTorch's way: parameters and moments live in an optimiser.

    The first call takes them from its arguments and gives the state back for comparison; the later
    calls go on from there, in place.
    """

    def __init__(
        self,
        loss: Callable[..., Any],
        rate: float,
        *,
        clip: float | None = None,
        weight_decay: float | None = None,
        schedule: Callable[[int], float] | None = None,
    ) -> None:
        self.loss = loss
        self.rate = rate
        self.clip = clip
        self.weight_decay = weight_decay
        self.schedule = schedule
        self.count = COUNT
        self.optimiser: Any = None
        self.parameters: Tree = {}

    def begin(self, torch: Any, state: Tree) -> None:
        self.parameters = {k: p.clone().requires_grad_() for k, p in state["parameters"].items()}
        options = {"lr": self.rate, "betas": (DECAY, DECAY_SQUARE), "eps": EPSILON, "fused": True}
        given = list(self.parameters.values())
        if self.weight_decay is None:
            self.optimiser = torch.optim.Adam(given, **options)
        else:
            self.optimiser = torch.optim.AdamW(given, weight_decay=self.weight_decay, **options)
        for name, parameter in self.parameters.items():
            self.optimiser.state[parameter] = {
                "step": torch.tensor(float(COUNT)),
                "exp_avg": state["mu"][name].clone(),
                "exp_avg_sq": state["nu"][name].clone(),
            }

    def __call__(self, torch: Any, state: Tree, *batch: Any) -> Any:
        if self.parameters:
            return self.step(torch, *batch)
        self.begin(torch, state)
        value = self.step(torch, *batch)
        kept = self.optimiser.state
        mu = {k: kept[p]["exp_avg"] for k, p in self.parameters.items()}
        nu = {k: kept[p]["exp_avg_sq"] for k, p in self.parameters.items()}
        count = numpy.array(self.count, numpy.int32)
        return value, {"parameters": self.parameters, "mu": mu, "nu": nu, "count": count}

    def step(self, torch: Any, *batch: Any) -> Any:
        value = self.loss(torch, self.parameters, *batch)
        self.optimiser.zero_grad()
        value.backward()
        if self.clip is not None:
            torch.nn.utils.clip_grad_norm_(self.parameters.values(), self.clip)
        if self.schedule is not None:
            for group in self.optimiser.param_groups:
                group["lr"] = self.schedule(self.count)
        self.optimiser.step()
        self.count += 1
        return value
