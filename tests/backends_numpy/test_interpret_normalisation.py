"""The interpreter's batch normalisation where rounding matters."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from tests.building import computation
from tests.samples.normalisation import training
from tracejit.backends.numpy import evaluate
from tracejit.shapes import shape_of


def test_the_variance_survives_a_large_mean() -> None:
    x = (1e4 + np.random.default_rng(0).normal(size=(64, 2))).astype(np.float32)
    ones = np.ones(2, np.float32)
    entry = computation("main", training(0.0, 1), *map(shape_of, (x, ones, ones)))
    _, mean, variance = evaluate(entry, [x, ones, ones])
    assert_allclose(mean, x.astype(np.float64).mean(0), rtol=1e-6)
    assert_allclose(variance, x.astype(np.float64).var(0), rtol=1e-3)
