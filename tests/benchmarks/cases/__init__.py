"""The table of what is measured, by family.

An implementation's first argument is its engine's module: `numpy` with itself as `.numpy`, `jax`,
`torch` or `tracejit`. NumPy, JAX and tracejit mostly share one text, since the names are the same.
"""

from __future__ import annotations

from tests.benchmarks.case import Case
from tests.benchmarks.cases import (
    contraction,
    dispatch,
    elementwise,
    graphs,
    indexing,
    reduction,
    training,
    windows,
)

CASES: list[Case] = [
    *dispatch.CASES,
    *elementwise.CASES,
    *reduction.CASES,
    *contraction.CASES,
    *windows.CASES,
    *indexing.CASES,
    *training.CASES,
    *graphs.CASES,
]
