"""Element rules of elementwise ops with one operand: TIR for one register value."""

from __future__ import annotations

from collections.abc import Callable

from tracejit.backends.tvm.analysis.element_rules import Value, pointwise
from tracejit.backends.tvm.codegen.rules.elementwise import element_type_of, low_bits, unsigned
from tracejit.backends.tvm.ir import complex_mathematics, mathematics
from tracejit.backends.tvm.ir.complex import Complex
from tracejit.backends.tvm.ir.dtypes import register_dtype
from tracejit.backends.tvm.ir.internal_ops import ERF_INV, EXP2, LOG2, LOG10
from tracejit.backends.tvm.ir.tir import Expr, const, reinterpret, tirx
from tracejit.graph import Instruction, Op
from tracejit.ops import elementwise_unary as ops
from tracejit.shapes import ElementType

Function = Callable[[Expr, str], Expr]
ComplexFunction = Callable[[Complex, str], Complex]


def _attach(op: Op, real: Function, complex: ComplexFunction | None = None) -> None:
    """A function of floats, and of complex numbers where the op admits them."""

    @pointwise.attach(op)
    def rule(instruction: Instruction, operand: Value) -> Value:
        element_type = element_type_of(instruction)
        if element_type.is_complex:
            assert complex is not None, f"{op} admits no complex numbers"
            return complex(operand, register_dtype(element_type.real))
        return real(operand, register_dtype(element_type))


_attach(ops.ACOS, mathematics.acos, complex_mathematics.acos)
_attach(ops.ACOSH, mathematics.acosh, complex_mathematics.acosh)
_attach(ops.ASIN, mathematics.asin, complex_mathematics.asin)
_attach(ops.ASINH, mathematics.asinh, complex_mathematics.asinh)
_attach(ops.ATANH, mathematics.atanh, complex_mathematics.atanh)
_attach(ops.CBRT, mathematics.cbrt)
_attach(ops.CEIL, mathematics.ceil)
_attach(ops.COS, mathematics.cos, complex_mathematics.cos)
_attach(ops.COSH, mathematics.cosh, complex_mathematics.cosh)
_attach(ops.ERF, mathematics.erf)
_attach(ERF_INV, mathematics.erf_inv)
_attach(ops.EXP, mathematics.exp, complex_mathematics.exp)
_attach(EXP2, mathematics.exp2)
_attach(ops.EXPM1, mathematics.expm1, complex_mathematics.expm1)
_attach(ops.FLOOR, mathematics.floor)
_attach(ops.LOG, mathematics.log, complex_mathematics.log)
_attach(LOG10, mathematics.log10)
_attach(ops.LOG1P, mathematics.log1p, complex_mathematics.log1p)
_attach(LOG2, mathematics.log2)
_attach(ops.LOGISTIC, mathematics.logistic, complex_mathematics.logistic)
_attach(ops.ROUND_NEAREST_AFZ, mathematics.round_nearest_afz)
_attach(ops.ROUND_NEAREST_EVEN, mathematics.round_nearest_even)
_attach(ops.RSQRT, mathematics.rsqrt, complex_mathematics.rsqrt)
_attach(ops.SIN, mathematics.sin, complex_mathematics.sin)
_attach(ops.SINH, mathematics.sinh, complex_mathematics.sinh)
_attach(ops.SQRT, mathematics.sqrt, complex_mathematics.sqrt)
_attach(ops.TAN, mathematics.tan, complex_mathematics.tan)
_attach(ops.TANH, mathematics.tanh, complex_mathematics.tanh)


@pointwise.attach(ops.ABS)
def abs_(instruction: Instruction, operand: Value) -> Value:
    element_type = element_type_of(instruction)
    dtype = register_dtype(element_type.real)
    if element_type.is_complex:
        return complex_mathematics.abs(operand, dtype)
    if element_type.is_floating:
        return tirx.abs(operand)
    zero = const(0, dtype)
    return tirx.Select(operand < zero, zero - operand, operand)


@pointwise.attach(ops.SIGN)
def sign(instruction: Instruction, operand: Value) -> Value:
    element_type = element_type_of(instruction)
    dtype = register_dtype(element_type.real)
    if element_type.is_complex:
        return complex_mathematics.sign(operand, dtype)
    if element_type.is_floating:
        return mathematics.sign(operand, dtype)
    zero, one = const(0, dtype), const(1, dtype)
    positive = tirx.Select(operand > zero, one, zero)
    if not element_type.is_signed:
        return positive
    return tirx.Select(operand < zero, const(-1, dtype), positive)


@pointwise.attach(ops.NEG)
def neg(instruction: Instruction, operand: Value) -> Value:
    element_type = element_type_of(instruction)
    if isinstance(operand, Complex):
        return Complex(-operand.re, -operand.im)
    if element_type.is_floating:
        return -operand
    # As signed: of unsigned numbers TVM simplifies 0 - x to 0.
    dtype = register_dtype(element_type)
    signed = dtype.replace("uint", "int")
    return reinterpret(dtype, const(0, signed) - reinterpret(signed, operand))


@pointwise.attach(ops.NOT)
def not_(instruction: Instruction, operand: Value) -> Value:
    if element_type_of(instruction) is ElementType.PRED:
        return tirx.Not(operand)
    return ~operand


@pointwise.attach(ops.REAL)
def real(instruction: Instruction, operand: Value) -> Value:
    return operand.re if isinstance(operand, Complex) else operand


@pointwise.attach(ops.IMAG)
def imag(instruction: Instruction, operand: Value) -> Value:
    if isinstance(operand, Complex):
        return operand.im
    return const(0, register_dtype(element_type_of(instruction)))


@pointwise.attach(ops.IS_FINITE)
def is_finite(instruction: Instruction, operand: Value) -> Value:
    return mathematics.is_finite(operand, register_dtype(element_type_of(instruction)))


@pointwise.attach(ops.POPULATION_COUNT)
def population_count(instruction: Instruction, operand: Value) -> Value:
    bits, dtype, back = _bits(instruction, operand)
    return reinterpret(back, mathematics.population_count(bits, dtype))


@pointwise.attach(ops.CLZ)
def clz(instruction: Instruction, operand: Value) -> Value:
    bits, dtype, back = _bits(instruction, operand)
    unused = max(8 - element_type_of(instruction).bits, 0)
    count = mathematics.clz(bits, dtype) - const(unused, dtype)
    return reinterpret(back, count)


def _bits(instruction: Instruction, operand: Expr) -> tuple[Expr, str, str]:
    """An integer's bits as an unsigned register, that register's type, and the integer's own."""
    element_type = element_type_of(instruction)
    dtype = unsigned(element_type)
    bits = low_bits(reinterpret(dtype, operand), element_type)
    return bits, dtype, register_dtype(element_type)
