"""Large transforms, which are SciPy's, are those of NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.building import computation
from tracejit import ops
from tracejit.backends.numpy import evaluate
from tracejit.shapes import shape_of


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("kind", ["FFT", "IFFT", "RFFT", "IRFFT"])
def test_large_transforms(kind: str, single: bool) -> None:
    rng = np.random.default_rng(0)
    lengths = (2, 90, 201)
    sizes = (3, 2, 90, 101 if kind == "IRFFT" else 201)
    x: Any = rng.standard_normal(sizes)
    if kind != "RFFT":
        x = x + 1j * rng.standard_normal(sizes)
    narrow = {"c": np.complex64, "f": np.float32}[x.dtype.kind]
    given = x.astype(narrow) if single else x
    before = given.copy()
    entry = computation("entry", lambda a: ops.fft(a, kind, lengths), shape_of(given))
    found = evaluate(entry, [given])
    transform = getattr(np.fft, {"RFFT": "rfftn", "IRFFT": "irfftn"}.get(kind, f"{kind.lower()}n"))
    expected = transform(x, lengths, (1, 2, 3))
    assert found.dtype == entry.root.array_shape.dtype
    exactness = 2e-6 if single else 1e-14
    np.testing.assert_allclose(found, expected, atol=exactness * np.abs(expected).max())
    np.testing.assert_array_equal(given, before)
