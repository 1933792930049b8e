"""Long programs are lowered in time that grows with their length, counted in calls of functions."""

from __future__ import annotations

import cProfile
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import tracejit as tj
import tracejit.numpy as tnp
from tracejit.runtime import importing_tvm

with importing_tvm():
    from tests.lowered import lower
    from tracejit.backends.tvm.cpu.machine import Machine
    from tracejit.backends.tvm.cpu.objects.identical_code_folding import fold_identical_kernels

# All steps differ in a number, so that none can be rolled into a loop or share a kernel.


def elementwise(x: Any, number: float) -> Any:
    return tnp.sin(x * np.float32(number)) + x


def mixed(x: Any, number: float) -> Any:
    x = x - tnp.sum(x, axis=1, keepdims=True) * np.float32(number)
    return tnp.tanh(tnp.transpose(x)) + tnp.max(x, axis=0)


def products(x: Any, number: float) -> Any:
    return x @ (x * np.float32(number))


def windows(x: Any, number: float) -> Any:
    return (tnp.roll(x, 1, 0) + tnp.roll(x, -1, 1)) * np.float32(number)


def branching(x: Any, number: float) -> Any:
    """Halves that are computed apart and put together."""
    return tnp.concatenate([x[:4] * np.float32(number), tnp.exp(x[4:])])


def sums_of_parts(x: Any, length: int) -> Any:
    """Many results that know nothing of each other."""
    return [tnp.sum(tnp.sin(x[:, number : number + 2])) for number in range(length)]


def sums_of_all(x: Any, length: int) -> Any:
    return [tnp.sum(x * np.float32(1 + number / 7)) for number in range(length)]


def earlier_steps(x: Any, length: int) -> Any:
    """Each step reads the one before it and one long before it."""
    steps = [x]
    for _ in range(length):
        steps.append(steps[-1] - tnp.mean(steps[len(steps) // 2], axis=0))
    return steps[-1]


def calls(step: Callable[[Any, float], Any], length: int) -> int:
    """How many functions are called to lower ``length`` steps."""

    def program(x: Any) -> Any:
        for number in range(length):
            x = step(x, 1 + number / 7)
        return x

    return calls_to_lower(program, (8, 8))


def calls_to_lower(program: Callable[[Any], Any], dimensions: tuple[int, int]) -> int:
    """How many functions are called to lower a program of one array."""
    module = tj.jit(program).lower(np.ones(dimensions, np.float32)).module
    profile = cProfile.Profile()
    profile.enable()
    fold_identical_kernels(lower(module.entry, Machine(32, 1)))
    profile.disable()
    return sum(entry.callcount for entry in profile.getstats())


@pytest.mark.parametrize("step", [elementwise, mixed, products, windows, branching])
def test_work_grows_with_length(step: Callable[[Any, float], Any]) -> None:
    calls(step, 5)
    short, long = calls(step, 20), calls(step, 80)
    assert long < 5 * short  # sixteen times as many, if it grew with the square


@pytest.mark.parametrize("program", [sums_of_parts, sums_of_all, earlier_steps])
def test_work_grows_with_the_number_of_results(program: Callable[..., Any]) -> None:
    calls_to_lower(partial(program, length=5), (8, 500))
    short, long = (
        calls_to_lower(partial(program, length=length), (8, 500)) for length in (100, 400)
    )
    assert long < 5 * short
