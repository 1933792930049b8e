"""Matrix products."""

from __future__ import annotations

from typing import Any

from tests.benchmarks.case import Case, Target, normal


def matmul(lib: Any, x: Any, y: Any) -> Any:
    return x @ y


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


CASES = [square(64), square(256), square(1024)]
