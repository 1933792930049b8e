"""Transposition in registers, as LLVM text: all orders, edges and element types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.runtime import importing_tvm

with importing_tvm():
    from tests.backends_tvm.compiled import computation
    from tests.backends_tvm.kernel_harness import HOST
    from tests.lowered import lower
    from tracejit.backends.tvm.cpu.llvm.tir_to_llvm import translate_kernels

from tracejit import ops
from tracejit.shapes import ElementType, Shape

CASES = [
    ((64, 64), (1, 0)),
    ((256, 256), (1, 0)),
    ((300, 517), (1, 0)),
    ((67, 4100), (1, 0)),
    ((5, 70, 90), (0, 2, 1)),
    ((70, 5, 90), (2, 1, 0)),
    ((33, 40, 7, 50), (3, 0, 2, 1)),
    ((9, 31, 64, 65), (0, 3, 2, 1)),
]


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u8", "i2", "c8", "?"])
@pytest.mark.parametrize(("shape", "order"), CASES, ids=str)
def test_orders(shape: tuple[int, ...], order: tuple[int, ...], dtype: str) -> None:
    x = np.random.default_rng(0).integers(0, 9999, shape).astype(dtype)
    made = tj.jit(lambda x: tj.numpy.transpose(x, order))(x)
    np.testing.assert_array_equal(made, x.transpose(order))


def test_parts_and_reversed_parts() -> None:
    """What is read begins later than the operand, steps over numbers, or runs backwards."""
    x = np.random.default_rng(0).standard_normal((6, 200, 310)).astype(np.float32)

    def parts(x: Any) -> list[Any]:
        turned = [x[1:, 3:, 5:], x[::2, 1::3, 4:], x[::-1, 2:, 1:], x[:, ::-1, :], x[:, :, ::-1]]
        return [part.transpose(0, 2, 1) for part in turned]

    for made, expected in zip(tj.jit(parts)(x), parts(x), strict=True):
        np.testing.assert_array_equal(made, expected)


def test_what_is_done_besides_is_not_lost() -> None:
    x = np.random.default_rng(0).standard_normal((130, 270)).astype(np.float32)

    def several(x: Any) -> list[Any]:
        return [x.T + 1, x.T.astype(np.float64), (x.T * x.T[:1]), x.T.reshape(27, 1300)]

    for made, expected in zip(tj.jit(several)(x), several(x), strict=True):
        np.testing.assert_array_equal(made, expected)


def test_what_is_text() -> None:
    def texts(build: Callable[..., Any]) -> int:
        entry = computation(build, Shape(ElementType.F32, (128, 256)))
        return len(translate_kernels(lower(entry, HOST.machine).kernels).glue)

    assert texts(lambda x: ops.transpose(x, [1, 0])) > 0
    assert texts(lambda x: ops.neg(ops.transpose(x, [1, 0]))) == 0
