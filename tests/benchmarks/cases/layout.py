"""Data moved and not computed: transposes, concatenation, padding, repetition."""

from __future__ import annotations

from typing import Any

from tests.benchmarks.case import Case, normal, same


def transpose(lib: Any, x: Any) -> Any:
    return x.T.copy() if lib.numpy.__name__ == "numpy" else x.T


def heads(lib: Any, x: Any) -> Any:
    moved = x.transpose(0, 2, 1, 3)
    return moved.copy() if lib.numpy.__name__ == "numpy" else moved


def joined(lib: Any, x: Any, y: Any) -> Any:
    return lib.numpy.concatenate([x, y], axis=1)


def padded(lib: Any, x: Any) -> Any:
    return lib.numpy.pad(x, ((0, 0), (1, 1), (1, 1)))


CASES = [
    Case(
        "transpose, 2048x2048",
        (2048, 2048),
        tiny=(5, 7),
        inputs=normal(same),
        tracejit=transpose,
        numpy=transpose,
        jax=transpose,
        torch=lambda torch, x: x.T.contiguous(),
    ),
    Case(
        "transpose of heads, 16x128x8x64",
        (16, 128, 8, 64),
        tiny=(2, 3, 4, 5),
        inputs=normal(same),
        tracejit=heads,
        numpy=heads,
        jax=heads,
        torch=lambda torch, x: x.permute(0, 2, 1, 3).contiguous(),
    ),
    Case(
        "concatenate two of 1024x512",
        (1024, 512),
        tiny=(5, 7),
        inputs=normal(same, same),
        tracejit=joined,
        numpy=joined,
        jax=joined,
        torch=lambda torch, x, y: torch.cat([x, y], 1),
    ),
    Case(
        "pad 256x56x56 by one",
        (256, 56, 56),
        tiny=(2, 5, 7),
        inputs=normal(same),
        tracejit=padded,
        numpy=padded,
        jax=padded,
        torch=lambda torch, x: torch.nn.functional.pad(x, (1, 1, 1, 1)),
    ),
]
