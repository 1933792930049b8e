"""Products whose columns lie side by side in memory are added in vectors, as a reduction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.backends.tvm.ir.limits import Limits
from tracejit.backends.tvm.passes.legalize.composites import legalize
from tracejit.ops.contraction import DOT_GENERAL
from tracejit.traversal import in_order

RNG = np.random.default_rng(0)


def random(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    made = RNG.integers(-9, 9, shape) + (1j * RNG.integers(-9, 9, shape) if dtype == "c8" else 0)
    return made.astype(dtype)


def has_dot(subscripts: str, *given: np.ndarray) -> bool:
    def function(*arrays: Any) -> Any:
        return np.einsum(subscripts, *arrays)

    found = tj.jit(function)(*given)
    np.testing.assert_array_equal(found, np.einsum(subscripts, *given))
    root = tj.jit(function).lower(*given).module.entry.root
    return any(i.op is DOT_GENERAL for i in in_order(legalize([root], Limits())))


@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "u2", "i4", "i8", "c8"])
def test_sums_of_columns(dtype: str) -> None:
    x, y = random((53, 70), dtype), random((53, 70), dtype)
    assert not has_dot("ij,ij->j", x, y)
    deep = random((5, 12, 33), dtype)
    assert not has_dot("ijk,ijk->k", deep, deep)
    assert not has_dot("ijk,ijk->jk", deep, deep)


def test_others_are_products() -> None:
    x, y = random((53, 70), "f4"), random((53, 70), "f4")
    assert has_dot("ij,ij->i", x, y)
    assert has_dot("ij,ik->jk", x, y)
    assert has_dot("ij,ji->j", x, y.T.copy())
    # Sums of narrow floats are made in a wider type.
    small = random((53, 70), "f2")
    assert has_dot("ij,ij->j", small, small)
