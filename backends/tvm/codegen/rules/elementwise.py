"""Elementwise ops of two and three operands, on register values."""

from __future__ import annotations

from collections.abc import Callable

from tracejit.backends.tvm.analysis.element_rules import Value, pointwise
from tracejit.backends.tvm.ir import complex_mathematics, mathematics
from tracejit.backends.tvm.ir.complex import Complex
from tracejit.backends.tvm.ir.dtypes import register_dtype
from tracejit.backends.tvm.ir.tir import Expr, const, reinterpret, tirx
from tracejit.graph import Instruction, Op
from tracejit.ops import elementwise as ops
from tracejit.ops.constants import CONSTANT
from tracejit.ops.layout import BROADCAST_IN_DIM
from tracejit.shapes import ElementType

# Quotients by constants are products of this type; LLVM handles the other types.
_NARROW = (ElementType.S8, ElementType.U8, ElementType.S16)
_PRODUCT = "int16"


def element_type_of(instruction: Instruction) -> ElementType:
    """The element type of the first operand, which decides what an op does."""
    return instruction.operands[0].array_shape.element_type


def unsigned(element_type: ElementType) -> str:
    """The unsigned register type of an integer's width, of eight bits for narrower ones."""
    return f"uint{max(element_type.bits, 8)}"


def _attach(
    op: Op,
    *,
    real: Callable[[Expr, Expr], Expr],
    pred: Callable[[Expr, Expr], Expr] | None = None,
    complex: Callable[[Complex, Complex, str], Value] | None = None,
) -> None:
    """A rule that computes alike on integers and floats, and otherwise on pred and complex."""

    @pointwise.attach(op)
    def rule(instruction: Instruction, lhs: Value, rhs: Value) -> Value:
        element_type = element_type_of(instruction)
        if element_type is ElementType.PRED and pred is not None:
            return pred(lhs, rhs)
        if element_type.is_complex and complex is not None:
            return complex(lhs, rhs, register_dtype(element_type.real))
        return real(lhs, rhs)


def _xor_pred(lhs: Expr, rhs: Expr) -> Expr:
    return tirx.Select(lhs, tirx.Not(rhs), rhs)


_attach(
    ops.ADD,
    real=lambda x, y: x + y,
    pred=tirx.Or,
    complex=complex_mathematics.add,
)
_attach(
    ops.SUB,
    real=lambda x, y: x - y,
    pred=_xor_pred,
    complex=complex_mathematics.sub,
)
_attach(
    ops.MUL,
    real=lambda x, y: x * y,
    pred=tirx.And,
    complex=complex_mathematics.mul,
)
_attach(ops.AND, real=lambda x, y: x & y, pred=tirx.And)
_attach(ops.OR, real=lambda x, y: x | y, pred=tirx.Or)
_attach(ops.XOR, real=lambda x, y: x ^ y, pred=_xor_pred)


@pointwise.attach(ops.MAX)
def max_(instruction: Instruction, lhs: Value, rhs: Value) -> Value:
    return maximum(element_type_of(instruction), lhs, rhs)


@pointwise.attach(ops.MIN)
def min_(instruction: Instruction, lhs: Value, rhs: Value) -> Value:
    return minimum(element_type_of(instruction), lhs, rhs)


def maximum(element_type: ElementType, lhs: Value, rhs: Value) -> Value:
    """The greater; NaN if either is; +0 is greater than -0."""
    if element_type is ElementType.PRED:
        return tirx.Or(lhs, rhs)
    if element_type.is_floating:
        return mathematics.max(lhs, rhs, register_dtype(element_type))
    if element_type.is_complex:
        return _chosen(_before(rhs, lhs), lhs, rhs)
    return tirx.max(lhs, rhs)


def minimum(element_type: ElementType, lhs: Value, rhs: Value) -> Value:
    """The less; NaN if either is; -0 is less than +0."""
    if element_type is ElementType.PRED:
        return tirx.And(lhs, rhs)
    if element_type.is_floating:
        return mathematics.min(lhs, rhs, register_dtype(element_type))
    if element_type.is_complex:
        return _chosen(_before(lhs, rhs), lhs, rhs)
    return tirx.min(lhs, rhs)


def _before(lhs: Complex, rhs: Complex) -> Expr:
    """Whether lhs comes first or with rhs: by real parts, then by imaginary parts."""
    return tirx.Or(lhs.re < rhs.re, tirx.And(lhs.re == rhs.re, lhs.im <= rhs.im))


def _chosen(first: Expr, lhs: Complex, rhs: Complex) -> Complex:
    """lhs if ``first``, else rhs; the one with a NaN, whatever the order."""
    left_nan, right_nan = (tirx.Or(is_nan(v.re), is_nan(v.im)) for v in (lhs, rhs))
    takes = tirx.Or(left_nan, tirx.And(tirx.Not(right_nan), first))
    return Complex(tirx.Select(takes, lhs.re, rhs.re), tirx.Select(takes, lhs.im, rhs.im))


def not_equal(lhs: Expr, rhs: Expr) -> Expr:
    """lhs != rhs, true if either is NaN. TVM's own comparison, and the negated one, are ordered."""
    equal = tirx.Select(lhs == rhs, const(1, "uint8"), const(0, "uint8"))
    return equal == const(0, "uint8")


def is_nan(value: Expr) -> Expr:
    return not_equal(value, value)


@pointwise.attach(ops.CLAMP)
def clamp(instruction: Instruction, low: Value, operand: Value, high: Value) -> Value:
    element_type = instruction.array_shape.element_type
    return minimum(element_type, maximum(element_type, operand, low), high)


