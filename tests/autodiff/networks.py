"""Small networks whose gradient graphs are looked at: a loss, parameters and inputs for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tracejit as tj
from tracejit import lax, nn

Network = tuple[Callable[..., Any], tuple[Any, ...]]


def _drawn(*shape: int) -> np.ndarray:
    rng = np.random.default_rng(shape)
    return np.asarray(rng.normal(size=shape) / np.sqrt(shape[0]), np.float32)


def perceptron() -> Network:
    def loss(weights: Any, x: Any) -> Any:
        for w in weights[:-1]:
            x = np.maximum(x @ w, 0)
        return -np.mean(nn.log_softmax(x @ weights[-1])[:, 0])

    return loss, ([_drawn(6, 8), _drawn(8, 8), _drawn(8, 3)], _drawn(5, 6))


def stacked() -> Network:
    def loss(weights: Any, x: Any) -> Any:
        for w in weights:
            x = x + np.tanh(x @ w)
        return np.sum(x**2)

    return loss, (_drawn(4, 6, 6), _drawn(5, 6))


def batch_norm() -> Network:
    def loss(p: Any, x: Any) -> Any:
        x = nn.conv(x, p["kernel"], padding="SAME")
        x, _, _ = lax.batch_norm_training(x, p["scale"], p["offset"], 1e-5, 3)
        return np.sum(np.maximum(x, 0) ** 2)

    parameters = {
        "kernel": _drawn(3, 3, 2, 4),
        "offset": np.zeros(4, np.float32),
        "scale": np.ones(4, np.float32),
    }
    return loss, (parameters, _drawn(2, 5, 5, 2))


def max_pool() -> Network:
    def loss(kernel: Any, x: Any) -> Any:
        x = nn.max_pool(np.tanh(nn.conv(x, kernel, padding="SAME")), (2, 2), (2, 2))
        return np.sum(x**2)

    return loss, (_drawn(3, 3, 2, 4), _drawn(2, 4, 4, 2))


def layer_norm() -> Network:
    def loss(weights: Any, x: Any) -> Any:
        for w in weights:
            x = x + nn.gelu(nn.layer_norm(x @ w))
        return np.mean(x**2)

    return loss, ([_drawn(6, 6), _drawn(6, 6)], _drawn(5, 6))


def attention() -> Network:
    def loss(weights: Any, x: Any) -> Any:
        q, k, v = (x @ w for w in weights)
        scores = nn.softmax(np.einsum("bqd,bkd->bqk", q, k) / 2.0, -1)
        return np.sum(np.einsum("bqk,bkd->bqd", scores, v) ** 2)

    return loss, ([_drawn(4, 4) for _ in range(3)], _drawn(2, 5, 4))


def recurrent() -> Network:
    def loss(w: Any, xs: Any) -> Any:
        final, _ = lax.scan(lambda h, x: (np.tanh(h @ w + x), None), xs[0], xs)
        return np.sum(final**2)

    return loss, (_drawn(4, 4), _drawn(6, 3, 4))


def embedding() -> Network:
    def loss(table: Any, w: Any, words: Any) -> Any:
        x = np.tanh(table[words].mean(1) @ w)
        return np.sum(nn.logsumexp(x @ table.T, axis=-1))

    return loss, (_drawn(9, 4), _drawn(4, 4), np.arange(15).reshape(5, 3) % 9)


NETWORKS = [
    perceptron,
    stacked,
    batch_norm,
    max_pool,
    layer_norm,
    attention,
    recurrent,
    embedding,
]


def gradient(network: Callable[[], Network]) -> Any:
    """The lowered `value_and_grad` of a network."""
    loss, arguments = network()
    return tj.jit(tj.value_and_grad(loss)).lower(*arguments)
