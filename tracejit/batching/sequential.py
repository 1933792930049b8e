"""The rule of last resort: the op is applied to one element of the batch after the other."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.batching.batch import Batched, batched_shape, uniform
from tracejit.graph import Instruction
from tracejit.ops.constants import constant, elements_of, tuple_
from tracejit.ops.layout import dynamic_slice, dynamic_update_slice, full, reshape
from tracejit.ops.loops import Turn, counted
from tracejit.ops.tokens import after_all
from tracejit.shapes import AnyShape, ElementType, Shape, TupleShape
from tracejit.traversal import rebuild


def one_by_one(instruction: Instruction, operands: Sequence[Batched], size: int) -> Instruction:
    """The instruction for each element of the batch, in a loop; its results stacked."""
    results = batched_shape(instruction.shape, uniform(instruction.shape, True), size)

    def of_one(number: Instruction, made: Instruction, *values: Instruction) -> Turn:
        pairs = zip(values, operands, strict=True)
        one = rebuild(instruction, [_element(v, o.flag, number) for v, o in pairs])
        effects = [one] if one.has_effect else []
        return [_with_element(made, one, number), *values], effects

    init = [_zeros(results), *(o.value for o in operands)]
    return counted(f"{instruction.op.function}_of_one", size, init, of_one)[0]


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
