"""A sample of what the other tests try by the interpreter, through compiled code."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.numpy_api.compare import same
from tests.transforms.test_arguments import odd_arrays, plain
from tests.transforms.test_grad import W, X, loss, loss_gradient
from tracejit import nn
from tracejit.backends.target import CPU
from tracejit.errors import ArgumentError, UnsupportedError
from tracejit.transforms.jit.hooks import planned_bytes

pytestmark = pytest.mark.usefixtures("machine_code")


@tj.jit
def function(x: Any) -> Any:
    return x * 2 + x.sum(), x[::-1]


def test_odd_arrays() -> None:
    for x in odd_arrays().values():
        before = x.copy()
        with np.errstate(all="ignore"):
            expected = plain(x.astype(x.dtype.newbyteorder("=")))
            for _ in range(2):
                same(function(x), expected)
        np.testing.assert_array_equal(x, before)


def test_python_numbers_and_trees() -> None:
    @tj.jit
    def mixed(p: Any, n: Any, scale: Any) -> Any:
        return {"w": p["w"] * scale + n, "n": n + 1, "s": p["w"].sum(), "half": n / 2}

    for dtype in (np.float32, np.float64):
        p = {"w": np.arange(3, dtype=dtype)}
        for n, scale in ((1, 2.5), (-3, 0.5)):
            for _ in range(2):
                made = mixed(p, n, scale)
                same(made["w"], p["w"] * dtype(scale) + n)
                assert (made["n"], made["half"]) == (n + 1, n / 2)
                assert [type(made[k]) for k in ("n", "half", "s")] == [int, float, dtype]


def test_gradients() -> None:
    same(tj.jit(tj.value_and_grad(loss))(W, X), (loss(W, X), loss_gradient(W, X)[0]), rtol=1e-9)


def test_in_place_writes_and_unknown_indices() -> None:
    def update(x: Any, i: Any) -> Any:
        y = np.zeros((3, 3))
        y[i] = x
        y[:, i] += 1
        y[y > 1] = -1
        return y, x[i], np.sort(x)

    for i in (0, 2, -1):
        same(tj.jit(update)(X, i), update(X, i))


def test_threads() -> None:
    jitted = tj.jit(lambda x, n: np.tanh(x @ x.T) * n)
    failures = []

    def call(size: int) -> None:
        x = np.arange(float(size * 3)).reshape(size, 3) / 10
        for n in range(50):
            if not np.allclose(jitted(x, n), np.tanh(x @ x.T) * n, rtol=1e-12):
                failures.append((size, n))

    threads = [threading.Thread(target=call, args=(size,)) for size in (2, 3, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_control_flow() -> None:
    def collatz(n: Any) -> Any:
        return tj.lax.while_loop(
            lambda s: s[0] != 1,
            lambda s: (np.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1),
            (n, 0),
        )[1]

    assert tj.jit(collatz)(27) == 111
    same(
        tj.jit(lambda x: tj.lax.scan(lambda c, v: (c + v, c * v), 0.0, x))(X),
        (X.sum(), np.concatenate([[0.0], np.cumsum(X)[:-1]]) * X),
    )


def test_a_network_trains() -> None:
    rng = np.random.default_rng(0)
    p = {
        "kernel": (rng.normal(size=(3, 3, 1, 4)) * 0.3).astype(np.float32),
        "scale": np.ones(4, np.float32),
        "offset": np.zeros(4, np.float32),
        "w": (rng.normal(size=(16, 3)) * 0.1).astype(np.float32),
    }
    x, labels = rng.normal(size=(6, 4, 4, 1)).astype(np.float32), rng.integers(0, 3, 6)

    def cost(p: Any, x: Any, labels: Any) -> Any:
        y, mean, variance = nn.batch_norm(nn.conv(x, p["kernel"]), p["scale"], p["offset"])
        y = nn.max_pool(nn.relu(y), (2, 2), (2, 2)).reshape(len(x), -1)
        return np.mean(nn.cross_entropy(y @ p["w"], labels)), (mean, variance)

    @tj.jit
    def step(p: Any, x: Any, labels: Any) -> Any:
        (value, aux), gradient = tj.value_and_grad(cost, has_aux=True)(p, x, labels)
        return value, aux, tj.tree.map(lambda p, g: p - 0.5 * g, p, gradient)

    values = []
    for _ in range(30):
        value, _, p = step(p, x, labels)
        values.append(float(value))
    assert values[-1] < 0.1 < values[0]


def test_memory_that_was_planned_is_what_a_program_takes() -> None:
    lowered = tj.jit(tj.grad(loss)).lower(W, X)
    found = lowered.compile().memory_analysis()
    assert found.total_size_in_bytes == planned_bytes(lowered.module, CPU)
    assert found.argument_size_in_bytes == W.nbytes + X.nbytes
    assert found.output_size_in_bytes == W.nbytes
    assert found.alias_size_in_bytes == 0
    checked = tj.jit(tj.grad(loss), check=True).lower(W, X)
    with pytest.raises(UnsupportedError, match="memory_analysis: the program is interpreted"):
        checked.compile().memory_analysis()


def test_functions_and_modules_are_analysed_alike() -> None:
    lowered = tj.jit(lambda x: np.tanh(x) @ x.T).lower(np.ones((4, 5)))
    of_function, of_module = lowered.compile(), tj.compile(lowered.module)
    assert of_function.module is of_module.module is lowered.module
    assert of_function.memory_analysis() == of_module.memory_analysis()
    assert of_function.memory_analysis().argument_size_in_bytes == 160
    assert of_function.cost_analysis() == of_module.cost_analysis() == lowered.cost_analysis()
    assert str(of_function.explain()) == str(of_module.explain())
    for compiled in (of_function, of_module):
        with pytest.raises(ArgumentError, match="only used with measure=True"):
            compiled.explain(np.ones((4, 5)))
