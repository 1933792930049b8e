"""Sorts of values alone in vector registers, bit by bit the stable ones of the interpreter."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.backends_tvm.compiled import computation
from tests.backends_tvm.test_sorting import compiled_for, values
from tests.fuzz.comparing import leaves
from tests.lowered import lower
from tracejit import ops
from tracejit.backends.numpy import evaluate
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.cpu.processor import processor_of
from tracejit.backends.tvm.cpu.schedule.sort.network import Exchange, network
from tracejit.graph import Computation, Instruction
from tracejit.shapes import ElementType, Shape

F32, F64, S32, S64 = ElementType.F32, ElementType.F64, ElementType.S32, ElementType.S64
KINDS = [F32, F64, S32, S64, ElementType.U32, ElementType.U64]
# Networks hold up to 256 numbers of 32 bits and 128 of 64; threads share what is longer than 2**17
# bytes.
LENGTHS = [2, 3, 17, 64, 100, 129, 256, 257, 1000]
SHARED = 40_003

compresses = pytest.mark.skipif(
    processor_of().vector_bytes != 64,
    reason="this processor has no vectors of 64 bytes to compress",
)


def all_orders(kind: ElementType) -> list[Computation]:
    """Up and down, and the total order of floats."""
    orders = [ops.sort_order(kind, descending=down) for down in (False, True)]
    if kind.is_floating:
        x, y = (ops.parameter(i, Shape(kind)) for i in range(2))
        compared = [ops.lt_total_order(x, y), ops.gt_total_order(x, y)]
        orders += [Computation("total", (x, y), root) for root in compared]
    return orders


def sorts(kind: ElementType, *dimensions: int) -> Computation:
    """Sorts of the last dimension in every order."""

    def build(x: Instruction) -> Instruction:
        made = [ops.sort(x, order, len(dimensions) - 1, True) for order in all_orders(kind)]
        return ops.tuple_(made)

    return computation(build, Shape(kind, dimensions))


def check_sorts(entry: Computation, arrays: list[np.ndarray], *threads: int) -> None:
    for count in threads:
        sort = compiled_for(entry, count)
        for array in arrays:
            expected = [np.asarray(e).tobytes() for e in leaves(evaluate(entry, [array]))]
            assert [a.tobytes() for a in sort([array])] == expected


@pytest.mark.parametrize(("registers", "lanes"), [*itertools.product([2, 4, 8, 16], [8, 16])])
def test_networks(registers: int, lanes: int) -> None:
    plan = network(registers, lanes)
    rng = np.random.default_rng(0)
    for most in (2, 50, 1 << 20):
        held = [*rng.integers(0, most, (registers, lanes))]
        expected = np.sort(np.concatenate(held))
        for step in plan.steps:
            if isinstance(step, Exchange):
                a, b = held[step.lesser], held[step.greater]
                held[step.lesser], held[step.greater] = np.minimum(a, b), np.maximum(a, b)
                continue
            both = np.concatenate([held[step.first], held[step.second]])
            held[step.first] = both[list(step.onto_first)]
            if step.onto_second is not None:
                held[step.second] = both[list(step.onto_second)]
        made = np.empty((registers, lanes), int)
        made[list(plan.order)] = held
        assert (made.ravel() == expected).all()


@compresses
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_lengths(kind: ElementType, length: int) -> None:
    entry = sorts(kind, 3, length)
    assert "vector sort" in {k.stats.schedule for k in lower(entry, Machine(64, 2)).kernels}
    check_sorts(entry, [values(kind, 3, length)], 1)


@compresses
@pytest.mark.parametrize("kind", [F32, S64], ids=str)
def test_orders_that_choose_pivots_badly(kind: ElementType) -> None:
    """One number, two, falling and rising ones, and halves that grow by powers of two."""
    length = 3000
    numbers = np.arange(length)
    arrays = [
        np.zeros(length, int),
        numbers % 2,
        numbers,
        -numbers,
        np.where(numbers % 300 == 0, numbers, 1 << 20),
        np.left_shift(1, numbers % 30),
    ]
    check_sorts(sorts(kind, length), [array.astype(kind.dtype) for array in arrays], 1)


@compresses
@pytest.mark.parametrize("kind", [F32, F64, ElementType.U32], ids=str)
def test_a_row_that_threads_share(kind: ElementType) -> None:
    """Also one of two rows, for which there are more threads than rows."""
    array = values(kind, 2, SHARED)
    check_sorts(sorts(kind, 2, SHARED), [array, np.zeros_like(array)], 3, 5)
    check_sorts(sorts(kind, SHARED), [array[0]], 2)


@compresses
def test_many_rows_that_threads_share() -> None:
    check_sorts(sorts(F32, 500, 300), [values(F32, 500, 300)], 2, 3)


@compresses
@pytest.mark.parametrize("dimensions", [(40, 16), (3, 130), (2, 1000), (300, 5)])
@pytest.mark.parametrize("kind", [F32, S32, ElementType.U32, ElementType.F16, ElementType.U8])
def test_positions(kind: ElementType, dimensions: tuple[int, ...]) -> None:
    """Keys and positions are sorted as one word, along either dimension."""
    x, y, p, q = (ops.parameter(i, Shape(t)) for i, t in enumerate((kind, kind, S32, S32)))
    down = Computation("down", (x, y, p, q), ops.gt(x, y))
    orders = [ops.sort_order(kind, S32), ops.sort_order(kind, S32, descending=True)]
    if not kind.is_floating:
        orders.append(down)

    def build(x: Instruction) -> Instruction:
        places = ops.iota(Shape(S32, dimensions), 0)
        made = [
            ops.sort([x, places], order, dimension, True)
            for order in orders
            for dimension in (0, 1)
        ]
        return ops.tuple_(made)

    entry = computation(build, Shape(kind, dimensions))
    schedules = {k.stats.schedule for k in lower(entry, Machine(64, 2)).kernels}
    assert "sort of words" in schedules
    check_sorts(entry, [values(kind, *dimensions)], 1, 2)
