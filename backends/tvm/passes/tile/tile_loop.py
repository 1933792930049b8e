"""Builds the loop that computes an array block by block along one dimension.

made_in_blocks("rows", shape, 0, (0, 100), 32, arrays, block)   # block(away, *arrays)
starts_along(array, axis, start)                                # the start of a slice or update
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tracejit.backends.tvm.ir.internal_ops import undefined
from tracejit.graph import Instruction
from tracejit.ops import elementwise
from tracejit.ops.constants import constant
from tracejit.ops.layout import dynamic_update_slice
from tracejit.ops.loops import Turn, counted
from tracejit.shapes import ElementType, Shape


def made_in_blocks(
    name: str,
    shape: Shape,
    axis: int,
    places: tuple[int, int],
    length: int,
    arrays: Sequence[Instruction],
    block: Callable[..., Instruction],
) -> Instruction:
    """An array with the range ``places`` of an axis computed ``length`` at a time.

    ``block(away, *arrays)`` computes the block that begins ``away`` after the first. The last
    block ends with the range, and overlaps the one before. Elements outside are undefined.
    """
    first, end = places

    def body(number: Instruction, *state: Instruction) -> Turn:
        made, *given = state
        away = elementwise.mul(number, constant(length, ElementType.S32))
        away = elementwise.min(away, constant(end - first - length, ElementType.S32))
        start = elementwise.add(away, constant(first, ElementType.S32))
        starts = starts_along(made, axis, start)
        return [dynamic_update_slice(made, block(away, *given), starts), *given], ()

    count = math.ceil((end - first) / length)
    return counted(name, count, [undefined(shape), *arrays], body)[0]


def starts_along(array: Instruction, axis: int, start: Instruction) -> list[Instruction]:
    """The start indices: ``start`` along one dimension, 0 along the others."""
    zero = constant(0, ElementType.S32)
    return [start if d == axis else zero for d in range(array.array_shape.rank)]
