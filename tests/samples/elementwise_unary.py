"""Samples of the elementwise ops of one operand."""

from __future__ import annotations

from collections.abc import Callable

from tests.samples.base import Domain, Operand, Sample
from tests.samples.domains import away_from_zero, edges, uniform
from tests.samples.elementwise import at_edges, sizes
from tracejit import ops
from tracejit.attributes import ResultAccuracy
from tracejit.graph import Instruction
from tracejit.ops.base import (
    COMPLEX,
    FLOATING,
    INEXACT,
    INTEGRAL,
    LOGICAL,
    NUMERIC,
    SIGNED_INTEGRAL,
)
from tracejit.shapes import ElementType

SIGNED = SIGNED_INTEGRAL | INEXACT
F16 = ElementType.F16
LOG1P_OF_XLA = {ElementType.F64: 4e-14}
INSIDE_ONE = uniform(-0.9, 0.9)
POSITIVE = uniform(0.5, 2)


def at_type_edges(op: str, build: Callable[..., Instruction]) -> Sample:
    return at_edges(op, build, FLOATING, edges)


def accurate(
    op: str, build: Callable[[Instruction, ResultAccuracy], Instruction], domain: Domain
) -> list[Sample]:
    """Both forms of result_accuracy."""
    return [
        Sample(
            op,
            lambda x, accuracy=accuracy: build(x, accuracy),
            (Operand((2, 3), domain=domain),),
            FLOATING,
            label,
        )
        for label, accuracy in (
            ("highest", ResultAccuracy("highest")),
            ("tolerance", ResultAccuracy(atol=1e-3, rtol=1e-3, ulps=4)),
        )
    ]


SAMPLES = [
    *sizes("Abs", ops.abs, SIGNED, away_from_zero),
    *sizes("Acos", ops.acos, INEXACT, INSIDE_ONE),
    *sizes("Acosh", ops.acosh, INEXACT, uniform(1.25, 3)),
    *sizes("Asin", ops.asin, INEXACT, INSIDE_ONE),
    *sizes("Asinh", ops.asinh, FLOATING, None),
    *sizes("Asinh", ops.asinh, COMPLEX, uniform(-2, 2)),
    # XLA's log1p, of which the judge composes this one, is 40 units off in f64.
    *sizes("Atanh", ops.atanh, INEXACT, INSIDE_ONE, tolerance=LOG1P_OF_XLA),
    *sizes("Cbrt", ops.cbrt, FLOATING, away_from_zero),
    *sizes("Ceil", ops.ceil, FLOATING, uniform(-5, 5)),
    *sizes("Clz", ops.clz, INTEGRAL, None),
    *sizes("Cos", ops.cos, INEXACT, uniform(-9, 9)),
    *sizes("Cosh", ops.cosh, INEXACT, uniform(-3, 3)),
    *sizes("Erf", ops.erf, FLOATING, uniform(-3, 3)),
    *sizes("Exp", ops.exp, INEXACT, uniform(-5, 5)),
    *sizes("Expm1", ops.expm1, INEXACT, uniform(-3, 3)),
    *sizes("Floor", ops.floor, FLOATING, uniform(-5, 5)),
    *sizes("Imag", ops.imag, INEXACT, None),
    *sizes("IsFinite", ops.is_finite, FLOATING, edges),
    *sizes("Log", ops.log, INEXACT, POSITIVE),
    *sizes("Log1p", ops.log1p, INEXACT, uniform(-0.9, 3)),
    # XLA computes this one in f16 itself.
    *sizes("Logistic", ops.logistic, INEXACT, uniform(-5, 5), tolerance={F16: 4e-3}),
    *sizes("Neg", ops.neg, NUMERIC, None),
    *sizes("Not", ops.not_, LOGICAL, None),
    # XLA counts the bits of a negative s4 after widening it, so those are left out.
    *sizes("PopulationCount", ops.population_count, INTEGRAL, uniform(0, 7)),
    *sizes("Real", ops.real, INEXACT, None),
    *sizes("RoundNearestAfz", ops.round_nearest_afz, FLOATING, uniform(-5, 5)),
    *sizes("RoundNearestEven", ops.round_nearest_even, FLOATING, uniform(-5, 5)),
    *sizes("Rsqrt", ops.rsqrt, INEXACT, POSITIVE),
    *sizes("Sign", ops.sign, SIGNED, away_from_zero),
    *sizes("Sin", ops.sin, INEXACT, uniform(-9, 9)),
    *sizes("Sinh", ops.sinh, INEXACT, uniform(-3, 3)),
    *sizes("Sqrt", ops.sqrt, INEXACT, POSITIVE),
    *sizes("Tan", ops.tan, INEXACT, uniform(-1, 1)),
    *sizes("Tanh", ops.tanh, INEXACT, uniform(-3, 3)),
    at_edges("Abs", ops.abs, SIGNED_INTEGRAL | FLOATING, edges),
    at_type_edges("Cbrt", ops.cbrt),
    at_type_edges("Ceil", ops.ceil),
    at_edges("Clz", ops.clz, INTEGRAL, edges),
    at_type_edges("Erf", ops.erf),
    at_type_edges("Exp", ops.exp),
    at_type_edges("Expm1", ops.expm1),
    at_type_edges("Floor", ops.floor),
    at_type_edges("Log", ops.log),
    at_type_edges("Log1p", ops.log1p),
    at_edges("Neg", ops.neg, INTEGRAL | FLOATING, edges),
    at_edges("Not", ops.not_, LOGICAL, edges),
    at_edges("PopulationCount", ops.population_count, INTEGRAL - {ElementType.S4}, edges),
    at_type_edges("RoundNearestAfz", ops.round_nearest_afz),
    at_type_edges("RoundNearestEven", ops.round_nearest_even),
    at_type_edges("Rsqrt", ops.rsqrt),
    at_edges("Sign", ops.sign, SIGNED_INTEGRAL | FLOATING, edges),
    at_type_edges("Sqrt", ops.sqrt),
    at_type_edges("Tanh", ops.tanh),
    *accurate("Cbrt", ops.cbrt, POSITIVE),
    *accurate("Cos", ops.cos, POSITIVE),
    *accurate("Erf", ops.erf, POSITIVE),
    *accurate("Exp", ops.exp, POSITIVE),
    *accurate("Expm1", ops.expm1, POSITIVE),
    *accurate("Log", ops.log, POSITIVE),
    *accurate("Log1p", ops.log1p, POSITIVE),
    *accurate("Logistic", ops.logistic, POSITIVE),
    *accurate("Rsqrt", ops.rsqrt, POSITIVE),
    *accurate("Sin", ops.sin, POSITIVE),
    *accurate("Sqrt", ops.sqrt, POSITIVE),
    *accurate("Tan", ops.tan, INSIDE_ONE),
    *accurate("Tanh", ops.tanh, POSITIVE),
]
