"""Values of any shape as the arrays they consist of, their leaves, and cotangents leaf by leaf."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracejit.autodiff.reverse import Cotangent, Nested, is_wanted
from tracejit.graph import Instruction
from tracejit.ops.constants import TUPLE, elements_of, tuple_
from tracejit.shapes import AnyShape, TupleShape


def leaf_shapes(shape: AnyShape) -> list[AnyShape]:
    """The shapes of the leaves, in order."""
    if not isinstance(shape, TupleShape):
        return [shape]
    return [leaf for element in shape.elements for leaf in leaf_shapes(element)]


def leaves(value: Instruction) -> list[Instruction]:
    """The leaves of a value, in order."""
    if not isinstance(value.shape, TupleShape):
        return [value]
    return [leaf for element in elements_of(value) for leaf in leaves(element)]


def assembled(shape: AnyShape, parts: Iterator[Instruction]) -> Instruction:
    """The value of ``shape`` from the next leaves."""
    if not isinstance(shape, TupleShape):
        return next(parts)
    return tuple_([assembled(element, parts) for element in shape.elements])


def flat(shape: AnyShape, cotangent: Nested) -> list[Cotangent]:
    """The cotangents of the leaves of a value of ``shape``, given the value's."""
    if cotangent is None:
        return [None] * len(leaf_shapes(shape))
    if isinstance(cotangent, Instruction):
        return [cotangent]
    assert isinstance(shape, TupleShape)
    pairs = zip(shape.elements, cotangent, strict=True)
    return [leaf for element, part in pairs for leaf in flat(element, part)]


def nested(shape: AnyShape, parts: Iterator[Cotangent]) -> Nested:
    """The cotangent of a value of ``shape``, given its leaves'."""
    if not isinstance(shape, TupleShape):
        return next(parts)
    return [nested(element, parts) for element in shape.elements]


def refilled(pattern: Sequence[Cotangent], values: Iterator[Instruction]) -> list[Cotangent]:
    """``values`` where the pattern is not None."""
    return [None if entry is None else next(values) for entry in pattern]


def wanted_leaves(operand: Instruction) -> list[bool]:
    """For each leaf of a rule's operand whether its cotangent is needed."""
    if operand.op is TUPLE:
        return [wanted for element in operand.operands for wanted in wanted_leaves(element)]
    return [is_wanted(operand)] * len(leaves(operand))
