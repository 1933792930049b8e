"""Fusion plans: the kernels of a graph, in the cases where fusion matters."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tests.lowered import lower
from tracejit import ops
from tracejit.api import executable
from tracejit.backends.numpy import evaluate
from tracejit.backends.tvm.analysis.cost_model import SIZE_LIMIT, longest_chain
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.graph import Computation, Instruction, Module
from tracejit.ops.constants import parameter
from tracejit.shapes import ElementType, Shape

F32 = ElementType.F32


def module(
    build: Callable[..., Sequence[Instruction]], *shapes: tuple[int, ...]
) -> tuple[Module, list[np.ndarray]]:
    parameters = tuple(parameter(i, Shape(F32, shape)) for i, shape in enumerate(shapes))
    root = ops.tuple_(build(*parameters))
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(0.5, 2, shape).astype(np.float32) for shape in shapes]
    return Module("plan", Computation("entry", parameters, root)), arrays


def over(dims: tuple[int, ...], per_row: Instruction) -> Instruction:
    return ops.broadcast_in_dim(per_row, dims, (0,))


def softmax(x: Instruction) -> list[Instruction]:
    dims = x.array_shape.dimensions
    powers = ops.exp(ops.sub(x, over(dims, ops.reduce_max(x, (1,)))))
    return [ops.div(powers, over(dims, ops.reduce_sum(powers, (1,))))]


def layer_norm(x: Instruction) -> list[Instruction]:
    dims = x.array_shape.dimensions

    def mean(value: Instruction) -> Instruction:
        total = ops.reduce_sum(value, (1,))
        return ops.div(total, ops.full_like(total, dims[1]))

    centred = ops.sub(x, over(dims, mean(x)))
    variance = mean(ops.mul(centred, centred))
    return [ops.mul(centred, over(dims, ops.rsqrt(variance)))]


def dense(x: Instruction, w: Instruction, b: Instruction) -> list[Instruction]:
    made = ops.add(ops.dot(x, w), b, (1,))
    return [ops.max(made, ops.full_like(made, 0))]


def scaled(a: Instruction, x: Instruction) -> list[Instruction]:
    """Of a matrix of which every element is needed once."""
    return [ops.dot(ops.mul(a, ops.full_like(a, 1.5)), x)]


def scaled_columns(x: Instruction, a: Instruction) -> list[Instruction]:
    return [ops.dot(x, ops.mul(a, ops.full_like(a, 1.5)))]


def scaled_for_many(a: Instruction, b: Instruction) -> list[Instruction]:
    """Of a matrix whose elements are needed in every column."""
    return [ops.dot(ops.mul(a, ops.full_like(a, 1.5)), b)]


def adam(p: Instruction, g: Instruction, m: Instruction, v: Instruction) -> list[Instruction]:
    def mix(old: Instruction, new: Instruction, rate: float) -> Instruction:
        kept = ops.mul(old, ops.full_like(old, rate))
        return ops.add(kept, ops.mul(new, ops.full_like(new, 1 - rate)))

    first, second = mix(m, g, 0.9), mix(v, ops.mul(g, g), 0.99)
    step = ops.div(first, ops.add(ops.sqrt(second), ops.full_like(second, 1e-8)))
    return [ops.sub(p, step), first, second]


def taken(table: Instruction, places: Instruction) -> list[Instruction]:
    numbers = ops.GatherDimensionNumbers((), (0,), (0,), 1)
    index = ops.convert_element_type(ops.add(places, places), ElementType.S32)
    return [
        ops.gather(table, ops.reshape(index, [*places.array_shape.dimensions, 1]), numbers, [1])
    ]


def normalised(x: Instruction, scale: Instruction, offset: Instruction) -> list[Instruction]:
    return list(ops.elements_of(ops.batch_norm_training(x, scale, offset, 1e-3, 1)))


@pytest.mark.parametrize(
    ("build", "shapes", "kernels"),
    [
        (softmax, [(16, 100)], ["rows"]),
        (layer_norm, [(16, 100)], ["rows"]),
        (normalised, [(8, 4, 5, 5), (4,), (4,)], ["rows"]),
        (dense, [(9, 7), (7, 5), (5,)], ["dot_general"]),
        (scaled, [(70, 90), (90,)], ["dot_general"]),
        (scaled_columns, [(1, 90), (90, 70)], ["dot_general"]),
        (scaled_for_many, [(70, 90), (90, 50)], ["mul", "dot_general"]),
        (adam, [(33,)] * 4, ["sub"]),
        (taken, [(20,), (70,)], ["gather"]),
    ],
)
def test_kernels(
    build: Callable[..., Sequence[Instruction]], shapes: list[tuple[int, ...]], kernels: list[str]
) -> None:
    made, arrays = module(build, *shapes)
    program = lower(made.entry, Machine(32, 2))
    assert [k.name.partition("_")[2] for k in program.kernels] == kernels
    for ours, theirs in zip(executable(made)(arrays), evaluate(made.entry, arrays), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_long_chains_are_cut() -> None:
    """No kernel grows without bound, and no value is computed again and again."""

    def chain(x: Instruction) -> list[Instruction]:
        for which in np.random.default_rng(0).integers(0, 3, 1000):
            # Different at every step, or it would become a loop.
            half = ops.mul(x, ops.full_like(x, 0.5))
            x = (ops.neg, ops.abs, ops.floor)[which](ops.add(half, ops.full_like(x, 0.25)))
        return [x]

    made, _ = module(chain, (8,))
    program = lower(made.entry, Machine(32, 2))
    assert 3000 // longest_chain(SIZE_LIMIT) <= len(program.kernels) <= 150


def test_wide_expressions_stay_together() -> None:
    """Many ops of which few wait for each other: memory is read and written once."""

    def polynomials(x: Instruction, y: Instruction) -> list[Instruction]:
        def horner(z: Instruction, scale: float) -> Instruction:
            total = ops.full_like(z, scale)
            for power in range(10):
                total = ops.add(ops.mul(total, z), ops.full_like(z, scale + power))
            return total

        parts = [ops.mul(horner(x, k), horner(y, -k)) for k in range(6)]
        both = ops.add(ops.add(parts[0], parts[1]), ops.add(parts[2], parts[3]))
        return [both, ops.mul(parts[4], parts[5]), parts[0]]

    made, arrays = module(polynomials, (64,), (64,))
    assert len(lower(made.entry, Machine(32, 2)).kernels) == 1
    for ours, theirs in zip(executable(made)(arrays), evaluate(made.entry, arrays), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-3)


def test_outputs_that_are_arguments_reshaped_or_alike() -> None:
    def build(x: Instruction) -> list[Instruction]:
        total = ops.add(x, x)
        return [x, total, total, ops.reshape(total, (6,)), ops.reshape(x, (3, 2))]

    made, arrays = module(build, (2, 3))
    results = executable(made)(arrays)
    for ours, theirs in zip(results, evaluate(made.entry, arrays), strict=True):
        np.testing.assert_array_equal(ours, theirs)
        assert not np.shares_memory(ours, arrays[0])
    results[1][...] = 0
    np.testing.assert_array_equal(results[2], 2 * arrays[0])
