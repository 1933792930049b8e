"""Elementwise ops of two and three operands.

Complex cotangents follow JAX: a holomorphic f multiplies by f'(z), nothing is conjugated.
"""

from __future__ import annotations

from tracejit.autodiff.reverse import Cotangents, differentiate
from tracejit.graph import Instruction
from tracejit.ops.comparison import eq, gt
from tracejit.ops.elementwise import (
    ADD,
    AND,
    ATAN2,
    CLAMP,
    COMPLEX,
    DIV,
    MAX,
    MIN,
    MUL,
    OR,
    POW,
    REM,
    SELECT,
    SHIFT_LEFT,
    SHIFT_RIGHT_ARITHMETIC,
    SHIFT_RIGHT_LOGICAL,
    SUB,
    XOR,
    add,
    and_,
    div,
    max,
    mul,
    pow,
    select,
    sub,
)
from tracejit.ops.elementwise_unary import imag, log, neg, not_, real, round_nearest_even
from tracejit.ops.layout import broadcast_in_dim, full_like, scalar_like
from tracejit.ops.reduction import reduce_sum

for _op in (AND, OR, SHIFT_LEFT, SHIFT_RIGHT_ARITHMETIC, SHIFT_RIGHT_LOGICAL, XOR):
    differentiate.decline(_op, "takes integers only")


@differentiate.attach(ADD)
def add_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    return cotangent, cotangent


@differentiate.attach(SUB)
def sub_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    return cotangent, neg(cotangent)


@differentiate.attach(MUL)
def mul_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    x, y = instruction.operands
    of_x = mul(cotangent, y)
    return of_x, of_x if x is y else mul(cotangent, x)


@differentiate.attach(DIV)
def div_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    """d(x / y) = dx / y - (x / y) dy / y."""
    quotient = div(cotangent, instruction.operands[1])
    return quotient, neg(mul(quotient, instruction))


@differentiate.attach(REM)
def rem_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    """rem(x, y) = x - y n, where the whole number n is locally constant."""
    x, y = instruction.operands
    n = round_nearest_even(div(sub(x, instruction), y))
    return cotangent, neg(mul(cotangent, n))


@differentiate.attach(POW)
def pow_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    """d(x^y) = y x^(y-1) dx + x^y log(x) dy, both zero where they would be 0 · inf.

    At x = y = 0 the base of the first power becomes 1, at x = 0 that of the logarithm.
    """
    x, y = instruction.operands
    at_zero = eq(x, full_like(x, 0))
    ones = full_like(x, 1)
    base = select(and_(at_zero, eq(y, full_like(y, 0))), ones, x)
    by_x = mul(y, pow(base, sub(y, ones)))
    by_y = mul(instruction, log(select(at_zero, ones, x)))
    return mul(cotangent, by_x), mul(cotangent, by_y)


@differentiate.attach(ATAN2)
def atan2_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    """d atan2(y, x) = (x dy - y dx) / (x² + y²), taken as zero at the origin."""
    y, x = instruction.operands
    square = add(mul(x, x), mul(y, y))
    origin = eq(square, full_like(square, 0))
    scaled = div(cotangent, select(origin, full_like(square, 1), square))
    return mul(scaled, x), neg(mul(scaled, y))


@differentiate.attach(COMPLEX)
def complex_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    """Im(cotangent · i dy) would be dropped; Re(cotangent · i dy) = -Im(cotangent) dy is kept."""
    return real(cotangent), neg(imag(cotangent))


@differentiate.attach(MAX, MIN)
def max_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    """All to the operand that is the result; half to each where both are."""
    x, y = instruction.operands
    from_x, from_y = eq(x, instruction), eq(y, instruction)
    half = mul(cotangent, scalar_like(cotangent, 0.5))
    shared = select(and_(from_x, from_y), half, cotangent)
    zero = full_like(cotangent, 0)
    return select(from_x, shared, zero), select(from_y, shared, zero)


@differentiate.attach(CLAMP)
def clamp_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    """To the operand strictly between the bounds, otherwise to the bound that was exceeded."""
    low, x, high = instruction.operands
    dimensions = x.array_shape.dimensions
    lower, upper = (
        bound if bound.array_shape.rank else broadcast_in_dim(bound, dimensions, ())
        for bound in (low, high)
    )
    zero = full_like(cotangent, 0)
    from_high = gt(max(x, lower), upper)
    from_low = and_(gt(lower, x), not_(from_high))
    inside = and_(gt(x, lower), gt(upper, x))
    return (
        _unbroadcast(select(from_low, cotangent, zero), low),
        select(inside, cotangent, zero),
        _unbroadcast(select(from_high, cotangent, zero), high),
    )


def _unbroadcast(cotangent: Instruction, operand: Instruction) -> Instruction:
    """The cotangent of a scalar that stood for a whole array is the sum."""
    if operand.array_shape.rank == cotangent.array_shape.rank:
        return cotangent
    return reduce_sum(cotangent)


@differentiate.attach(SELECT)
def select_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    """What was not selected gets exactly zero, even where the cotangent is infinite or NaN."""
    pred = instruction.operands[0]
    zero = full_like(cotangent, 0)
    return None, select(pred, cotangent, zero), select(pred, zero, cotangent)
