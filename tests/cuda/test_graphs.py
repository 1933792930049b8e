"""Programs become CUDA graphs where addresses come again; else their kernels are launched."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.cuda.emulation import Emulator
from tracejit.cuda import device_of, using_stream

X = np.random.default_rng(0).normal(size=(40, 30)).astype(np.float32)


def step(x: Any) -> Any:
    """Two kernels: a product's operand is not computed again for each of its elements."""
    return np.exp(x - x.max()) @ x.T @ x / 99


def after(count: int) -> np.ndarray:
    x = X
    for _ in range(count):
        x = np.asarray(tj.jit(step)(x))
    return x


def test_a_loop_of_calls_becomes_graphs(emulated: Emulator) -> None:
    f = tj.jit(step, target="cuda", donate_argnums=0)
    x = tj.device_put(X, "cuda")
    before = emulated.graphs
    for count in range(6):
        x = f(x)
        # Donated memory is written in place: the addresses are those of the first call.
        assert emulated.graphs - before == max(count, 0)
    np.testing.assert_allclose(np.asarray(x), after(6), rtol=1e-4)
    launches = emulated.launches
    f(x)
    assert emulated.launches - launches >= 2


def test_other_addresses_are_launched(emulated: Emulator) -> None:
    f = tj.jit(step, target="cuda")
    before = emulated.graphs
    kept = [f(tj.device_put(X, "cuda")) for _ in range(4)]
    for each in kept:
        np.testing.assert_allclose(np.asarray(each), after(1), rtol=1e-4)
    assert emulated.graphs == before


def test_one_kernel_and_loops_of_the_host_are_no_graphs(emulated: Emulator) -> None:
    before = emulated.graphs
    double = tj.jit(lambda x: x * 2, target="cuda", donate_argnums=0)
    count = tj.jit(
        lambda n: tj.lax.while_loop(lambda c: c < n, lambda c: c + 1, 0),
        target="cuda",
    )
    x = tj.device_put(X, "cuda")
    for _ in range(3):
        x = double(x)
        assert int(count(4)) == 4
    assert emulated.graphs == before


def test_streams_and_resets(emulated: Emulator) -> None:
    f = tj.jit(step, target="cuda", donate_argnums=0)
    for handle in (None, 0):
        for _ in range(2):
            x = tj.device_put(X, "cuda")
            for _ in range(3):
                if handle is None:
                    x = f(x)
                else:
                    with using_stream(handle):
                        x = f(x)
            np.testing.assert_allclose(np.asarray(x), after(3), rtol=1e-4)
            device_of().reset()


def test_a_driver_without_graphs(emulated: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMULATED_GRAPHS", "0")
    f = tj.jit(step, target="cuda", donate_argnums=0)
    before = emulated.graphs
    x = tj.device_put(X, "cuda")
    for _ in range(4):
        x = f(x)
    np.testing.assert_allclose(np.asarray(x), after(4), rtol=1e-4)
    assert emulated.graphs == before
