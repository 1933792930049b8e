"""Rows long enough for several vectors of accumulators, with every kind of remainder."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tracejit as tj
from tests.backends_tvm.compiled import check, computation
from tests.lowered import lower
from tracejit import ops
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.graph import Instruction
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


@pytest.mark.parametrize("sizes", [(12, 255), (12, 300), (3, 1031), (70, 40)])
@pytest.mark.parametrize("index", [ElementType.S32, ElementType.S64, ElementType.U8], ids=str)
@pytest.mark.parametrize("kind", [ElementType.F32, ElementType.BF16, ElementType.S32], ids=str)
def test_places_of_extremes(kind: ElementType, index: ElementType, sizes: tuple[int, int]) -> None:
    """The first of equal values, and the first NaN before all of them."""
    rng = np.random.default_rng(sizes[1])
    x = rng.integers(-20, 20, sizes).astype(kind.dtype)
    if kind.is_floating:
        x[0, 3::50], x[1], x[2, ::2] = np.nan, -np.inf, -0.0
    if index is ElementType.U8:
        x = x[:, :200]

    def build(a: Instruction) -> Instruction:
        found = [f(a, d, index) for f in (ops.argmax, ops.argmin) for d in (0, 1)]
        flat = ops.reshape(a, (x.size,))
        whole = [f(flat, 0, ElementType.S32) for f in (ops.argmax, ops.argmin)]
        return ops.tuple_([*found, *whole])

    check(computation(build, Shape(kind, x.shape)), [x])


def test_phases_of_cheap_elements_have_several_accumulators() -> None:
    """Sums within a normalisation do not wait for one another, however much the rest costs."""

    def normalise(x: np.ndarray) -> np.ndarray:
        centred = x - x.mean(axis=1, keepdims=True)
        scale = np.sqrt((centred * centred).mean(axis=1, keepdims=True) + 1e-5)
        return np.asarray(centred / scale)

    module = tj.jit(normalise).lower(np.zeros((64, 1024), np.float32)).module
    (kernel,) = lower(module.entry, Machine(32, 1)).kernels
    assert len({*re.findall(r"\bacc_\d+", str(kernel.body))}) >= 8
