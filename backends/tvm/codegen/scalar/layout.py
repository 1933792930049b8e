"""Pad, Concatenate and DynamicUpdateSlice: stores each operand to its region of the result."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.affine import Affine
from tracejit.backends.tvm.codegen.access_analysis import Accesses
from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.loop_nest import together
from tracejit.backends.tvm.codegen.root_rules import Results
from tracejit.backends.tvm.codegen.rules.layout import known_start
from tracejit.backends.tvm.codegen.scalar.table import scalar
from tracejit.backends.tvm.codegen.stores import Store, strided
from tracejit.backends.tvm.ir.affine import Index, moved
from tracejit.backends.tvm.ir.tir import Expr, Stmt, seq
from tracejit.graph import Instruction
from tracejit.ops.layout import (
    CONCATENATE,
    DYNAMIC_UPDATE_SLICE,
    PAD,
)
from tracejit.ops.layout import broadcast_in_dim as broadcast_builder
from tracejit.ops.layout import slice_ as slice_builder

Indices = Sequence[Index]


class RegionStore(Store):
    """A store of an operand to the region ``index * factor + offset`` of an anchor.

    ``results`` are the anchor itself, or the end of its epilogue.
    """

    def __init__(
        self,
        anchor: Instruction,
        results: Results,
        part: Instruction,
        factors: Sequence[int],
        offsets: Sequence[int],
    ) -> None:
        ((root, target),) = results
        super().__init__(root, target, strided(root.array_shape.dimensions, factors, offsets))
        self._anchor, self._part = anchor, part
        self._places = list(zip(factors, offsets, strict=True))

    def ask(self, scope: Accesses | Emitter, indices: Indices) -> object:
        element = scope.value(self._part, indices)
        if self.value is self._anchor:
            return element
        if isinstance(scope, Emitter):
            scope.given[self._anchor] = element
        else:
            scope.known.add(self._anchor)
        places = zip(indices, self._places, strict=True)
        return scope.result(self.value, [moved(index, *place) for index, place in places])


@scalar.attach(PAD)
def pad(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """The padding value everywhere, then the operand's elements over it."""
    operand, value = instruction.operands
    dimensions = instruction.array_shape.dimensions
    filling = broadcast_builder(value, dimensions, ())
    zeros = [0] * len(dimensions)
    filled = RegionStore(instruction, results, filling, [1] * len(dimensions), zeros)
    statements = [frame.pointwise(dimensions, [filled], 1)]

    parts, factors, offsets = [], [], []
    sizes = operand.array_shape.dimensions
    for size, whole, padding in zip(
        sizes, dimensions, instruction.attributes["padding"], strict=True
    ):
        step = padding.interior + 1
        # Element i goes to low + i * step; negative padding crops elements that would be outside.
        first = max(0, -(padding.low // step))
        last = min(size - 1, (whole - 1 - padding.low) // step)
        parts.append((first, max(last + 1, first)))
        factors.append(step)
        offsets.append(padding.low + first * step)
    if all(first < end for first, end in parts):
        inside = operand
        if any((first, end) != (0, size) for (first, end), size in zip(parts, sizes, strict=True)):
            inside = slice_builder(operand, [p[0] for p in parts], [p[1] for p in parts])
        stored = RegionStore(instruction, results, inside, factors, offsets)
        cost = max(1, frame.cost)
        statements.append(frame.pointwise(inside.array_shape.dimensions, [stored], cost))
    return seq(*statements)


@scalar.attach(CONCATENATE)
def concatenate(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """Each operand to its region of the result; a nested concatenate is stored operand
    by operand.
    """
    dimensions = instruction.array_shape.dimensions
    cost = max(1, frame.cost)
    statements = []

    def write(joined: Instruction, begin: Sequence[int]) -> None:
        (along,) = joined.attributes["dimensions"]
        offsets = list(begin)
        for operand in joined.operands:
            sizes = operand.array_shape.dimensions
            if operand.op is CONCATENATE and operand not in frame.inputs:
                write(operand, offsets)
            elif operand.array_shape.size:
                ones = [1] * len(dimensions)
                stored = RegionStore(instruction, results, operand, ones, list(offsets))
                statements.append(frame.pointwise(sizes, [stored], cost))
            offsets[along] += sizes[along]

    write(instruction, [0] * len(dimensions))
    return together(statements)


@scalar.attach(DYNAMIC_UPDATE_SLICE)
def dynamic_update_slice(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """The operand, then the update over it, with its start clamped."""
    ((_, target),) = results
    operand, update, *starts = instruction.operands
    dimensions = operand.array_shape.dimensions
    copied = []
    if not frame.in_place:
        copied.append(frame.pointwise(dimensions, [Store(operand, target, compute=False)], 1))
    if update.array_shape.size == 0:
        return seq(*copied)

    sizes = update.array_shape.dimensions
    rooms = [whole - size for whole, size in zip(dimensions, sizes, strict=True)]
    known = [known_start(start, room) for start, room in zip(starts, rooms, strict=True)]

    def offset(emitter: Emitter) -> Expr:
        places = [
            Affine() if place is not None else emitter.start(start, (), room)
            for place, start, room in zip(known, starts, rooms, strict=True)
        ]
        return emitter.address(places, dimensions)

    address = strided(dimensions, [1] * len(dimensions), [place or 0 for place in known])
    moving = offset if None in known else None
    stored = Store(update, target, address, moving, compute=False)
    return seq(*copied, frame.pointwise(update.array_shape.dimensions, [stored], frame.cost))
