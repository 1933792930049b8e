"""Integers at their limits through every kind of kernel, in the patterns that LLVM rewrites.

Told that a sum never overflows, LLVM takes ``a + b < a`` for ``b < 0``, ``abs(x) < 0`` for false,
and a sum of positive numbers for positive.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.backends_tvm.compiled import check, computation
from tracejit import ops
from tracejit.graph import Computation, Instruction
from tracejit.shapes import ElementType, Shape

WIDE = [ElementType.S32, ElementType.U32, ElementType.S64, ElementType.U64]
every_width = pytest.mark.parametrize("kind", WIDE, ids=str)


def most(kind: ElementType) -> int:
    return int(np.iinfo(kind.dtype).max)


def least(kind: ElementType) -> int:
    return int(np.iinfo(kind.dtype).min)


def limits(kind: ElementType, *dimensions: int) -> np.ndarray:
    """Numbers at both ends of the type, and in the middle."""
    top, bottom = most(kind), least(kind)
    values = [top, bottom, top - 1, bottom + 1, top // 2 + 1, 1, 3]
    return np.resize(np.array(values, kind.dtype), dimensions)


def saturating(kind: ElementType) -> Computation:
    """The sum of two numbers that are not negative; where it overflows, the greatest number."""
    a, b = ops.parameter(0, Shape(kind)), ops.parameter(1, Shape(kind))
    total = ops.add(a, b)
    return Computation(
        "saturating", (a, b), ops.select(ops.lt(total, a), ops.full_like(a, most(kind)), total)
    )


def run(kind: ElementType, build: Callable[..., Instruction], *arrays: np.ndarray) -> None:
    check(computation(build, *(Shape(kind, a.shape) for a in arrays)), arrays)


def flags(*comparisons: Instruction) -> Instruction:
    return ops.tuple_([ops.convert_element_type(c, ElementType.U8) for c in comparisons])


@every_width
@pytest.mark.parametrize("size", [3, 64])
def test_one_operand(kind: ElementType, size: int) -> None:
    def build(x: Instruction) -> Instruction:
        zero = ops.full_like(x, 0)
        negative = ops.lt(ops.neg(x), zero)
        if not kind.is_signed:
            return flags(negative, ops.eq(ops.neg(x), x))
        return flags(negative, ops.lt(ops.abs(x), zero), ops.eq(ops.neg(x), x))

    run(kind, build, limits(kind, size))


@every_width
def test_two_operands(kind: ElementType) -> None:
    def build(x: Instruction, y: Instruction) -> Instruction:
        two = ops.full_like(x, 2)
        return flags(
            ops.lt(ops.add(x, y), x),
            ops.gt(ops.sub(x, y), x),
            ops.eq(ops.div(ops.mul(x, two), two), x),
            ops.lt(ops.add(x, ops.full_like(x, 1)), ops.add(x, two)),
            ops.eq(ops.add(ops.full_like(x, most(kind)), two), x),
            ops.eq(ops.sub(ops.full_like(x, least(kind)), two), x),
        )

    run(kind, build, limits(kind, 70), limits(kind, 70)[::-1].copy())


@every_width
def test_widened_sums(kind: ElementType) -> None:
    def build(x: Instruction) -> Instruction:
        total = ops.add(x, ops.full_like(x, 1))
        return ops.convert_element_type(ops.mul(total, total), ElementType.S64)

    run(kind, build, limits(kind, 70))


@every_width
@pytest.mark.parametrize("start", [1, 2])
def test_iota(kind: ElementType, start: int) -> None:
    def build(x: Instruction) -> Instruction:
        numbers = ops.iota(Shape(kind, (50,)), 0)
        far = ops.add(numbers, ops.full_like(numbers, most(kind) - start))
        return flags(ops.lt(far, numbers), ops.lt(ops.mul(far, ops.full_like(far, 3)), far))

    run(kind, build, limits(kind, 1))


@every_width
@pytest.mark.parametrize("sizes", [(40,), (3, 64), (64, 3)])
@pytest.mark.parametrize("dimension", [0, -1])
def test_reductions(kind: ElementType, sizes: tuple[int, ...], dimension: int) -> None:
    def build(x: Instruction) -> Instruction:
        positive = ops.and_(x, ops.full_like(x, most(kind)))
        zero, start = ops.constant(0, kind), ops.constant(3, kind)
        add = ops.scalar_computation("add", kind)
        total = ops.reduce(positive, start, add, [dimension])
        product = ops.reduce(positive, start, ops.scalar_computation("mul", kind), [dimension])
        none = ops.full_like(total, 0)
        return ops.tuple_(
            [
                ops.convert_element_type(ops.lt(total, none), ElementType.U8),
                ops.convert_element_type(ops.lt(product, none), ElementType.U8),
                ops.reduce(positive, zero, saturating(kind), [dimension]),
            ]
        )

    run(kind, build, limits(kind, *sizes))


@every_width
@pytest.mark.parametrize("dimension", [0, 1])
def test_windows(kind: ElementType, dimension: int) -> None:
    def build(x: Instruction) -> Instruction:
        positive = ops.and_(x, ops.full_like(x, most(kind)))
        zero, sizes = ops.constant(0, kind), [1, 1]
        sizes[dimension] = 4
        return ops.tuple_(
            [
                ops.cumulative("add", positive, dimension),
                ops.cumulative("mul", positive, dimension, reverse=True),
                ops.reduce_window(positive, zero, saturating(kind), sizes, [1, 1]),
            ]
        )

    run(kind, build, limits(kind, 12, 20))


@every_width
def test_products_of_matrices(kind: ElementType) -> None:
    def build(x: Instruction, y: Instruction) -> Instruction:
        lhs, rhs = (ops.and_(a, ops.full_like(a, most(kind))) for a in (x, y))
        total = ops.dot(lhs, rhs)
        vector = ops.dot(lhs, ops.reshape(ops.slice_(rhs, [0, 0], [9, 1]), [9]))
        return flags(
            ops.lt(total, ops.full_like(total, 0)), ops.lt(vector, ops.full_like(vector, 0))
        )

    run(kind, build, limits(kind, 20, 9), limits(kind, 9, 33))


@every_width
def test_convolutions(kind: ElementType) -> None:
    def build(x: Instruction, y: Instruction) -> Instruction:
        lhs, rhs = (ops.and_(a, ops.full_like(a, most(kind))) for a in (x, y))
        total = ops.conv(lhs, rhs, [1, 1], "SAME")
        return flags(ops.lt(total, ops.full_like(total, 0)))

    run(kind, build, limits(kind, 1, 3, 6, 5), limits(kind, 2, 3, 3, 3))


@every_width
def test_scatter(kind: ElementType) -> None:
    numbers = ops.ScatterDimensionNumbers((), (0,), (0,), 1)

    def build(x: Instruction, y: Instruction) -> Instruction:
        places = ops.constant(np.array([[0], [3], [0], [2], [3], [9], [-1]], np.int32))
        lhs, rhs = (ops.and_(a, ops.full_like(a, most(kind))) for a in (x, y))
        return ops.scatter(lhs, places, rhs, saturating(kind), numbers)

    run(kind, build, limits(kind, 5), limits(kind, 7))


@pytest.mark.parametrize("kind", [ElementType.S32, ElementType.S64], ids=str)
def test_places_that_are_computed(kind: ElementType) -> None:
    """A sum that wraps is clamped as the number that it has become."""
    table = np.arange(50, dtype=np.float32)

    def build(x: Instruction, y: Instruction) -> Instruction:
        values = ops.constant(table)
        index = ops.add(x, y)
        parts = [
            ops.dynamic_slice(values, [ops.reshape(ops.slice_(index, [n], [n + 1]), [])], [3])
            for n in range(3)
        ]
        numbers = ops.GatherDimensionNumbers((), (0,), (0,), 1)
        taken = ops.gather(values, ops.reshape(index, [40, 1]), numbers, [1])
        rows = ops.reshape(ops.add(taken, taken), [5, 8])
        return ops.tuple_([*parts, taken, ops.dot(rows, ops.transpose(rows, [1, 0]))])

    run(kind, build, limits(kind, 40), limits(kind, 40)[::-1].copy())
