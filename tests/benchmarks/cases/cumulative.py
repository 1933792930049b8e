"""Cumulative sums: along rows, down columns, and along one long array."""

from __future__ import annotations

from typing import Any

from tests.benchmarks.case import Case, normal, same


def along(axis: int) -> Any:
    return lambda lib, x: lib.numpy.cumsum(x, axis=axis)


def along_torch(axis: int) -> Any:
    return lambda torch, x: torch.cumsum(x, axis)


def cumulative(name: str, size: tuple[int, ...], tiny: tuple[int, ...], axis: int) -> Case:
    return Case(
        name,
        size,
        tiny=tiny,
        inputs=normal(same),
        tracejit=along(axis),
        numpy=along(axis),
        jax=along(axis),
        torch=along_torch(axis),
        tolerance=1e-3,
    )


CASES = [
    cumulative("cumulative sum, 1M", (1_000_000,), (1000,), 0),
    cumulative("cumulative sum of rows, 1024x1024", (1024, 1024), (5, 33), 1),
    cumulative("cumulative sum of columns, 1024x1024", (1024, 1024), (33, 5), 0),
]
