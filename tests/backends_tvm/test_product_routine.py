"""Products that are calls of a routine: its edges, copies and blocks; and what it compiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit
from tests.lowered import lower
from tracejit.backends.tvm.cpu.llvm import runtime_routines
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.cpu.objects import build as building
from tracejit.backends.tvm.program.program import Program
from tracejit.graph import Module

# Rows, columns, steps: whole tiles, and rows and columns that are left over; more steps than a
# block has, in both types; so many columns that rows are copied, too.
SIZES = [
    (64, 64, 64),
    (100, 37, 51),
    (13, 33, 300),
    (300, 17, 64),
    (40, 70, 2500),
    (129, 1030, 70),
]


def product(left: Any, right: Any) -> Any:
    return left @ right


def transposed(left: Any, right: Any) -> Any:
    return left.T @ right.T


def lowered(function: Callable[..., Any], *arguments: np.ndarray) -> Program:
    module: Module = tracejit.jit(function).lower(*arguments).module
    return lower(module.entry, Machine(64, 2))


def whole(rng: np.random.Generator, dtype: str, *shape: int) -> np.ndarray:
    """Small integers: their products have exact sums in any order."""
    return rng.integers(-8, 9, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("m", "n", "k"), SIZES)
def test_every_number_is_the_sum_of_its_products(m: int, n: int, k: int, dtype: str) -> None:
    rng = np.random.default_rng(m)
    left, right = whole(rng, dtype, m, k), whole(rng, dtype, k, n)
    np.testing.assert_array_equal(tracejit.jit(product)(left, right), left @ right)
    left, right = whole(rng, dtype, k, m), whole(rng, dtype, n, k)
    np.testing.assert_array_equal(tracejit.jit(transposed)(left, right), left.T @ right.T)


@pytest.mark.parametrize("shape", [(3, 200, 161, 131), (8, 165, 160, 160), (2, 33, 1037, 128)])
def test_batches(shape: tuple[int, ...]) -> None:
    b, m, n, k = shape
    rng = np.random.default_rng(b)
    left, right = whole(rng, "float32", b, m, k), whole(rng, "float32", b, k, n)
    (kernel,) = lowered(product, left, right).kernels
    assert kernel.direct is not None
    np.testing.assert_array_equal(tracejit.jit(product)(left, right), left @ right)


def test_parts_of_arrays_are_read_where_they_lie() -> None:
    rng = np.random.default_rng(1)
    left, right = whole(rng, "float64", 90, 200), whole(rng, "float64", 200, 80)

    def function(left: Any, right: Any) -> Any:
        return left[10:80, 20:120] @ right[30:130, 7:71]

    program = lowered(function, left, right)
    assert [kernel.direct is not None for kernel in program.kernels] == [True]
    np.testing.assert_array_equal(tracejit.jit(function)(left, right), function(left, right))


def test_what_is_computed_on_the_way_has_code_of_its_own() -> None:
    x = np.ones((64, 64), np.float32)
    (kernel,) = lowered(lambda x: np.maximum(x @ x, 0), x).kernels
    assert kernel.direct is None


def test_a_second_product_compiles_nothing() -> None:
    rng = np.random.default_rng(2)
    left, right = whole(rng, "float32", 65, 96), whole(rng, "float32", 96, 64)
    tracejit.jit(product)(left, right)
    known = dict(runtime_routines._cache)
    left, right = whole(rng, "float32", 130, 80), whole(rng, "float32", 80, 128)
    np.testing.assert_array_equal(tracejit.jit(product)(left, right), left @ right)
    assert runtime_routines._cache == known


def test_routines_that_share_their_columns_are_linked() -> None:
    """One copies operands, and one does not: how they multiply tiles is the same text, once."""
    rng = np.random.default_rng(4)
    small = [whole(rng, "float32", *shape) for shape in [(13, 64), (64, 32)]]
    large = [whole(rng, "float32", *shape) for shape in [(52, 256), (256, 512)]]

    def both(a: Any, b: Any, c: Any, d: Any) -> Any:
        return a @ b, c @ d

    for found, (left, right) in zip(
        tracejit.jit(both)(*small, *large), [small, large], strict=True
    ):
        np.testing.assert_array_equal(found, left @ right)


def test_convolutions_that_are_products_are_calls_too() -> None:
    rng = np.random.default_rng(5)
    image, window = whole(rng, "float32", 2, 64, 40, 40), whole(rng, "float32", 128, 64, 1, 1)

    def convolved(image: Any, window: Any) -> Any:
        return tracejit.lax.conv(image, window, (1, 1), "SAME")

    (kernel,) = lowered(convolved, image, window).kernels
    assert kernel.direct is not None
    found = tracejit.jit(convolved)(image, window)
    np.testing.assert_array_equal(found, np.einsum("bchw,oc->bohw", image, window[:, :, 0, 0]))


@pytest.mark.filterwarnings("ignore:no linker found")
def test_without_a_linker_parts_of_the_routine_are_in_the_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(building, "can_link", lambda: False)
    rng = np.random.default_rng(3)
    left, right = whole(rng, "float32", 131, 73), whole(rng, "float32", 73, 91)
    compiled = tracejit.jit(product).lower(left, right).compile()
    np.testing.assert_array_equal(compiled(left, right), left @ right)
