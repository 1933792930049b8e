"""Small programs in the ways that people write them, which the suites have few or none of.

IDIOMS     a function and its arguments, by name
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tracejit as tj

_RNG = np.random.default_rng(0)
_NUMBERS = _RNG.normal(size=1_000_000)
_PLANE = _RNG.normal(size=(2000, 2000))
_PLACES = _RNG.integers(0, 2000, 1_000_000), _RNG.integers(0, 2000, 1_000_000)


def product_in_loops(a: Any, b: Any) -> Any:
    n = a.shape[0]
    c = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            for k in range(n):
                c[i, j] += a[i, k] * b[k, j]
    return c


def sum_of_positive(x: Any) -> Any:
    total = 0.0
    for i in range(x.shape[0]):
        if x[i] > 0:
            total += x[i]
    return total


def rolled_laplacian(x: Any) -> Any:
    around = np.roll(x, 1, 0) + np.roll(x, -1, 0) + np.roll(x, 1, 1) + np.roll(x, -1, 1)
    return around - 4 * x


def padded_stencil(x: Any) -> Any:
    p = np.pad(x, 1)
    return p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * x


def time_warping(costs: Any) -> Any:
    rows, columns = costs.shape
    table = np.full((rows + 1, columns + 1), 1e30)
    table[0, 0] = 0.0
    for i in range(rows):
        for j in range(columns):
            best = min(table[i + 1, j], table[i, j + 1], table[i, j])
            table[i + 1, j + 1] = costs[i, j] + best
    return table[rows, columns]


def where_true(x: Any) -> Any:
    return tj.numpy.nonzero(x > 0, size=400_000)[0]


def at_two_indices(x: Any, i: Any, j: Any) -> Any:
    return x[i, j]


def add_at_two_indices(x: Any, i: Any, j: Any) -> Any:
    x[i, j] += 1.0
    return x


def recurrent_gradient(w: Any, x: Any) -> Any:
    def loss(w: Any) -> Any:
        def step(carry: Any, row: Any) -> Any:
            new = np.tanh(w @ carry + row)
            return new, new

        return tj.lax.scan(step, np.zeros(512), x)[1].sum()

    return tj.grad(loss)(w)


def collected_steps(x: Any) -> Any:
    kept = []
    for k in range(300):
        x = np.sin(x) * (0.9 + 1e-3 * k) + x[::-1] * 0.1
        if k % 100 == 0:
            kept.append(x)
    return kept


IDIOMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "product in three loops": (product_in_loops, (_PLANE[:100, :100],) * 2),
    "sum of positive numbers in a loop": (sum_of_positive, (_NUMBERS,)),
    "Laplacian by np.roll": (rolled_laplacian, (_PLANE,)),
    "stencil of np.pad": (padded_stencil, (_PLANE,)),
    "time warping": (time_warping, (np.abs(_PLANE[:500, :500]),)),
    "nonzero": (where_true, (_NUMBERS,)),
    "argsort of rows": (lambda x: np.argsort(x, axis=1), (_PLANE[:, :128].astype(np.float32),)),
    "sort of int16": (np.sort, ((_NUMBERS * 1000).astype(np.int16),)),
    "first ten of a sort": (lambda x: np.sort(x)[:10], (_NUMBERS,)),
    "elements at two indices": (at_two_indices, (_PLANE, *_PLACES)),
    "additions at two indices": (add_at_two_indices, (_PLANE, *_PLACES)),
    "gradient of a recurrent network": (
        recurrent_gradient,
        (_PLANE[:512, :512] / 30, _PLANE[:100, :512]),
    ),
    "collected steps": (collected_steps, (_NUMBERS[:1000],)),
}
