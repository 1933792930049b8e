"""Concatenations and pads: what is made of their elements is stored in their place, at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.backends_tvm.compiled import check, computation
from tests.lowered import lower
from tracejit import ops
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.graph import Computation, Instruction
from tracejit.shapes import ElementType, Shape

Build = Callable[[Instruction, Instruction], Instruction]


def joined(x: Instruction, y: Instruction) -> Instruction:
    """With another array, at the places of the result."""
    both = ops.concatenate([x, ops.mul(y, y)], 0)
    like = ops.concatenate([y, x], 0)
    return ops.add(ops.mul(both, ops.full_like(both, 2)), like)


def turned(x: Instruction, y: Instruction) -> Instruction:
    """As rotary embeddings of positions have it: halves of rows change places."""
    rows, columns = x.array_shape.dimensions
    half = columns // 2
    low = ops.slice_(x, [0, 0], [rows, half])
    high = ops.slice_(x, [0, half], [rows, columns])
    return ops.add(ops.mul(ops.concatenate([ops.neg(high), low], 1), y), x)


def compared(x: Instruction, y: Instruction) -> Instruction:
    """Of another element type than what was joined."""
    both = ops.concatenate([x, y], 1)
    return ops.gt(both, ops.full_like(both, 1))


def padded(x: Instruction, y: Instruction) -> Instruction:
    """Cropped, spread and surrounded by what is computed as well."""
    edges = [(2, 1, 1), (-1, 3, 0)]
    kind = x.array_shape.element_type
    made = ops.pad(ops.mul(x, y), ops.constant(0.5 if kind.is_inexact else 5, kind), edges)
    return ops.sub(made, ops.full_like(made, 2))


def of_columns(x: Instruction, y: Instruction) -> Instruction:
    """Parts that are turned on the way, and nothing else is done to them."""
    return ops.concatenate([ops.transpose(x, (1, 0)), ops.transpose(y, (1, 0))], 0)


def many(x: Instruction, y: Instruction) -> Instruction:
    """More than are worth code of their own each."""
    both = ops.concatenate([x, y, x, y, x], 0)
    return ops.mul(both, both)


def kept(x: Instruction, y: Instruction) -> Instruction:
    """What is joined is a result as well."""
    both = ops.concatenate([x, y], 0)
    return ops.tuple_([both, ops.mul(both, both)])


def entry(build: Build, shape: tuple[int, int], kind: ElementType = ElementType.F32) -> Computation:
    return computation(build, Shape(kind, shape), Shape(kind, shape))


@pytest.mark.parametrize(
    ("build", "kernels"), [(turned, 1), (compared, 1), (padded, 1), (many, 2), (kept, 2)]
)
def test_kernels(build: Build, kernels: int) -> None:
    assert len(lower(entry(build, (30, 40)), Machine(32, 2)).kernels) == kernels


@pytest.mark.parametrize("build", [joined, turned, compared, padded, of_columns, many, kept])
@pytest.mark.parametrize("shape", [(3, 4), (30, 46), (7, 2), (2, 130), (300, 400)], ids=str)
def test_values(build: Build, shape: tuple[int, int]) -> None:
    """Also where threads share the work."""
    rng = np.random.default_rng(1)
    check(entry(build, shape), [rng.uniform(0.5, 2, shape).astype(np.float32) for _ in range(2)])


@pytest.mark.parametrize("build", [joined, turned, padded])
@pytest.mark.parametrize(
    "kind", [ElementType.BF16, ElementType.F64, ElementType.S8, ElementType.C64], ids=str
)
def test_element_types(build: Build, kind: ElementType) -> None:
    rng = np.random.default_rng(2)
    check(entry(build, (9, 20), kind), [rng.integers(-3, 4, (9, 20)).astype(kind.dtype)] * 2)


def test_special_values() -> None:
    x, y = np.random.default_rng(3).standard_normal((2, 20, 40)).astype(np.float32)
    x[3, 5], x[4, 6], y[5, 7], y[6] = np.nan, np.inf, -np.inf, -0.0
    for build in (joined, turned, compared, padded):
        check(entry(build, x.shape), [x, y])
