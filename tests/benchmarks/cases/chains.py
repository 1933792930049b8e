"""Chains with large arrays in between: attention, and stencils of stencils.

PyTorch attends by its own fused function.
"""

from __future__ import annotations

import math
from typing import Any

from tests.benchmarks.case import Case, normal, same


def attention(lib: Any, q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    powers = lib.numpy.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True) @ v


def attention_torch(torch: Any, q: Any, k: Any, v: Any) -> Any:
    return torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None])[0]


def smoothed(_: Any, u: Any) -> Any:
    for _step in range(4):
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        u = 0.5 * u[1:-1, 1:-1] + 0.125 * around
    return u


CASES = [
    Case(
        "attention, 8 heads of 1024x64",
        (8, 1024, 64),
        tiny=(2, 5, 4),
        inputs=normal(same, same, same),
        tracejit=attention,
        numpy=attention,
        jax=attention,
        torch=attention_torch,
    ),
    *(
        Case(
            f"four stencils in a chain, {size}x{size}",
            (size, size),
            tiny=(12, 11),
            inputs=normal(same),
            tracejit=smoothed,
            numpy=smoothed,
            jax=smoothed,
            torch=smoothed,
        )
        for size in (1000, 3000)
    ),
]
