"""Samples of ReduceWindow and SelectAndScatter."""

from __future__ import annotations

from collections.abc import Callable

from tests.samples.base import Operand, Sample
from tests.samples.domains import distinct, near_one, with_ties
from tests.samples.reduction import SUMMED, complex_product
from tracejit import ops
from tracejit.graph import Instruction
from tracejit.ops.base import ALL, LOGICAL, NUMERIC, ORDERED
from tracejit.ops.windows import Padding
from tracejit.shapes import ElementType

F32, F64 = ElementType.F32, ElementType.F64

# Types with more values than an operand has elements: XLA looks at equal ones in its own order.
DISTINCT = {t for t in NUMERIC & ORDERED if t.bits >= 8}


def window(name: str, *arguments: object) -> Callable[[Instruction], Instruction]:
    return lambda x: ops.reduce_window_by(name, x, *arguments)  # type: ignore[arg-type]


def reduce_window_with(init: Instruction, x: Instruction) -> Instruction:
    add = ops.scalar_computation("add", x.array_shape.element_type)
    return ops.reduce_window(x, init, add, [2, 2], [1, 2], "SAME")


def complex_products(x: Instruction, y: Instruction) -> Instruction:
    element_type = x.array_shape.element_type
    inits = [ops.constant(value, element_type) for value in (1, 0)]
    return ops.reduce_window([x, y], inits, complex_product(element_type), [3], [2], [(1, 1)])


def pool_gradient(
    select: str, size: tuple[int, ...], strides: tuple[int, ...], padding: Padding
) -> Callable[[Instruction, Instruction, Instruction], Instruction]:
    def build(operand: Instruction, source: Instruction, init: Instruction) -> Instruction:
        element_type = operand.array_shape.element_type
        return ops.select_and_scatter(
            operand,
            ops.scalar_computation(select, element_type),
            size,
            strides,
            padding,
            source,
            init,
            ops.scalar_computation("add", element_type),
        )

    return build


SAMPLES = [
    Sample("ReduceWindow", window("add", [2, 3], [2, 1]), (Operand((4, 5)),), NUMERIC, "add"),
    Sample("ReduceWindow", window("add", [2, 2], None, "SAME"), (Operand((3, 3)),), ALL, "SAME"),
    Sample(
        "ReduceWindow",
        window("add", [2, 2], [2, 1], [(1, -1), (-1, 2)], [2, 1], [1, 2]),
        (Operand((4, 5)),),
        NUMERIC,
        "add dilated and cropped",
    ),
    Sample(
        "ReduceWindow",
        window("max", [1, 2, 2, 1], [1, 2, 2, 1]),
        (Operand((2, 4, 4, 3), domain=distinct),),
        ORDERED,
        "max pooling",
    ),
    Sample(
        "ReduceWindow",
        window("max", [3, 3], [2, 2], "SAME"),
        (Operand((5, 6), domain=distinct),),
        ORDERED,
        "max overlapping",
    ),
    Sample(
        "ReduceWindow",
        window("min", [2, 2], [1, 2], [(1, 1), (0, 1)]),
        (Operand((3, 4), domain=distinct),),
        ORDERED,
        "min padded",
    ),
    Sample(
        "ReduceWindow",
        window("max", [2, 2], [2, 1], [(1, 0), (0, -1)], [2, 1], [1, 2]),
        (Operand((3, 6), domain=distinct),),
        ORDERED,
        "max dilated",
    ),
    Sample(
        "ReduceWindow",
        window("mul", [2, 2], [1, 2], "SAME"),
        (Operand((3, 3), domain=near_one),),
        NUMERIC,
        "mul",
    ),
    Sample("ReduceWindow", window("and", [2]), (Operand((5,)),), LOGICAL, "and"),
    Sample("ReduceWindow", window("or", [2], None, "SAME"), (Operand((5,)),), LOGICAL, "or"),
    Sample("ReduceWindow", window("xor", [3]), (Operand((5,)),), LOGICAL, "xor"),
    Sample(
        "ReduceWindow", reduce_window_with, (Operand(()), Operand((3, 4))), NUMERIC, "init operand"
    ),
    Sample(
        "ReduceWindow",
        complex_products,
        (Operand((6,), domain=near_one), Operand((6,), domain=near_one)),
        {F32, F64},
        "two operands",
    ),
    Sample("ReduceWindow", window("add", []), (Operand(()),), SUMMED, "rank 0"),
    Sample("ReduceWindow", window("add", [4]), (Operand((3,)),), NUMERIC, "no position"),
    Sample(
        "ReduceWindow",
        window("add", [2], None, [(2, 1)]),
        (Operand((0,)),),
        NUMERIC,
        "only padding",
    ),
    Sample(
        "ReduceWindow",
        lambda x: ops.cumulative("add", x, 1),
        (Operand((2, 5)),),
        NUMERIC,
        "cumulative sum",
    ),
    Sample(
        "ReduceWindow",
        lambda x: ops.cumulative("max", x, 0, reverse=True),
        (Operand((5, 2), domain=distinct),),
        ORDERED,
        "cumulative maximum, backwards",
    ),
    Sample(
        "ReduceWindow",
        lambda x: ops.cumulative("mul", x, 0),
        (Operand((5,), domain=near_one),),
        NUMERIC,
        "cumulative product",
    ),
    Sample(
        "SelectAndScatter",
        pool_gradient("ge", (2, 3), (2, 3), "VALID"),
        (Operand((4, 6), domain=distinct), Operand((2, 2)), Operand(())),
        NUMERIC & ORDERED,
        "apart",
    ),
    Sample(
        "SelectAndScatter",
        pool_gradient("ge", (3, 2), (2, 1), "SAME"),
        (Operand((5, 4), domain=distinct), Operand((3, 4)), Operand(())),
        DISTINCT,
        "overlapping",
    ),
    Sample(
        "SelectAndScatter",
        pool_gradient("le", (2, 2), (1, 2), ((1, 0), (-1, 1))),
        (Operand((3, 5), domain=with_ties), Operand((3, 2)), Operand(())),
        NUMERIC & ORDERED,
        "ties, padded and cropped",
        differentiable=False,
        why="equal elements",
    ),
    Sample(
        "SelectAndScatter",
        pool_gradient("ge", (2,), (1,), "VALID"),
        (Operand((1,)), Operand((0,)), Operand(())),
        {F32, F64},
        "no position",
    ),
]
