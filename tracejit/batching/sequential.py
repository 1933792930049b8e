"""The rule of last resort: the op is applied to one element of the batch after the other."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.batching.batch import Batched, batched_shape, uniform
from tracejit.graph import Computation, Instruction
from tracejit.ops.comparison import lt
from tracejit.ops.constants import constant, elements_of, parameter, tuple_
from tracejit.ops.control import while_
from tracejit.ops.elementwise import add
from tracejit.ops.layout import dynamic_slice, dynamic_update_slice, full, reshape
from tracejit.ops.tokens import after_all
from tracejit.shapes import AnyShape, ElementType, Shape, TupleShape
from tracejit.traversal import rebuild, unreached


def one_by_one(instruction: Instruction, operands: Sequence[Batched], size: int) -> Instruction:
    """The instruction for each element of the batch, in a loop; its results stacked."""
    results = batched_shape(instruction.shape, uniform(instruction.shape, True), size)
    carried = [constant(0, ElementType.S32), _zeros(results), *(o.value for o in operands)]
    state = parameter(0, TupleShape(tuple(value.shape for value in carried)))
    number, made, *values = elements_of(state)
    condition = Computation(
        "more_of_the_batch", (state,), lt(number, constant(size, ElementType.S32))
    )
    one = rebuild(
        instruction,
        [_element(v, o.flag, number) for v, o in zip(values, operands, strict=True)],
    )
    following = add(number, constant(1, ElementType.S32))
    root = tuple_([following, _with_element(made, one, number), *values])
    effects = unreached(root, [one] if one.has_effect else [])
    body = Computation(f"{instruction.op.function}_of_one", (state,), root, effects)
    return elements_of(while_(condition, body, tuple_(carried)))[1]


def _zeros(shape: AnyShape) -> Instruction:
    if isinstance(shape, TupleShape):
        return tuple_([_zeros(element) for element in shape.elements])
    return full(shape, 0) if isinstance(shape, Shape) else after_all([])


def _starts(number: Instruction, rank: int) -> list[Instruction]:
    return [number] + [constant(0, ElementType.S32)] * (rank - 1)


def _element(value: Instruction, flag: object, number: Instruction) -> Instruction:
    if isinstance(flag, tuple):
        parts = zip(elements_of(value), flag, strict=True)
        return tuple_([_element(element, part, number) for element, part in parts])
    if not flag:
        return value
    sizes = value.array_shape.dimensions
    slice_ = dynamic_slice(value, _starts(number, len(sizes)), (1, *sizes[1:]))
    return reshape(slice_, sizes[1:])


def _with_element(whole: Instruction, one: Instruction, number: Instruction) -> Instruction:
    if isinstance(one.shape, TupleShape):
        parts = zip(elements_of(whole), elements_of(one), strict=True)
        return tuple_([_with_element(w, o, number) for w, o in parts])
    if not isinstance(one.shape, Shape):
        # A token: each element of the batch comes after the one before.
        return one
    sizes = one.array_shape.dimensions
    row = reshape(one, (1, *sizes))
    return dynamic_update_slice(whole, row, _starts(number, len(sizes) + 1))
