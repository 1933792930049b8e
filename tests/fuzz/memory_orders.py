"""Random chains of views, copies and functions that end in a question for the order in memory.

judged(seed)                 "right", or "refused" where the order is not known; NumPy judges
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

import tracejit as tj
from tracejit.errors import UnsupportedError

Array = Any
Step = Callable[[Any, Array, Array], Array]

X = np.arange(24.0).reshape(2, 3, 4)
MATRIX = np.arange(12.0).reshape(3, 4)

# Each takes the array so far and the argument; those that change nothing asked for are views,
# copies in an order, and functions whose results lie as their operands do.
STEPS: dict[str, Step] = {
    "T": lambda np, v, x: v.T,
    "swapaxes": lambda np, v, x: np.swapaxes(v, 0, -1),
    "moveaxis": lambda np, v, x: np.moveaxis(v, 0, -1),
    "copy C": lambda np, v, x: v.copy(),
    "copy F": lambda np, v, x: v.copy("F"),
    "copy A": lambda np, v, x: v.copy("A"),
    "copy K": lambda np, v, x: np.copy(v),
    "array F": lambda np, v, x: np.array(v, order="F"),
    "contiguous": lambda np, v, x: np.ascontiguousarray(v),
    "by columns": lambda np, v, x: np.asfortranarray(v),
    "astype": lambda np, v, x: v.astype(np.float32).astype(np.float64),
    "add": lambda np, v, x: v + 1,
    "own transpose": lambda np, v, x: v + np.ones(v.shape[::-1]).T,
    "zeros F": lambda np, v, x: np.zeros(v.shape, order="F") + v,
    "zeros like": lambda np, v, x: np.zeros_like(v) + v * 0.5,
    "stretched": lambda np, v, x: v + np.arange(v.shape[-1]),
    "stretched up": lambda np, v, x: v[None] + np.zeros((2, *[1] * v.ndim)),
    "where": lambda np, v, x: np.where(v > 3, v, 0.5),
    "clip": lambda np, v, x: np.clip(v, 1, 20),
    "sort": lambda np, v, x: np.sort(v, 0),
    "round": lambda np, v, x: np.round(v, 1),
    "backwards": lambda np, v, x: v[::-1],
    "last backwards": lambda np, v, x: v[..., ::-1],
    "every second": lambda np, v, x: v[..., ::2],
    "without the first": lambda np, v, x: v[1:] if v.shape[0] > 1 else v,
    "new axis": lambda np, v, x: v[..., None],
    "reshape": lambda np, v, x: v.reshape(-1, v.shape[-1]),
    "reshape F": lambda np, v, x: v.reshape((v.shape[0], -1), order="F"),
    "taken": lambda np, v, x: v[np.array([0, -1, 0])],
    "taken last": lambda np, v, x: v[..., np.array([0, -1])],
    "taken with a mask": lambda np, v, x: v[:, np.arange(v.shape[1]) < 2] if v.ndim > 1 else v,
    "broadcast": lambda np, v, x: np.broadcast_to(v, (2, *v.shape)) if v.ndim < 3 else v,
    "product": lambda np, v, x: v @ np.ones((v.shape[-1], 2)) if v.ndim > 1 else v,
    "the argument": lambda np, v, x: x.T,
    "sum": lambda np, v, x: v + v.sum(0, keepdims=True),
}
ENDS: dict[str, Callable[[Any, Array], Array]] = {
    "ravel K": lambda np, v: v.ravel("K"),
    "ravel A": lambda np, v: np.ravel(v, "A"),
    "flatten K": lambda np, v: v.flatten("K"),
    "reshape A": lambda np, v: v.reshape(-1, order="A"),
    "copy K": lambda np, v: np.copy(v).ravel("K"),
    "add": lambda np, v: (v * 2).ravel("K"),
    "nditer": lambda np, v: np.array([one + 0 for one in np.nditer(v)]),
}


def interpreted(function: Callable[[Array], Array], x: np.ndarray) -> Any:
    return tj.interpret(tj.jit(function).lower(x).module, x)


def judged(seed: int) -> str:
    """What becomes of a seed's chain. Raises `AssertionError` for another order than NumPy's."""
    draw = random.Random(seed)
    x = draw.choice((X, MATRIX, X[:, :1].copy(), X[:1]))
    steps = [draw.choice(sorted(STEPS)) for _ in range(draw.randint(0, 6))]
    end = draw.choice(sorted(ENDS))

    def function(x: Array) -> Array:
        namespace: Any = np if isinstance(x, np.ndarray) else tj.numpy
        v = x
        for name in steps:
            if v.ndim < 5 and v.size < 3000:
                v = STEPS[name](namespace, v, x)
        return ENDS[end](namespace, v)

    expected = function(x)
    try:
        made = interpreted(function, x)
    except UnsupportedError as refused:
        if "order" not in refused.message:
            raise
        return "refused"
    if not np.allclose(made, expected, 1e-6, 1e-6):
        raise AssertionError(f"seed {seed}: {x.shape}, {steps}, {end}: not in NumPy's order")
    return "right"
