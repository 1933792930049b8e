"""Sorts of which only the first few elements are used become selections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.ir.internal_ops import FIRST_SORTED
from tracejit.backends.tvm.passes.canonicalize.sort_to_topk import convert_sorts_to_topk
from tracejit.ops.constants import elements_of
from tracejit.ops.reduction import sort, sort_order
from tracejit.shapes import ElementType
from tracejit.trace.tracer import lift
from tracejit.traversal import in_order

RNG = np.random.default_rng(0)
ROW = RNG.integers(-99, 99, 5000).astype(np.float32)
ROW[::7], ROW[::11], ROW[::13] = 0.0, -0.0, np.nan
MATRIX = RNG.integers(-99, 99, (60, 70)).astype(np.int64)


def selections(function: Callable[[Any], Any], x: np.ndarray) -> list[int]:
    """How many each selection keeps."""
    root = tj.jit(function).lower(x).module.entry.root
    roots = root.operands if root.op.opcode == "tuple" else [root]
    found = in_order(convert_sorts_to_topk(roots, Machine()))
    return [i.attributes["kept"] for i in found if i.op is FIRST_SORTED]


@pytest.mark.parametrize(
    ("function", "x", "kept"),
    [
        (lambda x: np.sort(x)[:5], ROW, [5]),
        (lambda x: np.argsort(x, stable=True)[:40], ROW, [40]),
        (lambda x: np.sort(x, stable=True)[2:7] + 1, ROW, [7]),
        (lambda x: np.partition(x, 3)[3], ROW, [4]),
        (lambda x: x[np.argsort(x, stable=True)[:9:3]], ROW, [7]),
        (lambda x: np.sort(x, axis=0)[1:4], MATRIX, [4]),
        (lambda x: np.sort(x, axis=1)[5:9, :3], MATRIX, [3]),
        (lambda x: np.argsort(x, axis=1, stable=True)[:, :4] * 2, MATRIX, [4]),
    ],
)
def test_the_first_few(function: Callable[[Any], Any], x: np.ndarray, kept: list[int]) -> None:
    assert selections(function, x) == kept
    found, expected = tj.jit(function)(x), function(x)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


FLAGS = RNG.random(4000) < 0.4
FLAGS[:700] = False


@pytest.mark.parametrize("length", [1, 2, 7, 8, 9, 15, 16, 17, 31, 64, 333, 4000])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_places_of_flags(length: int, share: float, dtype: type) -> None:
    flags = FLAGS[:length]
    kept = int(share * length)

    def up_and_down(x: Any) -> Any:
        places = tj.numpy.arange(length, dtype=dtype)
        flag = x.instruction
        found = []
        for descending in (False, True):
            order = sort_order(ElementType.PRED, places.element_type, descending=descending)
            both = elements_of(sort([flag, places.instruction], order, 0, is_stable=True))
            found.append(lift(both[1], False)[:kept])
        return tuple(found)

    found = tj.jit(up_and_down)(flags)
    expected = [np.argsort(f, stable=True)[:kept] for f in (flags, ~flags)]
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == dtype
        np.testing.assert_array_equal(one, other)


def test_places_of_rows_of_flags() -> None:
    rows = RNG.random((70, 53)) < 0.3
    for axis in (0, 1):
        found = tj.jit(lambda x, axis=axis: np.argsort(x, axis, stable=True))(rows)
        np.testing.assert_array_equal(found, np.argsort(rows, axis, stable=True))
    many = selections(lambda x: np.argsort(x, axis=1, stable=True)[:, :40], rows)
    assert many == [40]


@pytest.mark.parametrize("size", [0, 1, 16, 100, 900, 1320, 1500, 4000, 4100])
def test_nonzero_of_unknown_places(size: int) -> None:
    flags = FLAGS.reshape(40, 100)
    for x in (flags, flags * 2.5, np.where(flags, np.nan, -0.0), flags.astype(np.int8)):
        found = tj.jit(lambda x: tj.numpy.nonzero(x, size=size, fill_value=-1))(x)
        for one, other in zip(found, np.nonzero(x), strict=True):
            missing = np.full(max(size - len(other), 0), -1)
            expected = np.concatenate([other[:size], missing])
            assert one.dtype == np.int64
            np.testing.assert_array_equal(one, expected)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.sort(x),
        lambda x: np.sort(x)[:3000],
        lambda x: np.sort(x)[-3:],
        lambda x: (lambda s: (s[:3], s.sum()))(np.sort(x)),
        lambda x: (lambda s: s[:3] + s[::-1][:3])(np.sort(x)),
    ],
)
def test_others_are_sorted(function: Callable[[Any], Any]) -> None:
    x = np.nan_to_num(ROW)
    assert selections(function, x) == []
    found, expected = tj.jit(function)(x), function(x)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
