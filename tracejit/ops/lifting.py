"""Computations of scalars applied to whole arrays, element by element.

lift(scalar_computation("add", F32), [x, y])        the same as add(x, y)
applied_to_elements(computation, [x, y])            its results for any computation of scalars

A Conditional becomes a Select of both branches, and a nested Map what it applies. What has a loop
or arrays of its own is no longer elementwise and stays a Map.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.errors import UnsupportedError
from tracejit.graph import Computation, Instruction, Op
from tracejit.ops.base import make
from tracejit.ops.comparison import eq
from tracejit.ops.constants import (
    CONSTANT,
    GET_TUPLE_ELEMENT,
    PARAMETER,
    TUPLE,
    constant,
    elements_of,
    get_tuple_element,
    parameter,
    tuple_,
)
from tracejit.ops.control import CALL, CONDITIONAL, MAP, map_
from tracejit.ops.element_types import BITCAST_CONVERT_TYPE
from tracejit.ops.elementwise import select
from tracejit.ops.layout import BROADCAST_IN_DIM, RESHAPE, broadcast_in_dim
from tracejit.ops.reduction import REDUCE
from tracejit.shapes import AnyShape, ElementType, Shape, TupleShape
from tracejit.traversal import instructions

_STRUCTURE = {CONSTANT, GET_TUPLE_ELEMENT, PARAMETER, TUPLE}


def is_elementwise(op: Op) -> bool:
    """Whether each element of the op's result depends on one element of each operand."""
    return op.is_elementwise and op is not BITCAST_CONVERT_TYPE


def keeps_scalar(instruction: Instruction) -> bool:
    """Whether the instruction does nothing but reshape a scalar to a scalar."""
    shape = instruction.shape
    return (
        instruction.op in (BROADCAST_IN_DIM, RESHAPE)
        and isinstance(shape, Shape)
        and shape.rank == instruction.operands[0].array_shape.rank == 0
    )


def is_straight(computation: Computation) -> bool:
    """Whether a computation of scalars holds elementwise ops only, without calls."""
    return all(
        (i.op in _STRUCTURE or i.op.is_elementwise or keeps_scalar(i))
        and not (isinstance(i.shape, Shape) and i.shape.rank)
        for i in instructions(computation)
    )


def lift(computation: Computation, operands: Sequence[Instruction]) -> Instruction:
    """A computation of scalars applied element by element to arrays of equal dimensions.

    The result, an array or a Tuple of arrays, is ordinary graph. Raises `UnsupportedError` when
    the computation holds an op that is not elementwise.
    """
    return _lift(computation, operands, operands[0].array_shape.dimensions)


def straightened(computation: Computation) -> Computation | None:
    """The computation of elementwise ops alone, or None where that cannot be."""
    parameters = tuple(parameter(i, p.shape) for i, p in enumerate(computation.parameters))
    try:
        return Computation(computation.name, parameters, _lift(computation, parameters, ()))
    except UnsupportedError:
        return None


def applied_to_elements(
    computation: Computation, operands: Sequence[Instruction]
) -> tuple[Instruction, ...]:
    """The results of a computation of scalars, whatever it holds, for each element of arrays."""
    try:
        return elements_of(lift(computation, operands))
    except UnsupportedError:
        pass
    roots = elements_of(computation.root)
    if len(roots) == 1 and roots[0] is computation.root:
        return (map_(operands, computation),)
    parts = [
        Computation(f"{computation.name}_{number}", computation.parameters, root)
        for number, root in enumerate(roots)
    ]
    return tuple(map_(operands, part) for part in parts)


def _lift(
    computation: Computation, operands: Sequence[Instruction], dimensions: tuple[int, ...]
) -> Instruction:
    lifted = dict(zip(computation.parameters, operands, strict=True))
    for instruction in instructions(computation):
        if instruction in lifted:
            continue
        op, inputs = instruction.op, [lifted[o] for o in instruction.operands]
        if op is CONSTANT and not instruction.array_shape.rank:
            lifted[instruction] = _spread(instruction, dimensions)
        elif op is TUPLE:
            lifted[instruction] = tuple_(inputs)
        elif op is GET_TUPLE_ELEMENT:
            lifted[instruction] = get_tuple_element(inputs[0], instruction.attributes["index"])
        elif op is CALL or (op is MAP and not instruction.array_shape.rank):
            lifted[instruction] = _lift(instruction.attributes["to_apply"], inputs, dimensions)
        elif op is REDUCE and not instruction.operands[0].array_shape.rank:
            # Nothing is reduced: the initial values are combined with one element.
            half = len(inputs) // 2
            swapped = [*inputs[half:], *inputs[:half]]
            lifted[instruction] = _lift(instruction.attributes["to_apply"], swapped, dimensions)
        elif op is CONDITIONAL and not instruction.has_effect:
            branches = zip(instruction.computations, inputs[1:], strict=True)
            made = [_lift(branch, [given], dimensions) for branch, given in branches]
            lifted[instruction] = _chosen(inputs[0], made)
        elif keeps_scalar(instruction):
            lifted[instruction] = inputs[0]
        elif is_elementwise(op) or (op is BITCAST_CONVERT_TYPE and not dimensions):
            if any(o.array_shape.rank for o in instruction.operands):
                raise _unsupported(instruction, computation)
            attributes = {
                name: value.with_dimensions(dimensions) if isinstance(value, Shape) else value
                for name, value in instruction.attributes.items()
            }
            lifted[instruction] = make(op, *inputs, **attributes)
        else:
            raise _unsupported(instruction, computation)
    return lifted[computation.root]


def _unsupported(instruction: Instruction, computation: Computation) -> UnsupportedError:
    return UnsupportedError(
        f"{instruction.op.function}: cannot be applied element by element, in computation "
        f"{computation.name}",
        instruction.source,
    )


def _spread(scalar: Instruction, dimensions: tuple[int, ...]) -> Instruction:
    return broadcast_in_dim(scalar, dimensions, ()) if dimensions else scalar


def _chosen(selector: Instruction, results: Sequence[Instruction]) -> Instruction:
    """The result of the branch that each element of ``selector`` names, the last by default."""
    shape = selector.array_shape
    if shape.element_type is ElementType.PRED:
        return _select(selector, results[0], results[1])
    *others, chosen = results
    for number, result in enumerate(others):
        wanted = _spread(constant(number, ElementType.S32), shape.dimensions)
        chosen = _select(eq(selector, wanted), result, chosen)
    return chosen


def _select(predicate: Instruction, on_true: Instruction, on_false: Instruction) -> Instruction:
    shape: AnyShape = on_true.shape
    if isinstance(shape, TupleShape):
        pairs = zip(elements_of(on_true), elements_of(on_false), strict=True)
        return tuple_([_select(predicate, a, b) for a, b in pairs])
    return select(predicate, on_true, on_false)
