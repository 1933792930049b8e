"""Vectors of right-hand sides are written in full, however few of them there are."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import tracejit as tj
from tracejit.runtime import importing_tvm

with importing_tvm():
    from tracejit.backends.tvm.verification import program as verification


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("processor", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
def test_few_right_hand_sides(dtype: type, processor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(verification.VARIABLE, "all")
    solve = partial(tj.lax.linalg.triangular_solve, lower=True)
    for columns in (3, 5):
        shapes = [tj.ShapeDtypeStruct(shape, dtype) for shape in ((17, 17), (columns, 17))]
        lowered = tj.jit(solve, target=f"cpu:{processor}").lower(*shapes)
        lowered.compile()


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("columns", [1, 2, 16, 17])
def test_systems_of_one_unknown(size: int, columns: int) -> None:
    """The loop over earlier unknowns runs zero times, also where its extent is known."""
    matrix = np.full((3, size, size), 4.0)
    right = np.ones((3, size, columns))
    solve = tj.jit(partial(tj.lax.linalg.triangular_solve, left_side=True, lower=True))
    np.testing.assert_allclose(solve(matrix, right), np.linalg.solve(np.tril(matrix), right))
