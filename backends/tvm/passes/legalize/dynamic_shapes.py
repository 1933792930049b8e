"""Represents a dynamic array by a pair: an array of its bounds, and its sizes, s32[rank].

    expanded(instruction, operands)      the op on such pairs

Common ops (elementwise, broadcasts, reductions) are expanded to ops on the whole array, with
elements beyond the sizes masked where they matter. The interpreter runs the others, one op at a
time.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.graph import Computation, Instruction, Module
from tracejit.hlo import to_text
from tracejit.ops.bounds import flags_of, passes_on
from tracejit.ops.comparison import lt
from tracejit.ops.computations import identity_value, monoid
from tracejit.ops.constants import constant, get_tuple_element, iota, parameter, tuple_
from tracejit.ops.custom import DYNAMIC_TARGET, custom_call
from tracejit.ops.dynamic_sizes import GET_DIMENSION_SIZE, SET_DIMENSION_SIZE
from tracejit.ops.elementwise import clamp, min, select
from tracejit.ops.layout import (
    BROADCAST_IN_DIM,
    TRANSPOSE,
    broadcast_in_dim,
    concatenate,
    reshape,
    slice_in_dim,
)
from tracejit.ops.lifting import is_elementwise
from tracejit.ops.reduction import REDUCE
from tracejit.shapes import AnyShape, ElementType, Shape, TupleShape

Operands = Sequence[Instruction]
S32 = ElementType.S32


def pair_shape(shape: Shape) -> TupleShape:
    """The shape of the pair for a dynamic array."""
    return TupleShape((shape.with_dynamic(()), Shape(S32, (shape.rank,))))


def has_dynamic(shape: AnyShape) -> bool:
    """Whether a shape is that of a dynamic array, or of a tuple that contains one."""
    if isinstance(shape, TupleShape):
        return any(map(has_dynamic, shape.elements))
    return isinstance(shape, Shape) and shape.is_dynamic


def is_expanded(instruction: Instruction) -> bool:
    """Whether an op uses the sizes of its operands, or returns a dynamic array."""
    if instruction.op.family == "dynamic_sizes":
        return True
    if passes_on(instruction.op):
        return False
    shapes = (instruction.shape, *(operand.shape for operand in instruction.operands))
    return any(map(has_dynamic, shapes))


def expanded(instruction: Instruction, operands: Operands, plain: AnyShape) -> Instruction:
    """The op on arrays and pairs; ``plain`` is its result's shape with pairs in it."""
    op, shape = instruction.op, instruction.shape
    old = [o.shape for o in instruction.operands]
    if op is GET_DIMENSION_SIZE:
        (dimension,) = instruction.attributes["dimensions"]
        size: Instruction = _sizes(old[0], operands[0])[dimension]
        return size
    if op is SET_DIMENSION_SIZE:
        return _set_dimension_size(instruction, operands)
    if isinstance(shape, Shape):
        if is_elementwise(op) and shape.rank:
            return _elementwise(instruction, operands)
        if op in (BROADCAST_IN_DIM, TRANSPOSE):
            return _moved(instruction, operands)
        if op is REDUCE:
            return _reduce(instruction, operands)
    return _by_interpreter(instruction, operands, plain)


def _array(shape: AnyShape, value: Instruction) -> Instruction:
    return get_tuple_element(value, 0) if has_dynamic(shape) else value


def _sizes(shape: AnyShape, value: Instruction) -> list[Instruction]:
    """The sizes of an array's dimensions, s32[] each."""
    assert isinstance(shape, Shape)
    if not shape.is_dynamic:
        return [constant(size, S32) for size in shape.dimensions]
    every = get_tuple_element(value, 1)
    return [reshape(slice_in_dim(every, d, d + 1, 1, 0), ()) for d in range(shape.rank)]


def _pair(array: Instruction, sizes: Operands) -> Instruction:
    return tuple_([array, concatenate([reshape(size, (1,)) for size in sizes], 0)])


