"""Cumulative ops fused with their producers and their users."""

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

Build = Callable[[Instruction, int], Instruction]


def squares(x: Instruction, axis: int) -> Instruction:
    return ops.cumulative("add", ops.mul(x, x), axis)


def scaled(x: Instruction, axis: int) -> Instruction:
    """From the end, with something after it."""
    total = ops.cumulative("add", ops.mul(x, x), axis, True)
    return ops.add(total, x)


def powers(x: Instruction, axis: int) -> Instruction:
    return ops.cumulative("max", ops.exp(x), axis)


def logarithms(x: Instruction, axis: int) -> Instruction:
    """Both together would cost more than a step waits for."""
    return ops.exp(ops.cumulative("add", ops.log(x), axis))


def both(x: Instruction, axis: int) -> Instruction:
    """The sums themselves are a result as well."""
    total = squares(x, axis)
    return ops.tuple_([total, ops.neg(total)])


def entry(
    build: Build, shape: tuple[int, ...], axis: int, kind: ElementType = ElementType.F32
) -> Computation:
    return computation(lambda x: build(x, axis), Shape(kind, shape))


@pytest.mark.parametrize(
    ("build", "shape", "axis", "kernels"),
    [
        (squares, (300, 200), 0, 1),
        (squares, (300, 200), 1, 1),
        (squares, (20000,), 0, 2),
        (scaled, (300, 200), 0, 1),
        (powers, (300, 200), 0, 1),
        (powers, (300, 200), 1, 2),
        (logarithms, (300, 200), 0, 2),
        (both, (300, 200), 0, 2),
    ],
)
def test_kernels(build: Build, shape: tuple[int, ...], axis: int, kernels: int) -> None:
    assert len(lower(entry(build, shape, axis), Machine(32, 2)).kernels) == kernels


@pytest.mark.parametrize("build", [squares, scaled, powers, logarithms, both])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((30, 45), 0), ((5, 30, 17), 1), ((13, 40), 1), ((9000,), 0), ((30, 7), 0), ((9, 75), 1)],
    ids=str,
)
def test_values(build: Build, shape: tuple[int, ...], axis: int) -> None:
    rng = np.random.default_rng(1)
    check(entry(build, shape, axis), [rng.uniform(0.9, 1.1, shape).astype(np.float32)])


@pytest.mark.parametrize("build", [squares, scaled])
@pytest.mark.parametrize(
    "kind", [ElementType.BF16, ElementType.F64, ElementType.S32, ElementType.C64], ids=str
)
def test_element_types(build: Build, kind: ElementType) -> None:
    rng = np.random.default_rng(2)
    check(entry(build, (20, 40), 0, kind), [rng.integers(-2, 3, (20, 40)).astype(kind.dtype)])


def test_special_values_stay_in_their_column() -> None:
    x = np.random.default_rng(3).standard_normal((20, 40)).astype(np.float32)
    x[5, 3], x[6, 4], x[7, 5], x[:, 6] = np.nan, np.inf, -np.inf, -0.0
    for build in (squares, scaled, powers):
        check(entry(build, x.shape, 0), [x])


def test_windows_with_something_after_them() -> None:
    """The greatest of each window, and what is made of it, in one kernel."""

    def pooled(x: Instruction) -> Instruction:
        made = ops.reduce_window_by("max", x, [2, 2], [2, 2])
        return ops.tanh(ops.add(made, made))

    made = computation(pooled, Shape(ElementType.F32, (20, 40)))
    assert len(lower(made, Machine(32, 2)).kernels) == 1
    check(made, [np.random.default_rng(4).standard_normal((20, 40)).astype(np.float32)])


@pytest.mark.parametrize("kind", [ElementType.S16, ElementType.U8, ElementType.S32], ids=str)
@pytest.mark.parametrize("backwards", [False, True])
def test_integers_convert_on_their_way(kind: ElementType, backwards: bool) -> None:
    """In long rows, too, whether they are cut into parts or not."""
    for length in (9000, 300_000):
        shape = Shape(kind, (length,))

        def widened(x: Instruction) -> Instruction:
            wide = ops.convert_element_type(x, ElementType.S64)
            return ops.cumulative("add", wide, 0, backwards)

        made = computation(widened, shape)
        for threads in (1, 2):
            assert len(lower(made, Machine(32, threads)).kernels) == 1
        rng = np.random.default_rng(5)
        check(made, [rng.integers(-99 if kind.is_signed else 0, 99, length).astype(kind.dtype)])
