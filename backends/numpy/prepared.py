"""Instructions as functions of their operands' values, for graphs that are evaluated often.

add = prepared(instruction)         add(x, y)

What the attributes say is worked out once, and the most frequent ops of element types that NumPy
computes with have shorter functions than their rules.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np

from tracejit.backends.numpy.interpreter import Value, evaluate_instruction, interpret
from tracejit.backends.numpy.precision import ARITHMETIC, Rounded
from tracejit.backends.numpy.ufuncs import reducing_ufunc
from tracejit.graph import Instruction, Op
from tracejit.ops.contraction import DOT_GENERAL
from tracejit.ops.layout import BROADCAST_IN_DIM
from tracejit.ops.reduction import REDUCE
from tracejit.shapes import Shape

Function = Callable[..., Value]


def prepared(instruction: Instruction) -> Function:
    """A function of the operands' values that gives the instruction's; scalars may be NumPy's.

    Floating-point errors are the caller's to ignore.
    """
    shapes = [operand.shape for operand in instruction.operands]
    rule = interpret.get(instruction.op)
    if rule is None or not all(map(_is_static, (*shapes, instruction.shape))):
        return functools.partial(_evaluated, instruction)
    element_types = {i.array_shape.element_type for i in (*instruction.operands, instruction)}
    if isinstance(rule, Rounded) and len(element_types) == 1 and element_types <= {*rule.exact}:
        return rule.function
    if element_types <= {*ARITHMETIC} and instruction.op in _SHORT:
        short = _SHORT[instruction.op](instruction)
        if short is not None:
            return short
    return functools.partial(rule, instruction)


def _is_static(shape: object) -> bool:
    return isinstance(shape, Shape) and not shape.is_dynamic


def _evaluated(instruction: Instruction, *operands: Value) -> Value:
    return evaluate_instruction(instruction, operands)


def _broadcast(instruction: Instruction) -> Function | None:
    """A view with steps of zero, made without NumPy's own checks."""
    shape, given = instruction.array_shape, instruction.operands[0].array_shape
    if not shape.size:
        return None
    steps = [0] * shape.rank
    apart = shape.dtype.itemsize
    for dimension, size in reversed(
        [*zip(_dimensions(instruction), given.dimensions, strict=True)]
    ):
        steps[dimension] = apart if size > 1 else 0
        apart *= size

    def broadcast(operand: np.ndarray) -> Value:
        whole = np.ascontiguousarray(operand)
        return np.ndarray(shape.dimensions, operand.dtype, whole, 0, tuple(steps))

    return broadcast


def _dimensions(instruction: Instruction) -> Sequence[int]:
    dimensions: Sequence[int] = instruction.attributes["dimensions"]
    return dimensions


def _reduce(instruction: Instruction) -> Function | None:
    ufunc = reducing_ufunc(instruction.attributes["to_apply"])
    if ufunc is None or len(instruction.operands) != 2:
        return None
    dimensions, combine = _dimensions(instruction), ufunc.reduce

    def reduce(operand: np.ndarray, init: np.ndarray) -> Value:
        return combine(operand, dimensions, initial=init[()])

    return reduce


def _dot_general(instruction: Instruction) -> Function | None:
    """One product of matrices; batches are the rule's."""
    attributes = instruction.attributes
    lhs, rhs = (operand.array_shape.dimensions for operand in instruction.operands)
    if attributes["lhs_batch_dims"]:
        return None
    left, right = attributes["lhs_contracting_dims"], attributes["rhs_contracting_dims"]
    summed = math.prod(lhs[d] for d in left)
    left_order = (*[d for d in range(len(lhs)) if d not in left], *left)
    right_order = (*right, *[d for d in range(len(rhs)) if d not in right])
    rows, columns = math.prod(lhs) // max(summed, 1), math.prod(rhs) // max(summed, 1)
    if not summed:
        return None
    dimensions = instruction.array_shape.dimensions

    def dot_general(x: np.ndarray, y: np.ndarray) -> Value:
        product = np.matmul(
            x.transpose(left_order).reshape(rows, summed),
            y.transpose(right_order).reshape(summed, columns),
        )
        return product.reshape(dimensions)

    return dot_general


_SHORT: dict[Op, Callable[[Instruction], Function | None]] = {
    BROADCAST_IN_DIM: _broadcast,
    DOT_GENERAL: _dot_general,
    REDUCE: _reduce,
}