@pointwise.attach(ops.SELECT)
def select(instruction: Instruction, pred: Value, on_true: Value, on_false: Value) -> Value:
    if isinstance(on_true, Complex):
        return Complex(
            tirx.Select(pred, on_true.re, on_false.re), tirx.Select(pred, on_true.im, on_false.im)
        )
    return tirx.Select(pred, on_true, on_false)


@pointwise.attach(ops.COMPLEX)
def complex_(instruction: Instruction, lhs: Value, rhs: Value) -> Value:
    return Complex(lhs, rhs)


@pointwise.attach(ops.DIV)
def div(instruction: Instruction, lhs: Value, rhs: Value) -> Value:
    """Integers towards zero; by zero all bits are set, and the overflow of min / -1 wraps."""
    element_type = element_type_of(instruction)
    if element_type.is_complex:
        return complex_mathematics.div(lhs, rhs, register_dtype(element_type.real))
    known = _known_quotient(element_type, lhs, instruction.operands[1])
    if known is not None:
        return known
    # Not TVM's own division, which rejects a divisor that is known to be zero.
    return mathematics.div(lhs, rhs, register_dtype(element_type))


def _known_quotient(element_type: ElementType, lhs: Expr, by: Instruction) -> Expr | None:
    """The quotient by a constant from 2 on, as a product, for types with fast vector products."""
    if element_type not in _NARROW or by.op is not BROADCAST_IN_DIM:
        return None
    (scalar,) = by.operands
    if scalar.op is not CONSTANT or scalar.array_shape.rank or scalar.attributes["literal"] < 2:
        return None
    divisor = int(scalar.attributes["literal"])
    shift = (divisor - 1).bit_length() - 1
    # The bits of an unsigned number with the first one set.
    multiplier = -(-(1 << (16 + shift)) // divisor) - (1 << 16)
    factors = const(multiplier, _PRODUCT), const(shift, _PRODUCT)
    made = mathematics.known_quotient(tirx.Cast(_PRODUCT, lhs), *factors, dtype=_PRODUCT)
    return tirx.Cast(register_dtype(element_type), made)


@pointwise.attach(ops.REM)
def rem(instruction: Instruction, lhs: Value, rhs: Value) -> Value:
    """The remainder with the sign of lhs; of integers by zero, lhs."""
    element_type = element_type_of(instruction)
    known = _known_quotient(element_type, lhs, instruction.operands[1])
    if known is not None:
        return lhs - known * rhs
    return mathematics.rem(lhs, rhs, register_dtype(element_type))


@pointwise.attach(ops.POW)
def pow_(instruction: Instruction, lhs: Value, rhs: Value) -> Value:
    element_type = element_type_of(instruction)
    if element_type.is_complex:
        return complex_mathematics.pow(lhs, rhs, register_dtype(element_type.real))
    return mathematics.pow(lhs, rhs, register_dtype(element_type))


@pointwise.attach(ops.ATAN2)
def atan2(instruction: Instruction, lhs: Value, rhs: Value) -> Value:
    element_type = element_type_of(instruction)
    if element_type.is_complex:
        return complex_mathematics.atan2(lhs, rhs, register_dtype(element_type.real))
    return mathematics.atan2(lhs, rhs, register_dtype(element_type))


def _bits(value: Expr, element_type: ElementType) -> Expr:
    """An integer's bits as an unsigned register, in which all others are clear."""
    return low_bits(reinterpret(unsigned(element_type), value), element_type)


def low_bits(bits: Expr, element_type: ElementType) -> Expr:
    """An unsigned register of the type's width, cleared of the bits that its elements lack."""
    width = element_type.bits
    return bits & const((1 << width) - 1, "uint8") if width < 8 else bits


def _shifted(
    instruction: Instruction, lhs: Expr, rhs: Expr, shift: Callable[[Expr, Expr], Expr]
) -> Expr:
    """The bits shifted; none are left where rhs, as an unsigned number, reaches the width."""
    element_type = element_type_of(instruction)
    dtype = unsigned(element_type)
    amount = _bits(rhs, element_type)
    width = const(element_type.bits, dtype)
    inside = amount < width
    safe = tirx.Select(inside, amount, const(0, dtype))
    made = tirx.Select(inside, shift(_bits(lhs, element_type), safe), const(0, dtype))
    return reinterpret(register_dtype(element_type), made)


@pointwise.attach(ops.SHIFT_LEFT)
def shift_left(instruction: Instruction, lhs: Value, rhs: Value) -> Value:
    return _shifted(instruction, lhs, rhs, lambda bits, amount: bits << amount)


@pointwise.attach(ops.SHIFT_RIGHT_LOGICAL)
def shift_right_logical(instruction: Instruction, lhs: Value, rhs: Value) -> Value:
    return _shifted(instruction, lhs, rhs, lambda bits, amount: bits >> amount)


@pointwise.attach(ops.SHIFT_RIGHT_ARITHMETIC)
def shift_right_arithmetic(instruction: Instruction, lhs: Value, rhs: Value) -> Value:
    """Shifted by the width - 1 at most: then every bit is the sign."""
    element_type = element_type_of(instruction)
    dtype = unsigned(element_type)
    amount = tirx.min(_bits(rhs, element_type), const(element_type.bits - 1, dtype))
    signed = dtype.replace("uint", "int")
    value = reinterpret(signed, lhs)
    if element_type.bits < 8 and not element_type.is_signed:
        unused = const(8 - element_type.bits, "int8")
        value = (value << unused) >> unused
    made = value >> reinterpret(signed, amount)
    return reinterpret(register_dtype(element_type), made)
