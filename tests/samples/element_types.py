"""Samples of ConvertElementType, BitcastConvertType and ReducePrecision."""

from __future__ import annotations

from collections.abc import Collection

from tests.samples.base import Operand, Sample
from tests.samples.domains import edges
from tests.samples.values import BEYOND_XLA, UNLIKE_XLA
from tracejit import ops
from tracejit.ops.base import COMPLEX, FLOATING
from tracejit.shapes import ElementType

TYPES = [t for t in ElementType if t not in BEYOND_XLA]
REAL = frozenset(TYPES) - COMPLEX
WIDE = {ElementType.F64, ElementType.C128}
ROUNDS = "finite differences see the rounding, which the derivative ignores"


def conversions(target: ElementType) -> list[Sample]:
    """To one type from all that convert to it: usual values, edges, an empty array, a scalar."""
    judged = {t for t in TYPES if t is not target and (t, target) not in UNLIKE_XLA}
    sources = judged if target.is_complex else judged - COMPLEX
    smooth = target in WIDE
    samples = [
        Sample(
            "ConvertElementType",
            lambda x: ops.convert_element_type(x, target),
            (Operand(dimensions),),
            sources,
            f"to {target} {list(dimensions)}",
            differentiable=smooth,
            why="" if smooth else ROUNDS,
        )
        for dimensions in ((2, 3), (), (0, 3))
    ]
    at_edges = Sample(
        "ConvertElementType",
        lambda x: ops.convert_element_type(x, target),
        (Operand((100,), domain=edges),),
        judged - COMPLEX,
        f"to {target} edges",
        differentiable=False,
        why=ROUNDS,
    )
    return [*samples, at_edges]


def bitcasts(target: ElementType) -> list[Sample]:
    """To one type from all others that have bits, grouped by width."""
    others = REAL - {target, ElementType.PRED}

    def bitcast(element_types: Collection[ElementType], dimensions: tuple[int, ...]) -> Sample:
        return Sample(
            "BitcastConvertType",
            lambda x: ops.bitcast_convert_type(x, target),
            (Operand(dimensions),),
            element_types,
            f"to {target} {list(dimensions)}",
            exact=True,
            differentiable=False,
            why="reads bits, not values",
        )

    made = [bitcast({t for t in others if t.bits >= target.bits}, (3, 2))]
    for width in (2, 4, 8, 16, 32):
        narrow = {t for t in others if t.bits == width < target.bits}
        if narrow:
            made.append(bitcast(narrow, (3, target.bits // width)))
            made.append(bitcast(narrow, (0, target.bits // width)))
    return [sample for sample in made if sample.element_types]


def reduction(exponent_bits: int, mantissa_bits: int, dimensions: tuple[int, ...]) -> Sample:
    return Sample(
        "ReducePrecision",
        lambda x: ops.reduce_precision(x, exponent_bits, mantissa_bits),
        (Operand(dimensions, domain=edges if dimensions == (100,) else None),),
        FLOATING,
        f"{exponent_bits} {mantissa_bits} {list(dimensions)}",
        exact=True,
        differentiable=False,
        why=ROUNDS,
    )


SAMPLES = [
    *(sample for target in TYPES for sample in conversions(target)),
    *(
        sample
        for target in TYPES
        if target in REAL - {ElementType.PRED}
        for sample in bitcasts(target)
    ),
    *(
        reduction(exponent_bits, mantissa_bits, dimensions)
        for exponent_bits, mantissa_bits in ((5, 10), (8, 7), (2, 1), (1, 0), (4, 3), (11, 52))
        for dimensions in ((2, 3), (100,))
    ),
    reduction(5, 3, ()),
    reduction(5, 3, (0, 3)),
]
