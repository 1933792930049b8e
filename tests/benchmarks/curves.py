"""How times grow: with the number of elements, and with the length of the graph.

    python -m tests.benchmarks --table tests.benchmarks.curves [--threads 1]

100 to 100 million elements, 10 to 10,000 operations. The largest arrays take 400 MB each.
"""

from __future__ import annotations

from typing import Any

from tests.benchmarks.case import Case, normal, same
from tests.benchmarks.cases.elementwise import polynomial, tanh_exp, tanh_exp_torch
from tests.benchmarks.cases.graphs import length

POWERS = range(2, 9)


def total(lib: Any, x: Any) -> Any:
    return lib.numpy.sum(x)


def total_torch(torch: Any, x: Any) -> Any:
    return torch.sum(x)


def sizes(name: str, arrays: int, implementation: Any, torch: Any) -> list[Case]:
    """A case for each number of elements."""
    return [
        Case(
            f"{name}, {10**power} elements",
            (10**power,),
            tiny=(10,),
            inputs=normal(*[same] * arrays),
            tracejit=implementation,
            numpy=implementation,
            jax=implementation,
            torch=torch,
        )
        for power in POWERS
    ]


CASES = [
    *sizes("tanh(x y) + 2 exp(x)", 2, tanh_exp, tanh_exp_torch),
    *sizes("polynomial of two arrays", 2, polynomial, polynomial),
    *sizes("sum", 1, total, total_torch),
    *[length(operations) for operations in (12, 100, 1000, 10_000)],
]
