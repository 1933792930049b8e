"""Computations of scalars applied to whole arrays, element by element.

lift(scalar_computation("add", F32), [x, y])        the same as add(x, y)
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.errors import UnsupportedError
from tracejit.graph import Computation, Instruction, Op
from tracejit.ops.base import make
from tracejit.ops.constants import CONSTANT, GET_TUPLE_ELEMENT, TUPLE, get_tuple_element, tuple_
from tracejit.ops.control import CALL
from tracejit.ops.element_types import BITCAST_CONVERT_TYPE
from tracejit.ops.layout import BROADCAST_IN_DIM, RESHAPE, broadcast_in_dim
from tracejit.shapes import Shape
from tracejit.traversal import instructions

_FAMILIES = {"comparison", "element_types", "elementwise", "elementwise_unary"}


def is_elementwise(op: Op) -> bool:
    """Whether each element of the op's result depends on one element of each operand."""
    return op.family in _FAMILIES and op is not BITCAST_CONVERT_TYPE


def keeps_scalar(instruction: Instruction) -> bool:
    """Whether the instruction does nothing but reshape a scalar to a scalar."""
    shape = instruction.shape
    return (
        instruction.op in (BROADCAST_IN_DIM, RESHAPE)
        and isinstance(shape, Shape)
        and shape.rank == instruction.operands[0].array_shape.rank == 0
    )


def lift(computation: Computation, operands: Sequence[Instruction]) -> Instruction:
    """A computation of scalars applied element by element to arrays of equal dimensions.

    The result, an array or a Tuple of arrays, is ordinary graph. Raises `UnsupportedError` when
    the computation holds an op that is not elementwise.
    """
    dimensions = operands[0].array_shape.dimensions
    lifted = dict(zip(computation.parameters, operands, strict=True))
    for instruction in instructions(computation):
        if instruction in lifted:
            continue
        op, inputs = instruction.op, [lifted[o] for o in instruction.operands]
        if op is CONSTANT:
            lifted[instruction] = broadcast_in_dim(instruction, dimensions, ())
        elif op is TUPLE:
            lifted[instruction] = tuple_(inputs)
        elif op is GET_TUPLE_ELEMENT:
            lifted[instruction] = get_tuple_element(inputs[0], instruction.attributes["index"])
        elif op is CALL:
            lifted[instruction] = lift(instruction.attributes["to_apply"], inputs)
        elif keeps_scalar(instruction):
            lifted[instruction] = inputs[0]
        elif is_elementwise(op):
            attributes = {
                name: value.with_dimensions(dimensions) if isinstance(value, Shape) else value
                for name, value in instruction.attributes.items()
            }
            lifted[instruction] = make(op, *inputs, **attributes)
        else:
            raise UnsupportedError(
                f"{op.function}: cannot be applied element by element, in computation "
                f"{computation.name}",
                instruction.source,
            )
    return lifted[computation.root]
