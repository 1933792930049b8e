"""Samples of Call, Map, Conditional, While and OptimizationBarrier."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.building import computation
from tests.samples.base import Operand, Sample
from tests.samples.domains import near_one
from tracejit import ops
from tracejit.graph import Instruction
from tracejit.ops.base import FLOATING, INEXACT, NUMERIC
from tracejit.shapes import ElementType, Shape

F32, F64 = ElementType.F32, ElementType.F64
PRED, S32 = ElementType.PRED, ElementType.S32


def call_product(x: Instruction, y: Instruction) -> Instruction:
    return ops.call(computation("product", ops.mul, x.shape, y.shape), [x, y])


def call_with_tuples(x: Instruction, y: Instruction) -> Instruction:
    """A computation that takes a tuple and returns one."""

    def swap(pair: Instruction) -> Instruction:
        first, second = ops.elements_of(pair)
        return ops.tuple_([ops.mul(first, second), ops.sin(first)])

    pair = ops.tuple_([x, y])
    return ops.call(computation("swap", swap, pair.shape), [pair])


def composite(x: Instruction, y: Instruction) -> Instruction:
    body = computation("decomposition", lambda a, b: ops.mul(ops.add(a, b), a), x.shape, y.shape)
    return ops.composite_call(body, [x, y], "my.op", '{n = 1 : i32, s = "a"}', 2)


def barrier_on_tuple(x: Instruction, y: Instruction) -> Instruction:
    both = ops.tuple_([ops.mul(x, y), ops.tuple_([y, x])])
    product, rest = ops.elements_of(ops.optimization_barrier(both))
    return ops.tuple_([ops.add(product, x), *ops.elements_of(rest)])


def map_polynomial(x: Instruction, y: Instruction) -> Instruction:
    def polynomial(a: Instruction, b: Instruction) -> Instruction:
        return ops.add(ops.mul(a, a), ops.mul(b, ops.constant(3, b.array_shape.element_type)))

    scalar = Shape(x.array_shape.element_type)
    return ops.map_([x, y], computation("polynomial", polynomial, scalar, scalar))


def two_ways(predicate: Instruction, x: Instruction, y: Instruction) -> Instruction:
    return ops.conditional(
        predicate,
        x,
        computation("double", lambda a: ops.add(a, a), x.shape),
        y,
        computation("square", lambda a: ops.mul(a, a), y.shape),
    )


def three_ways(index: Instruction, x: Instruction, y: Instruction) -> Instruction:
    pair = ops.tuple_([x, y])

    def product(both: Instruction) -> Instruction:
        first, second = ops.elements_of(both)
        return ops.mul(first, second)

    return ops.conditional_indexed(
        index,
        [
            computation("itself", lambda a: a, x.shape),
            computation("twice", lambda a: ops.add(a, a), y.shape),
            computation("product", product, pair.shape),
        ],
        [x, y, pair],
    )


def count_down(steps: Instruction, x: Instruction) -> Instruction:
    """x multiplied by 2 as often as ``steps`` says."""
    init = ops.tuple_([steps, x])

    def body(state: Instruction) -> Instruction:
        left, value = ops.elements_of(state)
        return ops.tuple_([ops.sub(left, ops.constant(1, S32)), ops.add(value, value)])

    def condition(state: Instruction) -> Instruction:
        return ops.gt(ops.get_tuple_element(state, 0), ops.constant(0, S32))

    return ops.while_(
        computation("positive", condition, init.shape), computation("body", body, init.shape), init
    )


def always(value: object) -> Callable[..., np.ndarray]:
    return lambda rng, dimensions, dtype: np.full(dimensions, value, dtype)


SAMPLES = [
    Sample("Call", call_product, (Operand(), Operand()), NUMERIC, "two operands"),
    Sample("Call", call_with_tuples, (Operand(), Operand()), INEXACT, "tuples"),
    Sample(
        "Call",
        lambda: ops.call(computation("seven", lambda: ops.constant(7, F32)), []),
        (),
        {F32},
        "no operand",
    ),
    Sample("Call", composite, (Operand(), Operand()), NUMERIC, "composite"),
    Sample("OptimizationBarrier", ops.optimization_barrier, (Operand(),), NUMERIC, "array"),
    Sample("OptimizationBarrier", barrier_on_tuple, (Operand(), Operand()), NUMERIC, "tuple"),
    Sample("Map", map_polynomial, (Operand(), Operand()), NUMERIC, "two operands"),
    Sample("Map", map_polynomial, (Operand((0, 3)), Operand((0, 3))), NUMERIC, "empty"),
    Sample("Map", map_polynomial, (Operand(()), Operand(())), NUMERIC, "rank 0"),
    *[
        Sample(
            "Conditional",
            two_ways,
            (Operand((), PRED, always(value)), Operand(), Operand()),
            NUMERIC,
            str(value).lower(),
        )
        for value in (True, False)
    ],
    *[
        Sample(
            "Conditional",
            three_ways,
            (Operand((), S32, always(value)), Operand(), Operand()),
            NUMERIC,
            f"branch {value}",
        )
        for value in (0, 1, 2, -1, 7)
    ],
    Sample(
        "While",
        count_down,
        (Operand((), S32, always(3), differentiate=False), Operand((2, 3), domain=near_one)),
        FLOATING,
        "three times",
    ),
    Sample(
        "While",
        count_down,
        (Operand((), S32, always(0), differentiate=False), Operand((2, 3))),
        NUMERIC,
        "never",
    ),
]
