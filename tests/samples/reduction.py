"""Samples of Reduce, Sort and TopK."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tests.samples.base import Operand, Sample
from tests.samples.domains import distinct, near_one, with_ties
from tracejit import ops
from tracejit.graph import Computation, Instruction
from tracejit.ops.base import ALL, FLOATING, LOGICAL, NUMERIC, ORDERED
from tracejit.shapes import ElementType, Shape

F64, S32 = ElementType.F64, ElementType.S32


def log_sum_exp(element_type: ElementType) -> Computation:
    """log(exp(x) + exp(y)): associative, smooth, and no single op."""
    x, y = (ops.parameter(i, Shape(element_type)) for i in range(2))
    return Computation("log_sum_exp", (x, y), ops.log(ops.add(ops.exp(x), ops.exp(y))))


def complex_product(element_type: ElementType) -> Computation:
    """(a, b), (c, d) -> (ac - bd, ad + bc): a reduction of two operands together."""
    a, b, c, d = parameters = tuple(ops.parameter(i, Shape(element_type)) for i in range(4))
    real = ops.sub(ops.mul(a, c), ops.mul(b, d))
    imaginary = ops.add(ops.mul(a, d), ops.mul(b, c))
    return Computation("complex_product", parameters, ops.tuple_([real, imaginary]))


def reduce_log_sum_exp(operand: Instruction, dimensions: Sequence[int]) -> Instruction:
    element_type = operand.array_shape.element_type
    init = ops.constant(-np.inf, element_type)
    return ops.reduce(operand, init, log_sum_exp(element_type), dimensions)


def reduce_complex_product(x: Instruction, y: Instruction) -> Instruction:
    element_type = x.array_shape.element_type
    inits = [ops.constant(value, element_type) for value in (1, 0)]
    return ops.reduce([x, y], inits, complex_product(element_type), [1])


def sort_pair(x: Instruction, y: Instruction) -> Instruction:
    """Upwards by the first operand, downwards by the second among equals."""
    types = [i.array_shape.element_type for i in (x, y)]
    a, b, c, d = parameters = tuple(
        ops.parameter(i, Shape(t)) for i, t in enumerate(t for t in types for _ in range(2))
    )
    before = ops.or_(ops.lt(a, b), ops.and_(ops.eq(a, b), ops.gt(c, d)))
    return ops.sort([x, y], Computation("pairs", parameters, before), dimension=0)


# Where there is no zero, what a sum starts from is NaN.
SUMMED = {t for t in NUMERIC if t.has_zero}

SAMPLES = [
    Sample("Reduce", lambda x: ops.reduce_sum(x, [1]), (Operand((2, 3, 4)),), NUMERIC, "add"),
    Sample("Reduce", lambda x: ops.reduce_sum(x, [-1, 0]), (Operand((2, 3, 4)),), ALL, "add twice"),
    Sample("Reduce", ops.reduce_sum, (Operand((5,)),), NUMERIC, "add all"),
    Sample("Reduce", ops.reduce_sum, (Operand(()),), SUMMED, "add rank 0"),
    Sample("Reduce", lambda x: ops.reduce_sum(x, []), (Operand((2, 3)),), NUMERIC, "no dimension"),
    Sample("Reduce", lambda x: ops.reduce_sum(x, [0]), (Operand((0, 3)),), NUMERIC, "add empty"),
    Sample("Reduce", lambda x: ops.reduce_max(x, [0]), (Operand((3, 0)),), ORDERED, "to empty"),
    Sample(
        "Reduce",
        lambda x, init: ops.reduce(
            x, init, ops.scalar_computation("add", x.array_shape.element_type), [0]
        ),
        (Operand((3, 2)), Operand(())),
        NUMERIC,
        "add with init",
    ),
    Sample(
        "Reduce",
        lambda x: ops.reduce_max(x, [1]),
        (Operand((3, 5), domain=distinct),),
        ORDERED,
        "max",
    ),
    Sample(
        "Reduce",
        lambda x: ops.reduce_min(x, [0]),
        (Operand((5, 3), domain=distinct),),
        ORDERED,
        "min",
    ),
    Sample(
        "Reduce",
        lambda x: ops.reduce_prod(x, [0, 2]),
        (Operand((3, 2, 2), domain=near_one),),
        ALL,
        "mul",
    ),
    Sample("Reduce", lambda x: ops.reduce_and(x, [1]), (Operand((3, 4)),), LOGICAL, "and"),
    Sample("Reduce", lambda x: ops.reduce_or(x, [1]), (Operand((3, 4)),), LOGICAL, "or"),
    Sample("Reduce", lambda x: ops.reduce_xor(x, [0]), (Operand((3, 4)),), LOGICAL, "xor"),
    Sample(
        "Reduce",
        lambda x: reduce_log_sum_exp(x, [0]),
        (Operand((5, 2)),),
        {ElementType.F32, F64},
        "log-sum-exp",
    ),
    Sample(
        "Reduce",
        reduce_complex_product,
        (Operand((2, 5), domain=near_one), Operand((2, 5), domain=near_one)),
        {ElementType.F32, F64},
        "two operands",
    ),
    Sample(
        "Reduce",
        lambda x: ops.argmax(x, 1),
        (Operand((3, 6), domain=with_ties),),
        ORDERED,
        "argmax",
        exact=True,
        differentiable=False,
        why="indices are integers",
    ),
    Sample(
        "Reduce",
        lambda x: ops.argmin(x, 0, ElementType.S64),
        (Operand((6, 3), domain=with_ties),),
        ORDERED,
        "argmin",
        exact=True,
        differentiable=False,
        why="indices are integers",
    ),
    Sample(
        "Sort", ops.sort, (Operand((3, 5), domain=distinct),), ORDERED, "last dimension", exact=True
    ),
    Sample(
        "Sort",
        lambda x: ops.sort(x, dimension=0),
        (Operand((5, 2, 2), domain=distinct),),
        ORDERED,
        "first dimension",
        exact=True,
    ),
    Sample(
        "Sort",
        lambda x: ops.sort(x, ops.sort_order(x.array_shape.element_type, descending=True)),
        (Operand((7,), domain=distinct),),
        ORDERED,
        "descending",
        exact=True,
    ),
    Sample(
        "Sort",
        lambda x, y: ops.sort([x, y], is_stable=True),
        (Operand((2, 6), domain=with_ties), Operand((2, 6), S32)),
        ORDERED,
        "stable with values",
        exact=True,
        differentiable=False,
        why="equal keys",
    ),
    Sample(
        "Sort",
        sort_pair,
        (Operand((6, 2), S32, domain=with_ties), Operand((6, 2), domain=distinct)),
        FLOATING,
        "two keys",
        exact=True,
    ),
    Sample("Sort", lambda x: ops.sort(x, dimension=0), (Operand((0, 2)),), ORDERED, "empty"),
    Sample("Sort", lambda x: ops.sort(x, dimension=1), (Operand((2, 1)),), ORDERED, "one element"),
    Sample(
        "TopK",
        lambda x: ops.top_k(x, 3),
        (Operand((2, 6), domain=distinct),),
        {ElementType.F32, F64, ElementType.BF16, ElementType.F16, S32},
        "largest",
        exact=True,
    ),
    Sample(
        "TopK",
        lambda x: ops.top_k(x, 4, largest=False),
        (Operand((2, 6), domain=with_ties),),
        {ElementType.F32, S32},
        "smallest",
        exact=True,
        differentiable=False,
        why="equal elements",
    ),
    Sample("TopK", lambda x: ops.top_k(x, 0), (Operand((2, 3)),), {ElementType.F32}, "none"),
]
