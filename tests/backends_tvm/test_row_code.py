"""Reductions of contiguous rows: of all lengths, for all ops and types, NaN included."""

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
from tracejit.ops.computations import scalar_computation
from tracejit.shapes import ElementType, Shape

SHAPES = [(8,), (9,), (257,), (1250,), (40_000,), (40_009,), (3, 16), (7, 1030), (5, 4, 33)]
SUMS: list[Callable[..., Any]] = [np.sum, np.max, np.min]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_rows_of_all_types(shape: tuple[int, ...]) -> None:
    """All ops and types of one shape in one program."""
    rng = np.random.default_rng(0)
    numbers, signs = rng.integers(-9, 9, shape), rng.choice([-1, 1], shape)
    arrays = [numbers.astype(t) for t in ("f4", "f8", "i4", "i8", "u4", "u8")]
    arrays += [rng.standard_normal(shape).astype(t) for t in ("f4", "f8")]
    products = [signs.astype(t) for t in ("f4", "f8", "i8", "u8")]

    def all_of_them(first: list[Any], second: list[Any]) -> list[Any]:
        sums = [function(x, axis=-1) for x in first for function in SUMS]
        return [*sums, *(np.prod(x, axis=-1) for x in second)]

    made = tj.jit(all_of_them)(arrays, products)
    for found, expected in zip(made, all_of_them(arrays, products), strict=True):
        assert found.dtype == expected.dtype
        if found.dtype.kind == "f":
            np.testing.assert_allclose(found, expected, 1e-5, 1e-5 * shape[-1])
        else:
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("shape", [(100,), (40_001,), (30, 33), (3, 20_000)], ids=str)
def test_initial_values(shape: tuple[int, ...]) -> None:
    """Several reductions of one program, from different numbers on."""
    x = np.random.default_rng(0).integers(-50, 50, shape)

    def from_several(x: Any) -> list[Any]:
        sums = [np.sum(x, axis=-1, initial=number) for number in (0, 3, -4)]
        return [*sums, *(np.max(x, axis=-1, initial=number) for number in (-60, 49, 70))]

    for dtype in (np.int32, np.float32):
        given = x.astype(dtype)
        for found, expected in zip(tj.jit(from_several)(given), from_several(given), strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("length", [9, 100, 40_000])
@pytest.mark.parametrize("place", [0, 7, -1])
def test_nan_and_zeros_of_both_signs(length: int, place: int) -> None:
    x = np.full(length, -0.0, np.float32)
    x[place] = 0.0

    def extremes(x: Any) -> Any:
        return tj.numpy.max(x), tj.numpy.min(x)

    found = tj.jit(extremes)(x)
    assert [bool(np.signbit(f)) for f in found] == [False, True]
    x[place] = np.nan
    assert np.isnan(tj.jit(extremes)(x)).all()


def test_extremes_of_many_floats_as_they_lie_are_text() -> None:
    add, most = (scalar_computation(name, ElementType.F32) for name in ("add", "max"))

    def held(build: Callable[..., Any]) -> bool:
        entry = computation(build, Shape(ElementType.F32, (64, 256)))
        (kernel,) = lower(entry, HOST.machine).kernels
        written = translate_kernels([kernel], [kernel.name])
        return any(name.startswith("tracejit_row") for name in written.code)

    zero = ops.constant(0, ElementType.F32)
    assert held(lambda x: ops.sqrt(ops.reduce(x, zero, most, [0, 1])))
    assert not held(lambda x: ops.reduce(x, zero, add, [0, 1]))
    assert not held(lambda x: ops.reduce(ops.mul(x, x), zero, most, [0, 1]))
    assert not held(lambda x: ops.reduce(x, zero, most, [0]))
