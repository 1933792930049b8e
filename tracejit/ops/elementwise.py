"""Elementwise ops of two and three operands, with XLA's strict broadcasting.

add(x, y)                               shapes must match, but for scalars and dimensions of size 1
add(x, v, broadcast_dimensions=(1,))    dimension 0 of v matches dimension 1 of x
clamp(low, x, high), select(pred, x, y)

Ops of one operand are in `elementwise_unary`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from tracejit.errors import AttributeValueError, ShapeError
from tracejit.graph import Instruction, Op, Trait
from tracejit.ops.base import (
    ALL,
    FLOATING,
    INEXACT,
    INTEGRAL,
    LOGICAL,
    NUMERIC,
    ORDERED,
    define,
    function_name,
    make,
    require_array,
    require_element_type,
    require_same_element_type,
)
from tracejit.ops.constants import elements_of, tuple_
from tracejit.ops.layout import broadcast_in_dim
from tracejit.shapes import AnyShape, ElementType, Shape, TupleShape

_MONOID = Trait.CHEAP | Trait.MONOID
_LATTICE = _MONOID | Trait.IDEMPOTENT


def binary(
    name: str,
    opcode: str,
    accepts: Collection[ElementType],
    result: Callable[[ElementType], ElementType] | None = None,
    traits: Trait = Trait.NONE,
) -> Op:
    """An op on two arrays of one shape and element type whose result has them too.

    ``result`` maps the operands' element type to the result's where it is another.
    """
    function = function_name(name)

    def shape_rule(lhs: AnyShape, rhs: AnyShape) -> Shape:
        left = require_array(function, "lhs", lhs)
        right = require_array(function, "rhs", rhs)
        require_same_element_type(function, lhs=left, rhs=right)
        require_element_type(function, "lhs", left, accepts)
        if left.dimensions != right.dimensions:
            raise ShapeError(f"{function}: shapes must be equal; lhs {left}, rhs {right}")
        element_type = left.element_type if result is None else result(left.element_type)
        return Shape(element_type, left.dimensions)

    shape_rule.__module__ = __name__
    return define(name, opcode, traits=traits)(shape_rule)


def broadcast_operands(
    function: str,
    lhs: Instruction,
    rhs: Instruction,
    broadcast_dimensions: Sequence[int] | None = None,
) -> tuple[Instruction, Instruction]:
    """Both operands brought to one shape by XLA's rules.

    Equal ranks: dimensions of size 1 stretch. Different ranks: the lower one must be a scalar, or
    ``broadcast_dimensions`` says, strictly increasing, which dimension of the higher one each of
    its dimensions matches; then dimensions of size 1 stretch as well.
    """
    left = require_array(function, "lhs", lhs.shape)
    right = require_array(function, "rhs", rhs.shape)
    if left.dimensions == right.dimensions and not broadcast_dimensions:
        return lhs, rhs
    low, high = (left, right) if left.rank <= right.rank else (right, left)
    if broadcast_dimensions is None or (low.rank == high.rank and not broadcast_dimensions):
        if low.rank not in (0, high.rank):
            raise ShapeError(
                f"{function}: operands of different ranks need broadcast_dimensions; "
                f"lhs {left}, rhs {right}"
            )
        mapping = tuple(range(low.rank))
    else:
        mapping = tuple(broadcast_dimensions)
    if len(mapping) != low.rank:
        raise AttributeValueError(
            f"{function}: broadcast_dimensions {mapping} must name one dimension for each of the "
            f"lower-rank operand's; lhs {left}, rhs {right}"
        )
    if list(mapping) != sorted(set(mapping)) or any(not 0 <= d < high.rank for d in mapping):
        raise AttributeValueError(
            f"{function}: broadcast_dimensions {mapping} must be strictly increasing and below "
            f"rank {high.rank}; lhs {left}, rhs {right}"
        )
    sizes = list(high.dimensions)
    for position, dimension in enumerate(mapping):
        size = low.dimensions[position]
        if size != sizes[dimension] and 1 not in (size, sizes[dimension]):
            i, j = (position, dimension) if low is left else (dimension, position)
            raise ShapeError(
                f"{function}: dimensions must be equal or 1; lhs {left} dimension {i} is "
                f"{left.dimensions[i]}, rhs {right} dimension {j} is {right.dimensions[j]}"
            )
        if sizes[dimension] == 1:
            sizes[dimension] = size
    low_wide, high_wide = (lhs, rhs) if low is left else (rhs, lhs)
    low_wide = broadcast_in_dim(low_wide, sizes, mapping)
    high_wide = broadcast_in_dim(high_wide, sizes, range(high.rank))
    return (low_wide, high_wide) if low is left else (high_wide, low_wide)


def _binary(
    op: Op, lhs: Instruction, rhs: Instruction, broadcast_dimensions: Sequence[int] | None
) -> Instruction:
    left, right = broadcast_operands(op.function, lhs, rhs, broadcast_dimensions)
    return make(op, left, right)


ADD = binary("Add", "add", ALL, traits=_MONOID)


def add(
    lhs: Instruction, rhs: Instruction, broadcast_dimensions: Sequence[int] | None = None
) -> Instruction:
    """lhs + rhs, wrapping for integers; on pred, the logical or (XLA: Add)."""
    return _binary(ADD, lhs, rhs, broadcast_dimensions)


AND = binary("And", "and", LOGICAL, traits=_LATTICE)


def and_(
    lhs: Instruction, rhs: Instruction, broadcast_dimensions: Sequence[int] | None = None
) -> Instruction:
    """lhs & rhs, bit by bit; on pred, the logical and (XLA: And)."""
    return _binary(AND, lhs, rhs, broadcast_dimensions)


ATAN2 = binary("Atan2", "atan2", INEXACT, traits=Trait.TRANSCENDENTAL)


def atan2(
    lhs: Instruction, rhs: Instruction, broadcast_dimensions: Sequence[int] | None = None
) -> Instruction:
    """The angle of the point (rhs, lhs), in (-π, π]; the principal arctan(lhs / rhs) for complex
    operands (XLA: Atan2).
    """
    return _binary(ATAN2, lhs, rhs, broadcast_dimensions)


def _complex_of(element_type: ElementType) -> ElementType:
    return ElementType.C64 if element_type is ElementType.F32 else ElementType.C128


COMPLEX = binary("Complex", "complex", {ElementType.F32, ElementType.F64}, _complex_of, Trait.CHEAP)


def complex(
    lhs: Instruction, rhs: Instruction, broadcast_dimensions: Sequence[int] | None = None
) -> Instruction:
    """lhs + i·rhs: c64 from f32, c128 from f64 (XLA: Complex)."""
    return _binary(COMPLEX, lhs, rhs, broadcast_dimensions)


DIV = binary("Div", "divide", NUMERIC)


def div(
    lhs: Instruction, rhs: Instruction, broadcast_dimensions: Sequence[int] | None = None
) -> Instruction:
    """lhs / rhs; integers round towards zero (XLA: Div).

    Integer x / 0 is -1 (all bits set), and the most negative integer / -1 is itself, as XLA has
    them on the CPU.
    """
    return _binary(DIV, lhs, rhs, broadcast_dimensions)


MAX = binary("Max", "maximum", ALL, traits=_LATTICE)


def max(
    lhs: Instruction, rhs: Instruction, broadcast_dimensions: Sequence[int] | None = None
) -> Instruction:
    """The larger of lhs and rhs, NaN if either is; complex numbers compare by real part, then
    imaginary part (XLA: Max, whose CPU backend takes lhs where the real parts are equal).

    Which of two zeros of different signs is the larger, and which part of a complex result is NaN,
    is open.
    """
    return _binary(MAX, lhs, rhs, broadcast_dimensions)


MIN = binary("Min", "minimum", ALL, traits=_LATTICE)


def min(
    lhs: Instruction, rhs: Instruction, broadcast_dimensions: Sequence[int] | None = None
) -> Instruction:
    """The smaller of lhs and rhs, NaN if either is; complex numbers compare by real part, then
    imaginary part (XLA: Min, whose CPU backend takes lhs where the real parts are equal).
    """
    return _binary(MIN, lhs, rhs, broadcast_dimensions)


MUL = binary("Mul", "multiply", ALL, traits=_MONOID)


def mul(
    lhs: Instruction, rhs: Instruction, broadcast_dimensions: Sequence[int] | None = None
) -> Instruction:
    """lhs · rhs, wrapping for integers; on pred, the logical and (XLA: Mul)."""
    return _binary(MUL, lhs, rhs, broadcast_dimensions)


OR = binary("Or", "or", LOGICAL, traits=_LATTICE)


def or_(
    lhs: Instruction, rhs: Instruction, broadcast_dimensions: Sequence[int] | None = None
) -> Instruction:
    """lhs | rhs, bit by bit; on pred, the logical or (XLA: Or)."""
    return _binary(OR, lhs, rhs, broadcast_dimensions)


POW = binary("Pow", "power", NUMERIC, traits=Trait.TRANSCENDENTAL)


def pow(
    lhs: Instruction, rhs: Instruction, broadcast_dimensions: Sequence[int] | None = None
) -> Instruction:
    """lhs to the power rhs (XLA: Pow).

    Integers wrap, whatever the exponent; XLA's CPU backend looks only at an exponent's lowest bits,
    as many as count the type's width. A negative exponent gives 1 / lhs**-rhs rounded to zero, and
    0 for a base of 0.
    """
    return _binary(POW, lhs, rhs, broadcast_dimensions)


REM = binary("Rem", "remainder", INTEGRAL | FLOATING)


def rem(
    lhs: Instruction, rhs: Instruction, broadcast_dimensions: Sequence[int] | None = None
) -> Instruction:
    """lhs - rhs·trunc(lhs / rhs): the sign of lhs, smaller than rhs in magnitude (XLA: Rem).

    Integer rem(x, 0) is x, and rem(most negative integer, -1) is 0, as XLA has them on the CPU.
    """
    return _binary(REM, lhs, rhs, broadcast_dimensions)


SHIFT_LEFT = binary("ShiftLeft", "shift-left", INTEGRAL, traits=Trait.CHEAP)


def shift_left(
    lhs: Instruction, rhs: Instruction, broadcast_dimensions: Sequence[int] | None = None
) -> Instruction:
    """lhs shifted left by rhs bits, filled with zeros; 0 where rhs is negative or at least the
    width (XLA: ShiftLeft).
    """
    return _binary(SHIFT_LEFT, lhs, rhs, broadcast_dimensions)


SHIFT_RIGHT_ARITHMETIC = binary(
    "ShiftRightArithmetic", "shift-right-arithmetic", INTEGRAL, traits=Trait.CHEAP
)


def shift_right_arithmetic(
    lhs: Instruction, rhs: Instruction, broadcast_dimensions: Sequence[int] | None = None
) -> Instruction:
    """lhs shifted right by rhs bits, filled with its highest bit; nothing but that bit where rhs is
    negative or at least the width (XLA: ShiftRightArithmetic).
    """
    return _binary(SHIFT_RIGHT_ARITHMETIC, lhs, rhs, broadcast_dimensions)


SHIFT_RIGHT_LOGICAL = binary(
    "ShiftRightLogical", "shift-right-logical", INTEGRAL, traits=Trait.CHEAP
)


def shift_right_logical(
    lhs: Instruction, rhs: Instruction, broadcast_dimensions: Sequence[int] | None = None
) -> Instruction:
    """lhs shifted right by rhs bits, filled with zeros; 0 where rhs is negative or at least the
    width (XLA: ShiftRightLogical).
    """
    return _binary(SHIFT_RIGHT_LOGICAL, lhs, rhs, broadcast_dimensions)


SUB = binary("Sub", "subtract", NUMERIC, traits=Trait.CHEAP)


def sub(
    lhs: Instruction, rhs: Instruction, broadcast_dimensions: Sequence[int] | None = None
) -> Instruction:
    """lhs - rhs, wrapping for integers (XLA: Sub)."""
    return _binary(SUB, lhs, rhs, broadcast_dimensions)


XOR = binary("Xor", "xor", LOGICAL, traits=_MONOID)


def xor(
    lhs: Instruction, rhs: Instruction, broadcast_dimensions: Sequence[int] | None = None
) -> Instruction:
    """lhs ^ rhs, bit by bit; on pred, whether they differ (XLA: Xor)."""
    return _binary(XOR, lhs, rhs, broadcast_dimensions)


@define("Clamp", "clamp", traits=Trait.CHEAP)
def CLAMP(min: AnyShape, operand: AnyShape, max: AnyShape) -> Shape:
    low = require_array("clamp", "min", min)
    shape = require_array("clamp", "operand", operand)
    high = require_array("clamp", "max", max)
    require_same_element_type("clamp", min=low, operand=shape, max=high)
    require_element_type("clamp", "operand", shape, ORDERED)
    for argument, bound in (("min", low), ("max", high)):
        if bound.dimensions not in ((), shape.dimensions):
            raise ShapeError(
                f"clamp: {argument} must be a scalar or have operand's dimensions; "
                f"{argument} {bound}, operand {shape}"
            )
    return Shape(shape.element_type, shape.dimensions)


def clamp(min: Instruction, operand: Instruction, max: Instruction) -> Instruction:
    """min(max(operand, min), max), NaN where any of them is (XLA: Clamp).

    The bounds have the operand's shape or are scalars. Raises `ShapeError` otherwise.
    """
    shape = require_array("clamp", "operand", operand.shape)
    return make(CLAMP, _spread(min, shape), operand, _spread(max, shape))


@define("Select", "select", traits=Trait.CHEAP)
def SELECT(pred: AnyShape, on_true: AnyShape, on_false: AnyShape) -> Shape:
    predicate = require_array("select", "pred", pred)
    first = require_array("select", "on_true", on_true)
    second = require_array("select", "on_false", on_false)
    require_element_type("select", "pred", predicate, {ElementType.PRED})
    require_same_element_type("select", on_true=first, on_false=second)
    if first.dimensions != second.dimensions:
        raise ShapeError(f"select: shapes must be equal; on_true {first}, on_false {second}")
    if predicate.dimensions not in ((), first.dimensions):
        raise ShapeError(
            f"select: pred must be a scalar or have the dimensions of on_true; "
            f"pred {predicate}, on_true {first}"
        )
    return Shape(first.element_type, first.dimensions)


def select(pred: Instruction, on_true: Instruction, on_false: Instruction) -> Instruction:
    """on_true where pred is true, on_false elsewhere (XLA: Select).

    ``pred`` has the shape of the others or is a scalar. With a scalar pred both may be tuples of
    one shape, nested ones too; the result is the tuple of the selected elements.
    """
    if isinstance(on_true.shape, TupleShape):
        if on_true.shape != on_false.shape:
            raise ShapeError(
                f"select: tuples must have one shape; on_true {on_true.shape}, "
                f"on_false {on_false.shape}"
            )
        predicate = require_array("select", "pred", pred.shape)
        if predicate.rank:
            raise ShapeError(
                f"select: between tuples pred must be a scalar; pred {predicate}, "
                f"on_true {on_true.shape}"
            )
        pairs = zip(elements_of(on_true), elements_of(on_false), strict=True)
        return tuple_([select(pred, first, second) for first, second in pairs])
    shape = require_array("select", "on_true", on_true.shape)
    return make(SELECT, _spread(pred, shape), on_true, on_false)


def _spread(operand: Instruction, shape: Shape) -> Instruction:
    """A scalar repeated to the dimensions of ``shape``; anything else as it is."""
    is_scalar = isinstance(operand.shape, Shape) and not operand.shape.rank
    return broadcast_in_dim(operand, shape.dimensions, ()) if is_scalar else operand
