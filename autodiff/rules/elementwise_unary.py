"""Elementwise ops of one operand: a page of calculus.

Complex cotangents follow JAX: a holomorphic f multiplies by f'(z), nothing is conjugated.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tracejit.autodiff.reverse import Cotangents, differentiate
from tracejit.graph import Instruction, Op
from tracejit.ops.comparison import eq, ge
from tracejit.ops.elementwise import add, complex, div, mul, select, sub
from tracejit.ops.elementwise_unary import (
    ABS,
    ACOS,
    ACOSH,
    ASIN,
    ASINH,
    ATANH,
    CBRT,
    CEIL,
    CLZ,
    COS,
    COSH,
    ERF,
    EXP,
    EXPM1,
    FLOOR,
    IMAG,
    IS_FINITE,
    LOG,
    LOG1P,
    LOGISTIC,
    NEG,
    NOT,
    POPULATION_COUNT,
    REAL,
    ROUND_NEAREST_AFZ,
    ROUND_NEAREST_EVEN,
    RSQRT,
    SIGN,
    SIN,
    SINH,
    SQRT,
    TAN,
    TANH,
    abs,
    conj,
    cos,
    cosh,
    exp,
    imag,
    neg,
    rsqrt,
    sin,
    sinh,
)
from tracejit.ops.layout import full_like

for _op in (CEIL, FLOOR, ROUND_NEAREST_AFZ, ROUND_NEAREST_EVEN):
    differentiate.decline(_op, "is piecewise constant")
for _op in (CLZ, NOT, POPULATION_COUNT):
    differentiate.decline(_op, "takes integers only")
differentiate.decline(IS_FINITE, "makes a pred")


def _one_plus(x: Instruction) -> Instruction:
    return add(full_like(x, 1), x)


def _one_minus(x: Instruction) -> Instruction:
    return sub(full_like(x, 1), x)


def _scaled(factor: float, x: Instruction) -> Instruction:
    return mul(full_like(x, factor), x)


# dy/dx as a function of x and y.
_DERIVATIVES: dict[Op, Callable[[Instruction, Instruction], Instruction]] = {
    ACOS: lambda x, y: neg(mul(rsqrt(_one_minus(x)), rsqrt(_one_plus(x)))),
    # The product of roots, not the root of the product: their branch cuts differ.
    ACOSH: lambda x, y: mul(rsqrt(neg(_one_minus(x))), rsqrt(_one_plus(x))),
    ASIN: lambda x, y: mul(rsqrt(_one_minus(x)), rsqrt(_one_plus(x))),
    ASINH: lambda x, y: rsqrt(_one_plus(mul(x, x))),
    ATANH: lambda x, y: div(full_like(x, 1), mul(_one_minus(x), _one_plus(x))),
    CBRT: lambda x, y: div(full_like(x, 1 / 3), mul(y, y)),
    COS: lambda x, y: neg(sin(x)),
    COSH: lambda x, y: sinh(x),
    ERF: lambda x, y: _scaled(2 / math.sqrt(math.pi), exp(neg(mul(x, x)))),
    EXP: lambda x, y: y,
    EXPM1: lambda x, y: _one_plus(y),
    LOG: lambda x, y: div(full_like(x, 1), x),
    LOG1P: lambda x, y: div(full_like(x, 1), _one_plus(x)),
    LOGISTIC: lambda x, y: mul(y, _one_minus(y)),
    RSQRT: lambda x, y: _scaled(-0.5, div(y, x)),
    SIN: lambda x, y: cos(x),
    SINH: lambda x, y: cosh(x),
    SQRT: lambda x, y: div(full_like(x, 0.5), y),
    TAN: lambda x, y: _one_plus(mul(y, y)),
    TANH: lambda x, y: mul(_one_minus(y), _one_plus(y)),
}


def _attach(op: Op, derivative: Callable[[Instruction, Instruction], Instruction]) -> None:
    @differentiate.attach(op)
    def rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
        return (mul(cotangent, derivative(instruction.operands[0], instruction)),)


for _op, _derivative in _DERIVATIVES.items():
    _attach(_op, _derivative)


@differentiate.attach(NEG)
def neg_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    return (neg(cotangent),)


@differentiate.attach(ABS)
def abs_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    """d|x| = dx from 0 on and -dx below; d|z| = Re(conj(z) dz) / |z|, taken as zero at 0."""
    (x,) = instruction.operands
    if not x.array_shape.element_type.is_complex:
        return (select(ge(x, full_like(x, 0)), cotangent, neg(cotangent)),)
    scale = div(cotangent, _or_one_at_zero(instruction))
    return (mul(complex(scale, full_like(scale, 0)), conj(x)),)


@differentiate.attach(SIGN)
def sign_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    """A real sign is piecewise constant. For a complex one, s = z / |z|:

    ds = (dz - s² conj(dz)) / (2 |z|), so Re(c ds) = Re(conj(s) i Im(c s) dz) / |z|; zero at 0.
    """
    (z,) = instruction.operands
    if not z.array_shape.element_type.is_complex:
        return (None,)
    turning = div(imag(mul(cotangent, instruction)), _or_one_at_zero(abs(z)))
    return (mul(conj(instruction), complex(full_like(turning, 0), turning)),)


def _or_one_at_zero(magnitude: Instruction) -> Instruction:
    return select(eq(magnitude, full_like(magnitude, 0)), full_like(magnitude, 1), magnitude)


@differentiate.attach(REAL)
def real_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    if not instruction.operands[0].array_shape.element_type.is_complex:
        return (cotangent,)
    return (complex(cotangent, full_like(cotangent, 0)),)


@differentiate.attach(IMAG)
def imag_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    """Im(dz) = Re(-i dz)."""
    if not instruction.operands[0].array_shape.element_type.is_complex:
        return (None,)
    return (complex(full_like(cotangent, 0), neg(cotangent)),)
