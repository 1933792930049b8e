"""Elementwise ops of one operand.

Those with several implementations take XLA's ``result_accuracy``, a `ResultAccuracy`:
exp(x, ResultAccuracy("highest")), tanh(x, ResultAccuracy(ulps=2)).
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from tracejit.attributes import Attribute, Kind, ResultAccuracy
from tracejit.graph import Instruction, Op, Trait
from tracejit.ops.base import (
    FLOATING,
    INEXACT,
    INTEGRAL,
    LOGICAL,
    NUMERIC,
    SIGNED_INTEGRAL,
    define,
    function_name,
    make,
    require_array,
    require_element_type,
)
from tracejit.ops.elementwise import atan2, complex
from tracejit.ops.layout import full_like
from tracejit.shapes import AnyShape, ElementType, Shape

RESULT_ACCURACY = Attribute("result_accuracy", Kind.RESULT_ACCURACY, None)


def unary(
    name: str,
    opcode: str,
    accepts: Collection[ElementType],
    *attributes: Attribute,
    result: Callable[[ElementType], ElementType] | None = None,
    traits: Trait = Trait.NONE,
) -> Op:
    """An op on one array whose result has its shape and element type.

    ``result`` maps the element type to the result's where it is another.
    An attribute can only be `RESULT_ACCURACY`, which does not bear on the shape, and which all
    transcendental functions have.
    """
    function = function_name(name)

    def shape_rule(operand: AnyShape, **ignored: ResultAccuracy | None) -> Shape:
        shape = require_array(function, "operand", operand)
        require_element_type(function, "operand", shape, accepts)
        element_type = shape.element_type if result is None else result(shape.element_type)
        return Shape(element_type, shape.dimensions)

    shape_rule.__module__ = __name__
    own = traits | (Trait.TRANSCENDENTAL if attributes else Trait.NONE)
    return define(name, opcode, *attributes, traits=own)(shape_rule)


def _real_of(element_type: ElementType) -> ElementType:
    return element_type.real


def _pred_of(element_type: ElementType) -> ElementType:
    return ElementType.PRED


ABS = unary("Abs", "abs", SIGNED_INTEGRAL | INEXACT, result=_real_of)


def abs(operand: Instruction) -> Instruction:
    """|operand|; the real magnitude of a complex one (XLA: Abs).

    The most negative integer stays itself.
    """
    return make(ABS, operand)


ACOS = unary("Acos", "acos", INEXACT, RESULT_ACCURACY)


def acos(operand: Instruction, result_accuracy: ResultAccuracy | None = None) -> Instruction:
    """The angle in [0, π] whose cosine is operand (XLA: Acos)."""
    return make(ACOS, operand, result_accuracy=result_accuracy)


ACOSH = unary("Acosh", "acosh", INEXACT, RESULT_ACCURACY)


def acosh(operand: Instruction, result_accuracy: ResultAccuracy | None = None) -> Instruction:
    """The non-negative number whose hyperbolic cosine is operand (XLA: Acosh)."""
    return make(ACOSH, operand, result_accuracy=result_accuracy)


ASIN = unary("Asin", "asin", INEXACT, RESULT_ACCURACY)


def asin(operand: Instruction, result_accuracy: ResultAccuracy | None = None) -> Instruction:
    """The angle in [-π/2, π/2] whose sine is operand (XLA: Asin)."""
    return make(ASIN, operand, result_accuracy=result_accuracy)


ASINH = unary("Asinh", "asinh", INEXACT, RESULT_ACCURACY)


def asinh(operand: Instruction, result_accuracy: ResultAccuracy | None = None) -> Instruction:
    """The number whose hyperbolic sine is operand (XLA: Asinh)."""
    return make(ASINH, operand, result_accuracy=result_accuracy)


ATANH = unary("Atanh", "atanh", INEXACT, RESULT_ACCURACY)


def atanh(operand: Instruction, result_accuracy: ResultAccuracy | None = None) -> Instruction:
    """The number whose hyperbolic tangent is operand (XLA: Atanh)."""
    return make(ATANH, operand, result_accuracy=result_accuracy)


def atan(operand: Instruction) -> Instruction:
    """The angle in (-π/2, π/2) whose tangent is operand (XLA: Atan).

    A real one is Atan2 of it and one, a complex one -i·atanh(i·operand).
    """
    if not operand.array_shape.element_type.is_complex:
        return atan2(operand, full_like(operand, 1))
    turned = atanh(complex(neg(imag(operand)), real(operand)))
    return complex(imag(turned), neg(real(turned)))


CBRT = unary("Cbrt", "cbrt", FLOATING, RESULT_ACCURACY)


def cbrt(operand: Instruction, result_accuracy: ResultAccuracy | None = None) -> Instruction:
    """The real cube root, negative for negative operands (XLA: Cbrt)."""
    return make(CBRT, operand, result_accuracy=result_accuracy)


CEIL = unary("Ceil", "ceil", FLOATING)


def ceil(operand: Instruction) -> Instruction:
    """The least whole number that is not below operand (XLA: Ceil)."""
    return make(CEIL, operand)


CLZ = unary("Clz", "count-leading-zeros", INTEGRAL)


def clz(operand: Instruction) -> Instruction:
    """How many of the highest bits are zero (XLA: Clz)."""
    return make(CLZ, operand)


def conj(operand: Instruction) -> Instruction:
    """The complex conjugate; a real operand becomes complex (XLA: Conj)."""
    return complex(real(operand), neg(imag(operand)))


COS = unary("Cos", "cosine", INEXACT, RESULT_ACCURACY)


def cos(operand: Instruction, result_accuracy: ResultAccuracy | None = None) -> Instruction:
    """cos(operand), in radians (XLA: Cos)."""
    return make(COS, operand, result_accuracy=result_accuracy)


COSH = unary("Cosh", "cosh", INEXACT, RESULT_ACCURACY)


def cosh(operand: Instruction, result_accuracy: ResultAccuracy | None = None) -> Instruction:
    """The hyperbolic cosine (XLA: Cosh)."""
    return make(COSH, operand, result_accuracy=result_accuracy)


ERF = unary("Erf", "erf", FLOATING, RESULT_ACCURACY)


def erf(operand: Instruction, result_accuracy: ResultAccuracy | None = None) -> Instruction:
    """The error function: 2/√π times the integral of exp(-t²) from 0 to operand (XLA: Erf)."""
    return make(ERF, operand, result_accuracy=result_accuracy)


EXP = unary("Exp", "exponential", INEXACT, RESULT_ACCURACY)


def exp(operand: Instruction, result_accuracy: ResultAccuracy | None = None) -> Instruction:
    """e to the power operand (XLA: Exp)."""
    return make(EXP, operand, result_accuracy=result_accuracy)


EXPM1 = unary("Expm1", "exponential-minus-one", INEXACT, RESULT_ACCURACY)


def expm1(operand: Instruction, result_accuracy: ResultAccuracy | None = None) -> Instruction:
    """exp(operand) - 1, exact near 0 (XLA: Expm1)."""
    return make(EXPM1, operand, result_accuracy=result_accuracy)


FLOOR = unary("Floor", "floor", FLOATING)


def floor(operand: Instruction) -> Instruction:
    """The greatest whole number that is not above operand (XLA: Floor)."""
    return make(FLOOR, operand)


IMAG = unary("Imag", "imag", INEXACT, result=_real_of)


def imag(operand: Instruction) -> Instruction:
    """The imaginary part; zero for a real operand (XLA: Imag)."""
    return make(IMAG, operand)


IS_FINITE = unary("IsFinite", "is-finite", FLOATING, result=_pred_of)


def is_finite(operand: Instruction) -> Instruction:
    """A pred: true where operand is neither infinite nor NaN (XLA: IsFinite)."""
    return make(IS_FINITE, operand)


LOG = unary("Log", "log", INEXACT, RESULT_ACCURACY)


def log(operand: Instruction, result_accuracy: ResultAccuracy | None = None) -> Instruction:
    """The natural logarithm (XLA: Log)."""
    return make(LOG, operand, result_accuracy=result_accuracy)


LOG1P = unary("Log1p", "log-plus-one", INEXACT, RESULT_ACCURACY)


def log1p(operand: Instruction, result_accuracy: ResultAccuracy | None = None) -> Instruction:
    """log(1 + operand), exact near 0 (XLA: Log1p)."""
    return make(LOG1P, operand, result_accuracy=result_accuracy)


LOGISTIC = unary("Logistic", "logistic", INEXACT, RESULT_ACCURACY)


def logistic(operand: Instruction, result_accuracy: ResultAccuracy | None = None) -> Instruction:
    """1 / (1 + exp(-operand)) (XLA: Logistic)."""
    return make(LOGISTIC, operand, result_accuracy=result_accuracy)


NEG = unary("Neg", "negate", NUMERIC, traits=Trait.CHEAP)


def neg(operand: Instruction) -> Instruction:
    """-operand, wrapping for integers (XLA: Neg)."""
    return make(NEG, operand)


NOT = unary("Not", "not", LOGICAL, traits=Trait.CHEAP)


def not_(operand: Instruction) -> Instruction:
    """Every bit inverted; on pred, the logical not (XLA: Not)."""
    return make(NOT, operand)


POPULATION_COUNT = unary("PopulationCount", "popcnt", INTEGRAL)


def population_count(operand: Instruction) -> Instruction:
    """How many bits are one (XLA: PopulationCount)."""
    return make(POPULATION_COUNT, operand)


REAL = unary("Real", "real", INEXACT, result=_real_of)


def real(operand: Instruction) -> Instruction:
    """The real part; operand itself where it is real (XLA: Real)."""
    return make(REAL, operand)


def round(operand: Instruction) -> Instruction:
    """The nearest whole number; halves away from zero (XLA: Round)."""
    return round_nearest_afz(operand)


ROUND_NEAREST_AFZ = unary("RoundNearestAfz", "round-nearest-afz", FLOATING)


def round_nearest_afz(operand: Instruction) -> Instruction:
    """The nearest whole number; halves away from zero (XLA: RoundNearestAfz)."""
    return make(ROUND_NEAREST_AFZ, operand)


ROUND_NEAREST_EVEN = unary("RoundNearestEven", "round-nearest-even", FLOATING)


def round_nearest_even(operand: Instruction) -> Instruction:
    """The nearest whole number; halves to the even one (XLA: RoundNearestEven)."""
    return make(ROUND_NEAREST_EVEN, operand)


RSQRT = unary("Rsqrt", "rsqrt", INEXACT, RESULT_ACCURACY)


def rsqrt(operand: Instruction, result_accuracy: ResultAccuracy | None = None) -> Instruction:
    """1 / sqrt(operand) (XLA: Rsqrt)."""
    return make(RSQRT, operand, result_accuracy=result_accuracy)


SIGN = unary("Sign", "sign", SIGNED_INTEGRAL | INEXACT)


def sign(operand: Instruction) -> Instruction:
    """-1, 0 (with operand's sign) or 1; NaN for NaN; operand / |operand| where it is complex
    (XLA: Sign).
    """
    return make(SIGN, operand)


SIN = unary("Sin", "sine", INEXACT, RESULT_ACCURACY)


def sin(operand: Instruction, result_accuracy: ResultAccuracy | None = None) -> Instruction:
    """sin(operand), in radians (XLA: Sin)."""
    return make(SIN, operand, result_accuracy=result_accuracy)


SINH = unary("Sinh", "sinh", INEXACT, RESULT_ACCURACY)


def sinh(operand: Instruction, result_accuracy: ResultAccuracy | None = None) -> Instruction:
    """The hyperbolic sine (XLA: Sinh)."""
    return make(SINH, operand, result_accuracy=result_accuracy)


SQRT = unary("Sqrt", "sqrt", INEXACT, RESULT_ACCURACY)


def sqrt(operand: Instruction, result_accuracy: ResultAccuracy | None = None) -> Instruction:
    """The square root; NaN for negative real operands (XLA: Sqrt)."""
    return make(SQRT, operand, result_accuracy=result_accuracy)


TAN = unary("Tan", "tan", INEXACT, RESULT_ACCURACY)


def tan(operand: Instruction, result_accuracy: ResultAccuracy | None = None) -> Instruction:
    """tan(operand), in radians (XLA: Tan)."""
    return make(TAN, operand, result_accuracy=result_accuracy)


TANH = unary("Tanh", "tanh", INEXACT, RESULT_ACCURACY)


def tanh(operand: Instruction, result_accuracy: ResultAccuracy | None = None) -> Instruction:
    """The hyperbolic tangent (XLA: Tanh)."""
    return make(TANH, operand, result_accuracy=result_accuracy)
