"""The code of a program grows as its graph does, however often values are read, and where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tracejit as tj
from tests.lowered import lower
from tracejit import lax
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.cpu.objects.partition import cost_to_compile
from tracejit.traversal import instructions


def moving(x: Any, i: Any) -> Any:
    """Two slices at places that the compiler does not know."""
    size = x.shape[0] - 1
    return np.sin(lax.dynamic_slice(x, (i,), (size,))) + lax.dynamic_slice(x, (i - 1,), (size,))


def permuted(x: Any, i: Any) -> Any:
    """Reshapes whose indices are divided."""
    return x.reshape(5, -1).T.reshape(-1) + x


def stencil(x: Any, i: Any) -> Any:
    return x[1:] + np.cos(x[:-1])


def rolled(x: Any, i: Any) -> Any:
    return x + np.roll(x, i) * 2


def reversed_(x: Any, i: Any) -> Any:
    return x + x[::-1] * 2


def taken(x: Any, i: Any) -> Any:
    return x + np.take(x, np.array([3, 1, 2, 0] * (x.shape[0] // 4))) * 2


def picked(x: Any, i: Any) -> Any:
    few = np.take(x, np.array([3, 1, 2, 0]))
    return x + np.concatenate([few, few] * (x.shape[0] // 8))


def outer(x: Any, i: Any) -> Any:
    return (x[:, None] + x[None, :]).reshape(-1)[: x.shape[0]]


def doubled(x: Any, i: Any) -> Any:
    return np.where(x > 2, x * x, np.sin(x)) + x


def narrow(x: Any, i: Any) -> Any:
    y = x.astype(ml_dtypes.bfloat16)
    return (y * y + y / 2).astype(x.dtype)


def followed(x: Any, i: Any) -> Any:
    """A product's epilogue that needs what is computed beside it."""
    y = x[:4].reshape(2, 2)
    for _ in range(4):
        y = y * y + np.abs(y) / 2
    return x * ((y @ y) * y)[0, 0] + 1


STEPS = [moving, permuted, stencil, rolled, reversed_, taken, picked, outer, doubled, narrow]


def size_and_graph(step: Callable[[Any, Any], Any], count: int) -> tuple[float, int]:
    """How much code there is to compile, and the instructions of the graph."""

    def chain(x: Any, i: Any) -> Any:
        for _ in range(count):
            x = step(x, i)
        return x

    module = tj.jit(chain).lower(np.linspace(0.1, 1, 40), np.int64(1)).module
    program = lower(module.entry, Machine(64, 2))
    size = sum(cost_to_compile(kernel.body) for kernel in program.kernels)
    return size, len(instructions(module.entry))


@pytest.mark.parametrize("step", [*STEPS, followed], ids=lambda f: f.__name__)
def test_chains(step: Callable[[Any, Any], Any]) -> None:
    """Three times as many links of a chain have little more than three times the code."""
    small, _ = size_and_graph(step, 8)
    large, graph = size_and_graph(step, 24)
    assert large <= 6 * max(small, 500)
    assert large <= 200 * graph


def test_an_epilogue_beside_a_long_chain() -> None:
    """What a product is multiplied by is computed beside it, not in its epilogue."""

    def joined(a: Any) -> Any:
        v = np.pad(a, [(3, 0)])
        return np.logaddexp.reduce(v / 3) * (v @ v)

    sizes = []
    for length in (2, 6):
        a = np.arange(1.0, length + 1)
        lowered = tj.jit(joined).lower(a)
        program = lower(lowered.module.entry, Machine(64, 2))
        sizes.append(sum(cost_to_compile(kernel.body) for kernel in program.kernels))
        np.testing.assert_allclose(lowered.compile()(a), joined(a), rtol=1e-13)
    assert sizes[1] < 3 * sizes[0]


@pytest.mark.parametrize("step", STEPS, ids=lambda f: f.__name__)
def test_values(step: Callable[[Any, Any], Any]) -> None:
    def chain(x: Any, i: Any) -> Any:
        for _ in range(12):
            x = step(x, i)
        return x / np.max(np.abs(x))

    x, i = np.linspace(0.1, 1, 40), np.int64(1)
    module = tj.jit(chain).lower(x, i).module
    np.testing.assert_allclose(tj.compile(module)(x, i), tj.interpret(module, x, i), rtol=1e-12)
