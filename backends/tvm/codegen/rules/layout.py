"""Layout ops: where in the operand an element comes from, or where in the result it goes."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.backends.tvm.analysis.element_rules import Scope, Value, indexed
from tracejit.backends.tvm.ir.affine import Index, moved
from tracejit.graph import Instruction
from tracejit.ops.constants import CONSTANT
from tracejit.ops.layout import (
    BROADCAST_IN_DIM,
    DYNAMIC_SLICE,
    RESHAPE,
    REV,
    SLICE,
    TRANSPOSE,
)

Indices = Sequence[Index]


@indexed.attach(BROADCAST_IN_DIM)
def broadcast_in_dim(scope: Scope, instruction: Instruction, indices: Indices) -> Value:
    dimensions = instruction.attributes["dimensions"]
    return scope.value(instruction.operands[0], [indices[d] for d in dimensions])


@indexed.attach(RESHAPE)
def reshape(scope: Scope, instruction: Instruction, indices: Indices) -> Value:
    dimensions = instruction.array_shape.dimensions
    return scope.reshaped(instruction.operands[0], dimensions, indices)


@indexed.attach(TRANSPOSE)
def transpose(scope: Scope, instruction: Instruction, indices: Indices) -> Value:
    source = dict(zip(instruction.attributes["dimensions"], indices, strict=True))
    return scope.value(instruction.operands[0], [source[d] for d in range(len(indices))])


@indexed.attach(REV)
def rev(scope: Scope, instruction: Instruction, indices: Indices) -> Value:
    turned = list(indices)
    for dimension in instruction.attributes["dimensions"]:
        last = instruction.array_shape.dimensions[dimension] - 1
        turned[dimension] = moved(turned[dimension], -1, last)
    return scope.value(instruction.operands[0], turned)


@indexed.attach(SLICE)
def slice_(scope: Scope, instruction: Instruction, indices: Indices) -> Value:
    parts = zip(indices, instruction.attributes["slice"], strict=True)
    return scope.value(
        instruction.operands[0], [moved(index, part.stride, part.start) for index, part in parts]
    )


@indexed.attach(DYNAMIC_SLICE)
def dynamic_slice(scope: Scope, instruction: Instruction, indices: Indices) -> Value:
    operand, *starts = instruction.operands
    sizes = instruction.attributes["dynamic_slice_sizes"]
    places: list[Index] = []
    for index, start, size, whole in zip(
        indices, starts, sizes, operand.array_shape.dimensions, strict=True
    ):
        known = known_start(start, whole - size)
        if known is not None:
            places.append(moved(index, 1, known))
            continue
        by = scope.start(start, (), whole - size)
        places.append(scope.shifted(index, by))
    return scope.value(operand, places)


def known_start(start: Instruction, most: int) -> int | None:
    """Where a slice begins, 0 up to ``most``, if that is known while compiling."""
    if most == 0:
        return 0
    if start.op is not CONSTANT:
        return None
    return min(max(int(start.attributes["literal"]), 0), most)
