"""Samples of the elementwise ops of two and three operands."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from tests.samples.base import Domain, Operand, Sample
from tests.samples.domains import away_from_zero, edges, uniform, with_ties
from tracejit import ops
from tracejit.graph import Instruction
from tracejit.ops.base import (
    ALL,
    COMPLEX,
    FLOATING,
    INEXACT,
    INTEGRAL,
    LOGICAL,
    NUMERIC,
    ORDERED,
    SIGNED_INTEGRAL,
    make,
)
from tracejit.ops.elementwise import CLAMP, SELECT
from tracejit.shapes import ElementType

REAL = ALL - COMPLEX
PRED = Operand((2, 3), ElementType.PRED, differentiate=False)
ONE_PRED = Operand((), ElementType.PRED, differentiate=False)
SMALL_EXPONENTS = uniform(0, 7)
SHIFTS = uniform(-2, 70)


def sizes(
    op: str,
    build: Callable[..., Instruction],
    element_types: Collection[ElementType],
    *domains: Domain | None,
    **fields: Any,
) -> list[Sample]:
    """One sample for each of four shapes: two dimensions, an odd length, rank 0, empty."""
    return [
        Sample(
            op,
            build,
            tuple(Operand(dimensions, domain=domain) for domain in domains),
            element_types,
            "x".join(map(str, dimensions)) or "rank 0",
            **fields,
        )
        for dimensions in ((2, 3), (37,), (), (0, 3))
    ]


def at_edges(
    op: str,
    build: Callable[..., Instruction],
    element_types: Collection[ElementType],
    *domains: Domain,
) -> Sample:
    """Infinities, NaN, zeros and the ends of the range, in chance combinations."""
    return Sample(
        op,
        build,
        tuple(Operand((300,), domain=domain) for domain in domains),
        element_types,
        "edges",
        differentiable=False,
        why="finite differences do not exist at infinities and the ends of the range",
    )


SAMPLES = [
    *sizes("Add", ops.add, ALL, None, None),
    *sizes("And", ops.and_, LOGICAL, None, None),
    *sizes("Atan2", ops.atan2, INEXACT, away_from_zero, away_from_zero),
    *sizes("Complex", ops.complex, {ElementType.F32, ElementType.F64}, None, None),
    *sizes("Div", ops.div, NUMERIC, None, away_from_zero),
    *sizes("Max", ops.max, REAL, None, None),
    *sizes("Max", ops.max, COMPLEX, uniform(-2, 2), uniform(-2, 2)),
    *sizes("Min", ops.min, REAL, None, None),
    *sizes("Min", ops.min, COMPLEX, uniform(-2, 2), uniform(-2, 2)),
    *sizes("Mul", ops.mul, ALL, None, None),
    *sizes("Or", ops.or_, LOGICAL, None, None),
    *sizes("Pow", ops.pow, INTEGRAL, away_from_zero, SMALL_EXPONENTS),
    *sizes("Pow", ops.pow, INEXACT, uniform(0.5, 2), uniform(-2, 2)),
    *sizes("Rem", ops.rem, INTEGRAL | FLOATING, uniform(5, 7), uniform(2, 4)),
    *sizes("ShiftLeft", ops.shift_left, INTEGRAL, None, SHIFTS),
    *sizes("ShiftRightArithmetic", ops.shift_right_arithmetic, INTEGRAL, None, SHIFTS),
    *sizes("ShiftRightLogical", ops.shift_right_logical, INTEGRAL, None, SHIFTS),
    *sizes("Sub", ops.sub, NUMERIC, None, None),
    *sizes("Xor", ops.xor, LOGICAL, None, None),
    *sizes("Clamp", ops.clamp, ORDERED, uniform(-1, 0), None, uniform(0.5, 1)),
    at_edges("Add", ops.add, REAL, edges, edges),
    at_edges("And", ops.and_, LOGICAL, edges, edges),
    at_edges("Atan2", ops.atan2, FLOATING, edges, edges),
    at_edges("Clamp", ops.clamp, ORDERED, edges, edges, edges),
    at_edges("Div", ops.div, INTEGRAL | FLOATING, edges, edges),
    at_edges("Max", ops.max, REAL, edges, edges),
    at_edges("Min", ops.min, REAL, edges, edges),
    at_edges("Mul", ops.mul, REAL, edges, edges),
    at_edges("Pow", ops.pow, FLOATING, edges, edges),
    at_edges("Pow", ops.pow, INTEGRAL, edges, SMALL_EXPONENTS),
    at_edges("Pow", ops.pow, SIGNED_INTEGRAL, edges, uniform(-3, -1)),
    at_edges("Rem", ops.rem, INTEGRAL | FLOATING, edges, edges),
    at_edges("ShiftLeft", ops.shift_left, INTEGRAL, edges, SHIFTS),
    at_edges("ShiftRightArithmetic", ops.shift_right_arithmetic, INTEGRAL, edges, SHIFTS),
    at_edges("ShiftRightLogical", ops.shift_right_logical, INTEGRAL, edges, SHIFTS),
    at_edges("Sub", ops.sub, INTEGRAL | FLOATING, edges, edges),
    Sample("Add", ops.add, (Operand((2, 3)), Operand(())), NUMERIC, "scalar"),
    Sample("Add", ops.add, (Operand((2, 1)), Operand((1, 3))), NUMERIC, "outer"),
    Sample(
        "Add",
        lambda x, y: ops.add(x, y, broadcast_dimensions=(1,)),
        (Operand((2, 3)), Operand((3,))),
        NUMERIC,
        "broadcast_dimensions",
    ),
    Sample(
        "Sub",
        lambda x, y: ops.sub(x, y, broadcast_dimensions=(1, 2)),
        (Operand((1, 2)), Operand((4, 3, 1))),
        NUMERIC,
        "broadcast_dimensions and size 1",
    ),
    Sample(
        "Max",
        ops.max,
        (Operand((37,), domain=with_ties), Operand((37,), domain=with_ties)),
        REAL,
        "ties",
        differentiable=False,
        why="finite differences do not exist where both operands are the greatest",
    ),
    Sample(
        "Clamp",
        ops.clamp,
        (Operand((), domain=uniform(-1, 0)), Operand((5,)), Operand((), domain=uniform(0.5, 1))),
        ORDERED,
        "scalar bounds",
    ),
    Sample(
        "Clamp",
        lambda low, x, high: make(CLAMP, low, x, high),
        (Operand((), domain=uniform(-1, 0)), Operand((5,)), Operand((), domain=uniform(0.5, 1))),
        ORDERED,
        "scalar operands",
    ),
    Sample("Select", ops.select, (PRED, Operand((2, 3)), Operand((2, 3))), ALL),
    Sample("Select", ops.select, (ONE_PRED, Operand((2, 3)), Operand((2, 3))), ALL, "scalar pred"),
    Sample("Select", ops.select, (ONE_PRED, Operand(()), Operand(())), ALL, "rank 0"),
    Sample(
        "Select",
        ops.select,
        (Operand((0,), ElementType.PRED, differentiate=False), Operand((0,)), Operand((0,))),
        ALL,
        "empty",
    ),
    Sample(
        "Select",
        lambda pred, x, y: make(SELECT, pred, x, y),
        (ONE_PRED, Operand((2, 3)), Operand((2, 3))),
        ALL,
        "scalar operand",
    ),
    Sample(
        "Select",
        lambda pred, x, y: ops.select(pred, ops.tuple_([x, y]), ops.tuple_([y, x])),
        (ONE_PRED, Operand((2, 3)), Operand((2, 3))),
        ALL,
        "tuples",
    ),
]
