"""What an installed wheel must do: run by a fresh environment's Python, outside the checkout.

Usage: `python -I smoke.py ENVIRONMENT`, where ENVIRONMENT is the folder that tracejit must lie in.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import tracejit
import tracejit.autodiff
import tracejit.backends

environment = Path(sys.argv[1]).resolve()
for package in (tracejit, tracejit.autodiff, tracejit.backends):
    assert package.__file__ is not None, package
    assert environment in Path(package.__file__).resolve().parents, package.__file__

for bare in ("autodiff", "backends", "tests"):
    found = importlib.util.find_spec(bare)
    assert found is None, f"{bare} is importable from {found}"


def loss(w: np.ndarray, x: np.ndarray) -> Any:
    return np.tanh(x @ w).sum()


x, w = np.linspace(-1, 1, 6).reshape(2, 3), np.ones((3, 2))
value, slope = tracejit.jit(tracejit.value_and_grad(loss))(w, x)
assert np.allclose(value, loss(w, x)), value
assert np.allclose(slope, x.T @ (1 - np.tanh(x @ w) ** 2)), slope

print(f"tracejit {version('tracejit')} works from {Path(tracejit.__file__ or '').parent.name}")
