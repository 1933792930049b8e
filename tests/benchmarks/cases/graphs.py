"""What tracing and compiling cost as the graph grows.

Each group of four operations ends in a reduction over columns, which the next group needs: no
engine can make one loop of the whole, and no two groups are alike.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.benchmarks.case import Case, normal

GROUP = 4


def chain(lib: Any, x: Any, *, operations: int) -> Any:
    np = lib.numpy
    for k in range(operations // GROUP):
        y = np.tanh(x * (1 + k / operations))
        x = y - np.sum(y, axis=0) / x.shape[0]
    return x


def length(operations: int) -> Case:
    implementation = partial(chain, operations=operations)
    return Case(
        f"graph of {operations} operations",
        (16,),
        tiny=(4,),
        inputs=normal(lambda n: (n, n)),
        tracejit=implementation,
        numpy=implementation,
        jax=implementation,
        measure="graph",
        start=operations == 100,
        tolerance=1e-2,
    )


CASES = [length(operations) for operations in (12, 100, 300, 1000)]
