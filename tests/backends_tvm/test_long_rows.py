"""Rows long enough for several vectors of accumulators, with every kind of remainder."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends_tvm.compiled import check, computation
from tracejit import ops
from tracejit.shapes import ElementType, Shape


@pytest.mark.parametrize("size", [255, 256, 288, 300, 512, 1031])
@pytest.mark.parametrize("kind", [ElementType.F32, ElementType.F64, ElementType.BF16], ids=str)
def test_greatest_and_least(kind: ElementType, size: int) -> None:
    rng = np.random.default_rng(size)
    x = rng.standard_normal((12, size)).astype(kind.dtype)
    for row in range(6):
        x[row, rng.integers(size)] = [np.nan, np.inf, -np.inf, 100, -100, np.nan][row]
    x[6], x[7, -1] = -0.0, np.nan
    x[6, size // 2] = 0.0
    check(
        computation(
            lambda a: ops.tuple_(
                [
                    ops.reduce_max(a, [1]),
                    ops.reduce_min(a, [1]),
                    ops.reduce_max(ops.neg(a), [0, 1]),
                ]
            ),
            Shape(kind, x.shape),
        ),
        [x],
    )
