"""Ops that not every compiler knows, as compositions of ones that all know.

expand(computation)     none of these left in it, nor in what it calls

They are Acos Acosh Asin Asinh Atanh Cosh Sinh, RaggedDot, ScaledDot and Scan. XLA parses their
opcodes, but its CPU client has no code for them. Narrow floating types go through f32. The complex
forms are those of W. Kahan, "Branch Cuts for Complex Elementary Functions, or Much Ado About
Nothing's Sign Bit" (1987).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes

from tracejit.graph import Computation, Instruction, Op
from tracejit.ops.comparison import ge, lt
from tracejit.ops.element_types import convert_element_type
from tracejit.ops.elementwise import add, atan2, complex, div, mul, select, sub
from tracejit.ops.elementwise_unary import (
    ACOS,
    ACOSH,
    ASIN,
    ASINH,
    ATANH,
    COSH,
    SINH,
    abs,
    conj,
    cos,
    exp,
    expm1,
    imag,
    log,
    log1p,
    neg,
    real,
    sign,
    sin,
    sqrt,
)
from tracejit.ops.grouped import RAGGED_DOT, SCALED_DOT
from tracejit.ops.grouped_expansions import ragged_as_dot, scaled_as_dot
from tracejit.ops.layout import full_like
from tracejit.ops.scanning import SCAN, scan_as_while
from tracejit.shapes import ElementType
from tracejit.traversal import transform

Function = Callable[[Instruction], Instruction]


def _plus(x: Instruction, number: float) -> Instruction:
    return add(x, full_like(x, number))


def _times(number: float, x: Instruction) -> Instruction:
    return mul(full_like(x, number), x)


def _one_minus(x: Instruction) -> Instruction:
    return sub(full_like(x, 1), x)


def _is_huge(magnitude: Instruction) -> Instruction:
    """Whether the square, or the double, would overflow."""
    dtype = magnitude.array_shape.dtype
    largest = float(ml_dtypes.finfo(dtype).max)  # type: ignore[no-untyped-call]
    return ge(magnitude, full_like(magnitude, math.sqrt(largest)))


def _log_of_double(x: Instruction) -> Instruction:
    return _plus(log(x), math.log(2))


def _acos(x: Instruction) -> Instruction:
    return atan2(sqrt(mul(_one_minus(x), _plus(x, 1))), x)


def _acosh(x: Instruction) -> Instruction:
    """log1p(t + sqrt(t) sqrt(t + 2)) with t = x - 1, exact near 1; log(2x) where 2t overflows."""
    t = _plus(x, -1)
    exact = log1p(add(t, mul(sqrt(t), sqrt(_plus(t, 2)))))
    return select(_is_huge(x), _log_of_double(x), exact)


def _asin(x: Instruction) -> Instruction:
    return atan2(x, sqrt(mul(_one_minus(x), _plus(x, 1))))


def _asinh(x: Instruction) -> Instruction:
    """log1p(m + m² / (1 + sqrt(m² + 1))) with m = |x|, exact near 0; log(2m) where m² overflows."""
    m = abs(x)
    square = mul(m, m)
    exact = log1p(add(m, div(square, _plus(sqrt(_plus(square, 1)), 1))))
    return mul(sign(x), select(_is_huge(m), _log_of_double(m), exact))


def _atanh(x: Instruction) -> Instruction:
    return _times(0.5, sub(log1p(x), log1p(neg(x))))


def _half_exponentials(x: Instruction) -> tuple[Instruction, Instruction]:
    """exp(|x|) / 2 and exp(-|x|) / 2, the first finite as long as it can be."""
    root = exp(_times(0.5, abs(x)))
    return mul(_times(0.5, root), root), div(div(full_like(root, 0.5), root), root)


def _cosh(x: Instruction) -> Instruction:
    return add(*_half_exponentials(x))


def _sinh(x: Instruction) -> Instruction:
    """(t + t / (t + 1)) / 2 with t = expm1(|x|) near 0, where exponentials would cancel."""
    t = expm1(abs(x))
    small = _times(0.5, add(t, div(t, _plus(t, 1))))
    near = lt(abs(x), full_like(x, 1))
    return mul(sign(x), select(near, small, sub(*_half_exponentials(x))))


def _roots(z: Instruction) -> tuple[Instruction, Instruction]:
    """sqrt(1 - z) and sqrt(1 + z); adding a real number must keep the sign of a zero part."""
    x, y = real(z), imag(z)
    return sqrt(complex(_one_minus(x), neg(y))), sqrt(complex(_plus(x, 1), y))


def _complex_acos(z: Instruction) -> Instruction:
    minus, plus = _roots(z)
    angle = _times(2, atan2(real(minus), real(plus)))
    return complex(angle, _asinh(imag(mul(conj(plus), minus))))


def _complex_acosh(z: Instruction) -> Instruction:
    x, y = real(z), imag(z)
    minus, plus = sqrt(complex(_plus(x, -1), y)), sqrt(complex(_plus(x, 1), y))
    angle = _times(2, atan2(imag(minus), real(plus)))
    return complex(_asinh(real(mul(conj(minus), plus))), angle)


def _complex_asin(z: Instruction) -> Instruction:
    minus, plus = _roots(z)
    angle = atan2(real(z), real(mul(minus, plus)))
    return complex(angle, _asinh(imag(mul(conj(minus), plus))))


def _complex_asinh(z: Instruction) -> Instruction:
    """asinh(z) = i asin(-i z)."""
    turned = _complex_asin(complex(imag(z), neg(real(z))))
    return complex(neg(imag(turned)), real(turned))


def _complex_atanh(z: Instruction) -> Instruction:
    """±log1p(4m / ((1 - m)² + y²)) / 4 + i atan2(2y, (1 - m)(1 + m) - y²) / 2 with m = |x|."""
    x, y = real(z), imag(z)
    m, square = abs(x), mul(y, y)
    quotient = div(_times(4, m), add(mul(_one_minus(m), _one_minus(m)), square))
    angle = atan2(_times(2, y), sub(mul(_one_minus(m), _plus(m, 1)), square))
    return complex(mul(sign(x), _times(0.25, log1p(quotient))), _times(0.5, angle))


def _complex_cosh(z: Instruction) -> Instruction:
    x, y = real(z), imag(z)
    return complex(mul(_cosh(x), cos(y)), mul(_sinh(x), sin(y)))


def _complex_sinh(z: Instruction) -> Instruction:
    x, y = real(z), imag(z)
    return complex(mul(_sinh(x), cos(y)), mul(_cosh(x), sin(y)))


# Each op for a floating and for a complex operand.
EXPANSIONS: dict[Op, tuple[Function, Function]] = {
    ACOS: (_acos, _complex_acos),
    ACOSH: (_acosh, _complex_acosh),
    ASIN: (_asin, _complex_asin),
    ASINH: (_asinh, _complex_asinh),
    ATANH: (_atanh, _complex_atanh),
    COSH: (_cosh, _complex_cosh),
    SINH: (_sinh, _complex_sinh),
}


def expand(computation: Computation) -> Computation:
    """The computation, and all that it calls, with every op of `EXPANSIONS` composed of others."""
    called: dict[Computation, Computation] = {}

    def expand_attribute(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple([expand_attribute(element) for element in value])
        if not isinstance(value, Computation):
            return value
        if value not in called:
            called[value] = expand(value)
        return called[value]

    def visit(instruction: Instruction, operands: tuple[Instruction, ...]) -> Instruction | None:
        if instruction.op in EXPANSIONS:
            return expanded(instruction.op, operands[0])
        if instruction.op is RAGGED_DOT:
            return ragged_as_dot(instruction, operands)
        if instruction.op is SCALED_DOT:
            return scaled_as_dot(instruction, operands)
        if not instruction.computations:
            return None
        attributes = {n: expand_attribute(v) for n, v in instruction.attributes.items()}
        made = Instruction(
            instruction.op, operands, instruction.shape, attributes, instruction.source
        )
        return scan_as_while(made) if made.op is SCAN else made

    root, *effects = transform([computation.root, *computation.effects], visit)
    return Computation(computation.name, computation.parameters, root, tuple(effects))


def expanded(op: Op, operand: Instruction) -> Instruction:
    """One op of `EXPANSIONS` applied to ``operand``, composed of others."""
    on_floating, on_complex = EXPANSIONS[op]
    element_type = operand.array_shape.element_type
    if element_type.is_complex:
        return on_complex(operand)
    if element_type.bits >= 32:
        return on_floating(operand)
    wide = on_floating(convert_element_type(operand, ElementType.F32))
    return convert_element_type(wide, element_type)
