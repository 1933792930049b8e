"""The scalar computations that reductions, windows, sorts and maps call, and what they must be.

scalar_computation("add", ElementType.F32)      (f32[], f32[]) -> f32[]
identity_value("max", ElementType.F32)          -inf
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit.errors import ArgumentError, ElementTypeError, ShapeError
from tracejit.graph import Computation, Instruction, Op
from tracejit.ops import comparison, elementwise
from tracejit.ops.base import require_array
from tracejit.ops.constants import parameter
from tracejit.shapes import AnyShape, ElementType, Shape, TupleShape

_BUILDERS: dict[str, Callable[[Instruction, Instruction], Instruction]] = {
    "add": elementwise.add,
    "and": elementwise.and_,
    "div": elementwise.div,
    "eq": comparison.eq,
    "ge": comparison.ge,
    "gt": comparison.gt,
    "le": comparison.le,
    "lt": comparison.lt,
    "max": elementwise.max,
    "min": elementwise.min,
    "mul": elementwise.mul,
    "ne": comparison.ne,
    "or": elementwise.or_,
    "sub": elementwise.sub,
    "xor": elementwise.xor,
}


@functools.cache
def scalar_computation(name: str, element_type: ElementType) -> Computation:
    """The computation of two scalars that applies one binary op or comparison.

    ``name`` is add, sub, mul, div, max, min, and, or, xor, eq, ne, ge, gt, le or lt. The same
    arguments give the same object. Raises `ArgumentError` for another name, `ElementTypeError`
    where the op does not take the element type.
    """
    if name not in _BUILDERS:
        raise ArgumentError(f"scalar_computation: {name!r} is none of {', '.join(_BUILDERS)}")
    lhs, rhs = (parameter(i, Shape(element_type)) for i in range(2))
    return Computation(f"{name}_{element_type}", (lhs, rhs), _BUILDERS[name](lhs, rhs))


def binary_op(computation: Computation) -> Op | None:
    """The op that a computation of two scalars applies to its parameters, in order, if it is one.

    Commutative ops are recognised with their operands swapped as well.
    """
    root = computation.root
    if len(computation.parameters) != 2 or len(root.operands) != 2 or root.computations:
        return None
    if root.operands == computation.parameters:
        return root.op
    swapped = root.operands == computation.parameters[::-1]
    return root.op if swapped and root.op.is_monoid else None


def monoid(computation: Computation) -> Op | None:
    """The one op of a computation that combines two values in any order and grouping, else None.

    A reduction by one of them, or one that finds where an extreme is, may combine its elements in
    any order. Every other computation is applied from the left: to the initial value and the first
    element in row-major order, to that and the second, and so on.
    """
    op = binary_op(computation)
    return op if op is not None and op.is_monoid else None


def highest(element_type: ElementType) -> Any:
    """The greatest value of an element type: infinity where there is one."""
    dtype = element_type.dtype
    if element_type is ElementType.PRED:
        return np.bool_(True)
    if element_type.is_integral:
        return dtype.type(2 ** (element_type.bits - element_type.is_signed) - 1)
    if element_type.is_complex or element_type.float_format.has_infinity:
        return dtype.type(np.inf)
    return dtype.type(element_type.float_format.highest)


def lowest(element_type: ElementType) -> Any:
    """The least value of an element type: minus infinity where there is one."""
    if element_type is ElementType.PRED:
        return np.bool_(False)
    if element_type.is_integral:
        return element_type.dtype.type(-(2 ** (element_type.bits - 1)) * element_type.is_signed)
    if element_type.is_complex or element_type.float_format.has_infinity:
        return -element_type.dtype.type(np.inf)
    return element_type.dtype.type(element_type.float_format.lowest)


def identity_value(name: str, element_type: ElementType) -> Any:
    """The value that leaves every other unchanged under add, mul, max, min, and, or, xor."""
    if name == "max":
        return lowest(element_type)
    if name == "min":
        return highest(element_type)
    if name == "and":
        return True if element_type is ElementType.PRED else np.array(-1).astype(element_type.dtype)
    return {"add": 0, "mul": 1, "or": 0, "xor": 0}[name]


def operand_list(operands: Instruction | Sequence[Instruction]) -> tuple[Instruction, ...]:
    """One operand or several, as a tuple."""
    return (operands,) if isinstance(operands, Instruction) else tuple(operands)


def collate(shapes: Sequence[Shape]) -> AnyShape:
    """The shape of a variadic result: the one shape, or the tuple of all."""
    return shapes[0] if len(shapes) == 1 else TupleShape(tuple(shapes))


def require_reducer_operands(function: str, shapes: Sequence[AnyShape]) -> list[Shape]:
    """The arrays among ``operands..., init_values...``, whose number, dimensions and types fit."""
    if len(shapes) % 2 or not shapes:
        raise ShapeError(
            f"{function}: needs at least one operand and as many init_values; "
            f"got {len(shapes)} arrays in all"
        )
    count = len(shapes) // 2
    operands = [require_array(function, f"operand {i}", s) for i, s in enumerate(shapes[:count])]
    for i, operand in enumerate(operands):
        if operand.dimensions != operands[0].dimensions:
            raise ShapeError(
                f"{function}: all operands must have the same dimensions; operand 0 is "
                f"{operands[0]}, operand {i} is {operand}"
            )
        init = require_array(function, f"init_value {i}", shapes[count + i])
        if init.rank:
            raise ShapeError(f"{function}: init_value {i} {init} must be a scalar")
        if init.element_type is not operand.element_type:
            raise ElementTypeError(
                f"{function}: init_value {i} {init} must have the element type of operand {operand}"
            )
    return operands


def require_computation(
    function: str,
    argument: str,
    computation: Computation,
    parameters: Sequence[AnyShape],
    result: AnyShape,
) -> None:
    """Raises unless ``computation`` takes ``parameters`` and returns ``result``."""
    if not isinstance(computation, Computation):
        raise ArgumentError(
            f"{function}: {argument} must be a Computation, not {type(computation).__name__}"
        )
    taken = tuple(p.shape for p in computation.parameters)
    if taken != tuple(parameters) or computation.root.shape != result:
        wanted = ", ".join(map(str, parameters))
        given = ", ".join(map(str, taken))
        raise ShapeError(
            f"{function}: {argument} must be a computation ({wanted}) -> {result}; "
            f"{computation.name} is ({given}) -> {computation.root.shape}"
        )


def require_reducer(function: str, computation: Computation, operands: Sequence[Shape]) -> None:
    """Raises unless ``computation`` combines two scalars, or tuples of scalars, of the operands."""
    scalars = [Shape(s.element_type) for s in operands]
    require_computation(function, "computation", computation, scalars * 2, collate(scalars))
