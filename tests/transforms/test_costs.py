"""What a program costs and how much memory it needs, before it runs."""

from __future__ import annotations

from typing import Any

import numpy as np

import tracejit as tj

X = np.ones((8, 16))
W = np.ones((16, 4))


def test_products_and_elementwise() -> None:
    costs = tj.jit(lambda x, w: np.exp(x @ w) + 1).lower(X, W).cost_analysis()
    assert costs["ops"]["DotGeneral"] == {
        "count": 1,
        "flops": 2 * 8 * 16 * 4,
        "transcendentals": 0,
        "bytes accessed": 8 * (8 * 16 + 16 * 4 + 8 * 4),
    }
    assert costs["flops"] == 2 * 8 * 16 * 4 + 32
    assert costs["transcendentals"] == 32
    assert costs["unknown loops"] == 0


def test_reductions() -> None:
    costs = tj.jit(lambda x: x.sum(0)).lower(X).cost_analysis()
    assert costs["flops"] == 7 * 16


def test_convolutions_and_windows() -> None:
    image, kernel = np.ones((1, 8, 8, 3)), np.ones((3, 3, 3, 5))
    costs = tj.jit(tj.nn.conv).lower(image, kernel).cost_analysis()
    assert costs["flops"] == 2 * 64 * 5 * 27
    pooled = tj.jit(lambda x: tj.nn.max_pool(x, (2, 2), (2, 2))).lower(image).cost_analysis()
    assert pooled["ops"]["ReduceWindow"]["flops"] == 16 * 3 * 3


def test_loops() -> None:
    def scanned(x: Any) -> Any:
        return tj.lax.scan(lambda c, row: (np.sin(c) + row, c), x[0], x)[0]

    costs = tj.jit(scanned).lower(X).cost_analysis()
    assert costs["transcendentals"] == 8 * 16
    assert costs["flops"] >= 8 * 16

    def unknown(x: Any) -> Any:
        return tj.lax.while_loop(lambda c: c.sum() < 9, lambda c: c + np.cos(c), x)

    costs = tj.jit(unknown).lower(X).cost_analysis()
    assert costs["unknown loops"] == 1
    assert costs["transcendentals"] == X.size


def test_of_branches_the_dearest() -> None:
    def f(x: Any) -> Any:
        return tj.lax.cond(x.sum() > 0, lambda x: np.exp(np.sin(x)), lambda x: x, x)

    assert tj.jit(f).lower(X).cost_analysis()["transcendentals"] == 2 * X.size


def test_memory_of_a_chain_is_its_ends() -> None:
    report = tj.jit(lambda x: np.exp(np.sin(x) * 2)).lower(X).memory_report()
    assert report.argument_bytes == X.nbytes
    assert report.output_bytes == X.nbytes
    assert report.peak_bytes - report.constant_bytes == 2 * X.nbytes
    assert len(report.timeline) == 1


def test_memory_of_the_backward_pass() -> None:
    """Every layer's result is kept until the backward pass has come back to it."""

    def loss(w: Any, x: Any) -> Any:
        for _ in range(6):
            x = np.tanh(x @ w)
        return np.sum(x)

    w, x = np.ones((32, 32)), np.ones((64, 32))
    forward = tj.jit(loss).lower(w, x).memory_report()
    backward = tj.jit(tj.grad(loss)).lower(w, x).memory_report()
    layer = x.nbytes
    assert forward.peak_bytes < w.nbytes + 4 * layer
    assert backward.peak_bytes > w.nbytes + 6 * layer
    kept = [v for v in backward.alive if v.op == "tanh"]
    assert len(kept) >= 5
    assert all(v.source is not None and v.source.file == __file__ for v in kept)
    text = str(backward)
    assert "alive at the peak:" in text
    assert "f64[64,32] of tanh (test_costs.py:" in text
    assert max(backward.timeline) == backward.peak_bytes == backward.timeline[backward.peak_step]


def test_memory_inside_loops() -> None:
    def f(x: Any) -> Any:
        return tj.lax.fori_loop(
            0, 3, lambda i, c: (c[:, :, None] * X[:, None, :]).sum(1) @ W, X[:, :4]
        )

    report = tj.jit(lambda x: f(x)).lower(X).memory_report()
    assert report.peak_bytes > report.argument_bytes + report.output_bytes
