"""The table of what is measured, by family.

An implementation's first argument is its engine's module: `numpy` with itself as `.numpy`, `jax`,
`torch` or `tracejit`. NumPy, JAX and tracejit mostly share one text, since the names are the same.
"""

from __future__ import annotations

from tests.benchmarks.case import Case
from tests.benchmarks.cases import (
    attention,
    chains,
    contraction,
    cumulative,
    dispatch,
    elementwise,
    gaussian,
    graphs,
    indexing,
    layout,
    linalg,
    loops,
    lstm,
    newton,
    oscillator,
    perceptron,
    recurrent,
    reduction,
    spectra,
    training,
    windows,
)

CASES: list[Case] = [
    *dispatch.CASES,
    *elementwise.CASES,
    *reduction.CASES,
    *cumulative.CASES,
    *contraction.CASES,
    *windows.CASES,
    *indexing.CASES,
    *layout.CASES,
    *chains.CASES,
    *linalg.CASES,
    *spectra.CASES,
    *loops.CASES,
    *training.CASES,
    *perceptron.CASES,
    *recurrent.CASES,
    *lstm.CASES,
    *attention.CASES,
    *oscillator.CASES,
    *gaussian.CASES,
    *newton.CASES,
    *graphs.CASES,
]
