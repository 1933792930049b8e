"""Samples of GetDimensionSize, SetDimensionSize and DynamicReshape.

Their results are static: what XLA leaves beyond a dynamic size is undefined.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.samples.base import Operand, Sample
from tracejit import ops
from tracejit.graph import Instruction
from tracejit.ops.base import ALL, FLOATING, NUMERIC
from tracejit.shapes import ElementType

S32 = ElementType.S32
Domain = Callable[[np.random.Generator, tuple[int, ...], np.dtype], np.ndarray]


def always(value: int) -> Domain:
    return lambda rng, dimensions, dtype: np.full(dimensions, value, dtype)


SIZE = Operand((), S32, always(2))


def size_of_sum(x: Instruction, n: Instruction) -> Instruction:
    cut = ops.set_dimension_size(x, n, 1)
    return ops.get_dimension_size(ops.add(x, cut), 1)


def static_size(x: Instruction) -> Instruction:
    return ops.get_dimension_size(x, -1)


def sum_of_rows(x: Instruction, n: Instruction) -> Instruction:
    cut = ops.set_dimension_size(x, n, 1)
    return ops.reduce_sum(ops.mul(cut, x), [1])


def set_back(x: Instruction, n: Instruction) -> Instruction:
    cut = ops.set_dimension_size(x, n, 1)
    return ops.set_dimension_size(cut, ops.constant(3, S32), 1)


def total_after_reshape(x: Instruction, n: Instruction) -> Instruction:
    cut = ops.set_dimension_size(x, n, 0)
    flat = ops.dynamic_reshape(cut, [n, ops.constant(1, S32)], [6, 1], [True, False])
    return ops.reduce_sum(ops.mul(flat, flat), [0])


SAMPLES = [
    Sample("GetDimensionSize", size_of_sum, (Operand(), SIZE), NUMERIC, "dynamic"),
    Sample("GetDimensionSize", static_size, (Operand(),), ALL, "static"),
    Sample("SetDimensionSize", sum_of_rows, (Operand(), SIZE), NUMERIC, "sum"),
    Sample(
        "SetDimensionSize",
        set_back,
        (Operand(), SIZE),
        ALL,
        "set back",
        exact=True,
        differentiable=False,
        why="elements beyond the size are no part of the value in between, but come back",
    ),
    Sample("DynamicReshape", total_after_reshape, (Operand((6,)), SIZE), FLOATING, "sum"),
]
