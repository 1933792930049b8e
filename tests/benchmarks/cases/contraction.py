"""Matrix products."""

from __future__ import annotations

from typing import Any

import numpy

from tests.benchmarks.case import Case, Target, normal


def matmul(lib: Any, x: Any, y: Any) -> Any:
    return x @ y


def batched_case(name: str, size: tuple[int, ...], tiny: tuple[int, ...]) -> Case:
    """``size`` is (batch, n): as many products of n by n matrices."""
    return Case(
        name,
        size,
        tiny=tiny,
        inputs=normal(lambda b, n: (b, n, n), lambda b, n: (b, n, n)),
        tracejit=matmul,
        numpy=matmul,
        jax=matmul,
        torch=matmul,
        target=Target(1.1),
    )


def square(n: int) -> Case:
    return Case(
        f"matmul, {n}x{n}",
        (n,),
        tiny=(9,),
        inputs=normal(lambda n: (n, n), lambda n: (n, n)),
        tracejit=matmul,
        numpy=matmul,
        jax=matmul,
        torch=matmul,
        target=Target(1.1),
    )


CASES = [
    square(64),
    square(256),
    square(1024),
    Case(
        "matmul, 512x512, f64",
        (512,),
        tiny=(9,),
        inputs=normal(lambda n: (n, n), lambda n: (n, n), dtype=numpy.float64),
        tracejit=matmul,
        numpy=matmul,
        jax=matmul,
        torch=matmul,
        target=Target(1.1),
    ),
    Case(
        "matrix-vector, 2048x2048",
        (2048,),
        tiny=(9,),
        inputs=normal(lambda n: (n, n), lambda n: (n,)),
        tracejit=matmul,
        numpy=matmul,
        jax=matmul,
        torch=matmul,
        target=Target(1.1),
    ),
    Case(
        "vector-matrix, 2048x2048",
        (2048,),
        tiny=(9,),
        inputs=normal(lambda n: (n,), lambda n: (n, n)),
        tracejit=matmul,
        numpy=matmul,
        jax=matmul,
        torch=matmul,
        target=Target(1.1),
    ),
    batched_case("matmul, 10,000 of 4x4", (10_000, 4), (3, 4)),
    batched_case("matmul, 512 of 32x32", (512, 32), (3, 5)),
]
