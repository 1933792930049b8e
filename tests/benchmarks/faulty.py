"""A table of cases that go wrong, each in its own way, for the framework's own tests."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from tests.benchmarks.case import Case


def ones(rng: np.random.Generator, size: int) -> tuple[np.ndarray]:
    return (np.ones(size),)


def fail(lib: Any, x: np.ndarray) -> Any:
    raise ValueError(f"no answer for {x.shape}")


def end(lib: Any, x: np.ndarray) -> Any:
    os._exit(7)


def doubled(lib: Any, x: Any) -> Any:
    return x * 2


CASES = [
    Case(
        "right",
        (4,),
        (4,),
        ones,
        numpy=doubled,
        torch=lambda torch, x: x.numpy() + x.numpy(),
    ),
    Case("raises", (4,), (4,), ones, numpy=fail, torch=fail),
    Case("ends", (4,), (4,), ones, numpy=end),
    Case("wrong", (4,), (4,), ones, numpy=doubled, torch=lambda torch, x: x.numpy() * 3),
    Case("right again", (4,), (4,), ones, numpy=doubled),
]