def _static(instruction: Instruction, operands: Operands) -> Instruction:
    """The op on the whole arrays."""
    attributes = dict(instruction.attributes)
    shape = instruction.array_shape.with_dynamic(())
    if "shape" in attributes:
        attributes["shape"] = shape
    return Instruction(instruction.op, tuple(operands), shape, attributes, instruction.source)


def _finished(instruction: Instruction, array: Instruction, sizes: Operands) -> Instruction:
    return _pair(array, sizes) if instruction.array_shape.is_dynamic else array


def _set_dimension_size(instruction: Instruction, operands: Operands) -> Instruction:
    (dimension,) = instruction.attributes["dimensions"]
    shape = instruction.operands[0].array_shape
    sizes = _sizes(shape, operands[0])
    limits = constant(0, S32), constant(shape.dimensions[dimension], S32)
    sizes[dimension] = clamp(limits[0], operands[1], limits[1])
    return _finished(instruction, _array(shape, operands[0]), sizes)


def _elementwise(instruction: Instruction, operands: Operands) -> Instruction:
    shape = instruction.array_shape
    pairs = list(zip(instruction.operands, operands, strict=True))
    arrays = [_array(old.shape, value) for old, value in pairs]
    sizes = [constant(size, S32) for size in shape.dimensions]
    for old, value in pairs:
        if old.array_shape.is_dynamic and old.array_shape.rank == shape.rank:
            sizes = [min(a, b) for a, b in zip(sizes, _sizes(old.shape, value), strict=True)]
    return _finished(instruction, _static(instruction, arrays), sizes)


def _moved(instruction: Instruction, operands: Operands) -> Instruction:
    shape, old = instruction.array_shape, instruction.operands[0].array_shape
    given = _sizes(old, operands[0])
    dimensions = instruction.attributes["dimensions"]
    sizes = [constant(size, S32) for size in shape.dimensions]
    for place, other in enumerate(dimensions):
        source, target = (other, place) if instruction.op is TRANSPOSE else (place, other)
        if flags_of(shape)[target]:
            sizes[target] = given[source]
    return _finished(instruction, _static(instruction, [_array(old, operands[0])]), sizes)


def _reduce(instruction: Instruction, operands: Operands) -> Instruction:
    count = len(operands) // 2
    reducer = instruction.attributes["to_apply"]
    op = monoid(reducer) if count == 1 else None
    old = [o.array_shape for o in instruction.operands]
    if op is None:
        return _by_interpreter(instruction, operands, _plain(instruction.array_shape))
    array = _array(old[0], operands[0])
    sizes = _sizes(old[0], operands[0])
    element_type = old[0].element_type
    fill = constant(identity_value(op.function, element_type), element_type)
    inside = _masked(array, fill, sizes, flags_of(old[0]), instruction.attributes["dimensions"])
    made = _static(instruction, [inside, operands[1]])
    left = [s for d, s in enumerate(sizes) if d not in instruction.attributes["dimensions"]]
    return _finished(instruction, made, left)


def _masked(
    array: Instruction,
    fill: Instruction,
    sizes: Operands,
    flags: Sequence[bool],
    dimensions: Sequence[int],
) -> Instruction:
    """``array`` with ``fill`` beyond the sizes of dynamic ``dimensions``."""
    whole = array.array_shape.dimensions
    filling = broadcast_in_dim(fill, whole, ())
    for dimension in dimensions:
        if flags[dimension]:
            place = iota(Shape(S32, whole), dimension)
            here = lt(place, broadcast_in_dim(sizes[dimension], whole, ()))
            array = select(here, array, filling)
    return array


def _plain(shape: Shape) -> AnyShape:
    return pair_shape(shape) if shape.is_dynamic else shape


def _by_interpreter(instruction: Instruction, operands: Operands, plain: AnyShape) -> Instruction:
    """A custom call whose configuration is the op, as a module of its own."""
    parameters = tuple(parameter(n, o.shape) for n, o in enumerate(instruction.operands))
    root = Instruction(
        instruction.op, parameters, instruction.shape, instruction.attributes, instruction.source
    )
    text = to_text(Module(instruction.op.function, Computation("op", parameters, root)))
    return custom_call(DYNAMIC_TARGET, operands, plain, text)
