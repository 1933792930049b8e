"""A new first dimension: counting the others past it, and making it part of another."""

from __future__ import annotations

from collections.abc import Iterable

from tracejit.graph import Instruction
from tracejit.ops.dimensions import moved
from tracejit.ops.layout import reshape


def later(dimensions: Iterable[int]) -> tuple[int, ...]:
    """The same dimensions, after a batch dimension was put in front."""
    return tuple(d + 1 for d in dimensions)


def split(operand: Instruction, dimension: int, outer: int) -> Instruction:
    """``operand`` with one dimension split in two, the first of size ``outer``."""
    sizes = operand.array_shape.dimensions
    inner = sizes[dimension] // outer
    return reshape(operand, (*sizes[:dimension], outer, inner, *sizes[dimension + 1 :]))


def joined(operand: Instruction, dimension: int) -> Instruction:
    """``operand`` with a dimension and the next one made one."""
    sizes = operand.array_shape.dimensions
    size = sizes[dimension] * sizes[dimension + 1]
    return reshape(operand, (*sizes[:dimension], size, *sizes[dimension + 2 :]))


def batch_into(operand: Instruction, dimension: int, groups: int = 1) -> Instruction:
    """The first dimension made part of another: ``dimension``, counted without the batch.

    Within each of the other's ``groups`` the batch is outermost.
    """
    if groups == 1:
        return joined(moved(operand, 0, dimension), dimension)
    in_groups = moved(split(operand, dimension + 1, groups), 0, dimension + 1)
    return joined(joined(in_groups, dimension + 1), dimension)


def batch_out_of(operand: Instruction, dimension: int, size: int, groups: int = 1) -> Instruction:
    """The inverse of `batch_into`."""
    if groups == 1:
        return moved(split(operand, dimension, size), dimension, 0)
    in_groups = split(split(operand, dimension, groups), dimension + 1, size)
    return joined(moved(in_groups, dimension + 1, 0), dimension + 1)
