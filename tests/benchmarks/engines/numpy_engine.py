"""NumPy, called as it is."""

from __future__ import annotations

from types import SimpleNamespace

import numpy

from tests.benchmarks.engines.base import Engine


class NumpyEngine(Engine):
    def __init__(self) -> None:
        # Implementations shared with JAX and tracejit say `module.numpy.exp`.
        self.module = SimpleNamespace(numpy=numpy)
        self.version = f"NumPy {numpy.__version__}"


ENGINE = NumpyEngine
