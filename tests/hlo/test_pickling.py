"""Modules are pickled as their text, and copied as what they are: data that never changes."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np

import tracejit as tj


def steps(x: Any, n: Any) -> Any:
    for _ in range(500):
        x = x * 1.01 + n
    return x, tj.lax.fori_loop(0, 3, lambda i, c: c + x[i], 0.0)


def test_pickling() -> None:
    x, n = np.arange(4.0), np.float64(2)
    module = tj.jit(steps).lower(x, n).module
    read = pickle.loads(pickle.dumps(module))
    assert str(read) == str(module)
    for ours, wanted in zip(tj.interpret(read, x, n), tj.interpret(module, x, n), strict=True):
        np.testing.assert_array_equal(ours, wanted)


def test_copying() -> None:
    module = tj.jit(np.sin).lower(1.0).module
    assert copy.copy(module) is module
    assert copy.deepcopy([module])[0] is module
