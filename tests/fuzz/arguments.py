"""Arrays for a graph's parameters, each drawn from a kind of values of its own."""

from __future__ import annotations

import numpy as np

from tests.samples.values import special_values, usual_values
from tracejit.graph import Computation
from tracejit.shapes import Shape


def arguments(entry: Computation, seed: int) -> list[np.ndarray]:
    """One array for each parameter; the same ``seed`` gives the same arrays."""
    rng = np.random.default_rng(seed)
    return [_drawn(rng, p.array_shape) for p in entry.parameters]


def _drawn(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """Usual values, small whole numbers, or now and then infinities, NaN and extremes."""
    element_type, sizes = shape.element_type, shape.dimensions
    kind = rng.integers(0, 8)
    if kind == 0 and not element_type.is_complex:
        return np.asarray(rng.choice(special_values(element_type), sizes))
    if kind < 4:
        least = -2 if element_type.is_signed else 0
        return rng.integers(least, 4, sizes).astype(shape.dtype)
    return np.asarray(usual_values(rng, sizes, element_type))
