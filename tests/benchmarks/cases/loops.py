"""Loops whose body is a few operations on scalars or short vectors."""

from __future__ import annotations

from typing import Any

import numpy

from tests.benchmarks.case import Case


def numbers(rng: numpy.random.Generator, *_: int) -> tuple[numpy.ndarray, ...]:
    return (rng.uniform(0.2, 0.8, ()).astype(numpy.float32),)


def vectors(rng: numpy.random.Generator, n: int) -> tuple[numpy.ndarray, ...]:
    return (rng.uniform(1, 2, n).astype(numpy.float32),)


def logistic_map(steps: int) -> Any:
    """x -> r x (1 - x), from a parameter at which the orbit settles."""

    def compiled(lib: Any, x: Any) -> Any:
        return lib.lax.fori_loop(0, steps, lambda _, x: 2.5 * x * (1 - x), x)

    return compiled


def logistic_map_eager(steps: int) -> Any:
    def eager(lib: Any, x: Any) -> Any:
        for _ in range(steps):
            x = 2.5 * x * (1 - x)
        return x

    return eager


def newton(lib: Any, x: Any) -> Any:
    """Square roots by Newton's iteration, until no element moves by more than 1e-6."""
    np = lib.numpy

    def moving(state: Any) -> Any:
        return np.max(np.abs(state[0] - state[1])) > 1e-6

    def step(state: Any) -> Any:
        return 0.5 * (state[0] + x / state[0]), state[0]

    return lib.lax.while_loop(moving, step, (x, x + 1))[0]


def newton_eager(lib: Any, x: Any) -> Any:
    new, old = x, x + 1
    while abs(new - old).max() > 1e-6:
        new, old = 0.5 * (new + x / new), new
    return new


CASES = [
    Case(
        "loop of 10,000 scalar steps",
        (),
        tiny=(),
        inputs=numbers,
        tracejit=logistic_map(10_000),
        numpy=logistic_map_eager(10_000),
        jax=logistic_map(10_000),
    ),
    Case(
        "loop of 10 scalar steps",
        (),
        tiny=(),
        inputs=numbers,
        tracejit=logistic_map(10),
        numpy=logistic_map_eager(10),
        jax=logistic_map(10),
        torch=logistic_map_eager(10),
    ),
    Case(
        "Newton's iteration on 1000 numbers",
        (1000,),
        tiny=(10,),
        inputs=vectors,
        tracejit=newton,
        numpy=newton_eager,
        jax=newton,
        torch=newton_eager,
    ),
]
