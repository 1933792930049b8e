"""Masked contractions whose masks become bounds: the sums are equal, whatever is masked."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.backends_tvm.compiled import compiled
from tracejit import ops
from tracejit.backends.tvm.ir.internal_ops import BOUNDED_DOT
from tracejit.backends.tvm.passes.loops.mask_to_bounds import convert_masks_to_bounds
from tracejit.graph import Computation, Instruction
from tracejit.runtime import Executable
from tracejit.shapes import ElementType, Shape
from tracejit.traversal import in_order

LOWEST, HIGHEST = -(2**31), 2**31 - 1


def masked(
    array: Instruction, dimension: int, first: Instruction, end: Instruction, other: float = 0
) -> Instruction:
    """``array`` where its place along a dimension lies within bounds."""
    sizes = array.array_shape.dimensions
    numbers = ops.iota(Shape(ElementType.S32, (sizes[dimension],)))
    inside = ops.and_(
        ops.ge(numbers, ops.broadcast(first, numbers.array_shape.dimensions)),
        ops.lt(numbers, ops.broadcast(end, numbers.array_shape.dimensions)),
    )
    mask = ops.broadcast_in_dim(inside, sizes, (dimension,))
    return ops.select(mask, array, ops.full(array.array_shape, other))


def product(
    shapes: Sequence[tuple[int, ...]], sums: tuple[int, int], element_type: ElementType
) -> Computation:
    """Parameters a, b, first, end: the product of what is within bounds."""
    scalar = Shape(ElementType.S32)
    lhs, rhs = (ops.parameter(n, Shape(element_type, s)) for n, s in enumerate(shapes))
    first, end = ops.parameter(2, scalar), ops.parameter(3, scalar)
    numbers = ops.DotDimensionNumbers((sums[0],), (sums[1],))
    left, right = masked(lhs, sums[0], first, end), masked(rhs, sums[1], first, end)
    root = ops.dot_general(left, right, numbers)
    return Computation("entry", (lhs, rhs, first, end), root)


Sizes = Callable[[int, int], list[tuple[int, ...]]]
LAYOUTS: dict[str, tuple[Sizes, tuple[int, int]]] = {
    "vectors": (lambda f, k: [(k,), (k,)], (0, 0)),
    "rows": (lambda f, k: [(f, k), (k,)], (1, 0)),
    "columns": (lambda f, k: [(k, f), (k,)], (0, 0)),
    "vector and rows": (lambda f, k: [(k,), (f, k)], (0, 1)),
    "vector and columns": (lambda f, k: [(1, k), (k, f)], (1, 0)),
}


@functools.cache
def program(layout: str, free: int, size: int, name: str) -> Executable:
    shapes, sums = LAYOUTS[layout]
    entry = product(shapes(free, size), sums, ElementType(name))
    assert any(i.op is BOUNDED_DOT for i in in_order(convert_masks_to_bounds([entry.root])))
    return compiled(entry)


BOUND = st.one_of(st.integers(-3, 100), st.sampled_from([LOWEST, LOWEST + 1, HIGHEST]))


@given(
    st.sampled_from(sorted(LAYOUTS)),
    st.sampled_from([(1, 3), (1, 97), (5, 97), (43, 70), (85, 17)]),
    st.sampled_from(["f64", "f32", "s32", "c64"]),
    BOUND,
    BOUND,
)
def test_only_what_is_within_bounds_counts(
    layout: str, sizes: tuple[int, int], name: str, first: int, end: int
) -> None:
    free, size = sizes
    shapes, sums = LAYOUTS[layout]
    draws = np.random.default_rng(0)
    dtype = ElementType(name).dtype
    arrays = [draws.integers(-9, 9, shape).astype(dtype) for shape in shapes(free, size)]
    run = slice(min(max(first, 0), size), min(max(end, 0), size))
    left, right = (np.moveaxis(x, d, -1)[..., run] for x, d in zip(arrays, sums, strict=True))
    expected = np.inner(left, right)
    if dtype.kind in "fc":
        for array, d in zip(arrays, sums, strict=True):
            places = np.arange(size)
            outside = (places < run.start) | (places >= max(run.stop, run.start))
            np.moveaxis(array, d, -1)[..., outside] = np.nan
    bounds = [np.array(bound, np.int32) for bound in (first, end)]
    (found,) = program(layout, free, size, name)([*arrays, *bounds])
    np.testing.assert_array_equal(found, expected.astype(dtype))


def bounded(root: Instruction) -> bool:
    return any(i.op is BOUNDED_DOT for i in in_order(convert_masks_to_bounds([root])))


@pytest.mark.parametrize("other", [0.0, -0.0, 1.0, np.nan])
def test_only_zeros_are_left_out(other: float) -> None:
    x, y = (ops.parameter(n, Shape(ElementType.F64, (30,))) for n in range(2))
    first, end = (ops.parameter(n, Shape(ElementType.S32)) for n in (2, 3))
    sides = masked(x, 0, first, end, other), masked(y, 0, first, end)
    assert bounded(ops.dot(*sides)) == (other == 0)


@given(st.integers(-3, 40), st.sampled_from(["GE", "LT"]))
def test_one_bound_of_64_bits(bound: int, direction: str) -> None:
    size, wide = 33, bound + (bound % 3 - 1) * 2**40
    x = np.arange(size, dtype=np.float64)
    places = np.arange(size)
    inside = places >= wide if direction == "GE" else places < wide
    y = np.where(inside, x, np.nan)
    (found,) = one_sided(size, direction)([x, y, np.array(wide)])
    assert found == (x[inside] ** 2).sum()


@functools.cache
def one_sided(size: int, direction: str) -> Executable:
    x, y = (ops.parameter(n, Shape(ElementType.F64, (size,))) for n in range(2))
    bound = ops.parameter(2, Shape(ElementType.S64))
    numbers = ops.iota(Shape(ElementType.S64, (size,)))
    mask = ops.compare(numbers, ops.broadcast(bound, (size,)), direction)
    nothing = ops.full(x.array_shape, 0)
    root = ops.dot(ops.select(mask, x, nothing), ops.select(mask, y, nothing))
    assert bounded(root)
    return compiled(Computation("entry", (x, y, bound), root))


def test_both_masks_must_be_the_same() -> None:
    x, y = (ops.parameter(n, Shape(ElementType.F64, (30,))) for n in range(2))
    first, end, other = (ops.parameter(n, Shape(ElementType.S32)) for n in (2, 3, 4))
    assert bounded(ops.dot(masked(x, 0, first, end), masked(y, 0, first, end)))
    assert not bounded(ops.dot(masked(x, 0, first, end), masked(y, 0, first, other)))
    # What lies outside of the bounds may be NaN, and is multiplied by zero.
    assert not bounded(ops.dot(masked(x, 0, first, end), y))


def test_masks_of_other_dimensions_are_no_bounds() -> None:
    x = ops.parameter(0, Shape(ElementType.F64, (30, 30)))
    y = ops.parameter(1, Shape(ElementType.F64, (30,)))
    first, end = (ops.parameter(n, Shape(ElementType.S32)) for n in (2, 3))
    assert bounded(ops.dot(masked(x, 1, first, end), masked(y, 0, first, end)))
    assert not bounded(ops.dot(masked(x, 0, first, end), masked(y, 0, first, end)))


def test_products_of_matrices_keep_their_masks() -> None:
    x = ops.parameter(0, Shape(ElementType.F64, (30, 30)))
    first, end = (ops.parameter(n, Shape(ElementType.S32)) for n in (1, 2))
    assert not bounded(ops.dot(masked(x, 1, first, end), masked(x, 0, first, end)))
