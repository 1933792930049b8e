"""Samples of Compare."""

from __future__ import annotations

from collections.abc import Collection

from tests.samples.base import Domain, Operand, Sample
from tests.samples.domains import edges, with_ties
from tests.samples.values import SIGNLESS_NAN
from tracejit import ops
from tracejit.ops.base import ALL, COMPLEX, FLOATING, SIGNED_INTEGRAL, UNSIGNED
from tracejit.ops.comparison import DIRECTIONS
from tracejit.shapes import ElementType

REAL = ALL - COMPLEX


def comparison(
    direction: str,
    type: str | None,
    element_types: Collection[ElementType],
    domain: Domain,
    dimensions: tuple[int, ...] = (300,),
) -> Sample:
    return Sample(
        "Compare",
        lambda lhs, rhs: ops.compare(lhs, rhs, direction, type),
        (Operand(dimensions, domain=domain), Operand(dimensions, domain=domain)),
        element_types,
        f"{direction} {type or 'by default'} {domain.__name__} {list(dimensions)}",
        differentiable=False,
        why="makes a pred",
    )


SAMPLES = [
    *(comparison(direction, None, REAL, edges) for direction in DIRECTIONS),
    *(
        comparison(direction, "TOTALORDER", FLOATING - SIGNLESS_NAN, edges)
        for direction in DIRECTIONS
    ),
    *(comparison(direction, None, COMPLEX, with_ties) for direction in ("EQ", "NE")),
    comparison("LE", None, REAL, with_ties, (2, 3)),
    comparison("GT", "FLOAT", FLOATING, with_ties, (2, 3)),
    comparison("GT", "SIGNED", SIGNED_INTEGRAL, with_ties, (2, 3)),
    comparison("GT", "UNSIGNED", UNSIGNED | {ElementType.PRED}, with_ties, (2, 3)),
    comparison("LT", None, REAL, with_ties, ()),
    comparison("LT", None, REAL, with_ties, (0, 3)),
    Sample(
        "Compare",
        lambda lhs, rhs: ops.ge(lhs, rhs, broadcast_dimensions=(1,)),
        (Operand((2, 3), domain=with_ties), Operand((3,), domain=with_ties)),
        ALL - COMPLEX,
        "broadcast_dimensions",
        differentiable=False,
        why="makes a pred",
    ),
]
