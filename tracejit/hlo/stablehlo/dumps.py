"""Ops that XLA's passes make: what they compute, without how it was to be done."""

from __future__ import annotations

from functools import partial

from tracejit import ops
from tracejit.errors import UnsupportedError
from tracejit.graph import Instruction
from tracejit.hlo.stablehlo.text import leaves
from tracejit.hlo.stablehlo.writer import Names, Writer, stablehlo
from tracejit.ops.dumps import (
    ASYNC_DONE,
    ASYNC_START,
    ASYNC_UPDATE,
    BITCAST,
    COPY,
    COPY_DONE,
    COPY_START,
    DOMAIN,
    FUSION,
)
from tracejit.shapes import AnyShape, Layout, Shape, TupleShape


@stablehlo.attach(COPY, DOMAIN, ASYNC_UPDATE)
def identity(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    return operands[0]


def _order(shape: Shape, layout: Layout | None) -> list[int]:
    """The dimensions from the one that varies slowest in memory."""
    found = layout or Layout.row_major(shape.rank)
    return list(found.minor_to_major[::-1])


@stablehlo.attach(BITCAST)
def bitcast(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    """The elements in the order of memory, taken as elements of the result in that order."""
    given, wanted = instruction.operands[0].array_shape, instruction.array_shape
    if given.element_type.bits != wanted.element_type.bits:
        raise UnsupportedError(
            f"to_stablehlo: Bitcast changes the width of elements; operand {given}, "
            f"result {wanted}",
            instruction.source,
        )
    before = _order(given, instruction.attributes["operand_layout"] or given.layout)
    after = _order(wanted, wanted.layout)

    def build(operand: Instruction) -> Instruction:
        value = ops.transpose(operand, before)
        value = ops.reshape(value, [wanted.dimensions[d] for d in after])
        value = ops.transpose(value, [after.index(d) for d in range(wanted.rank)])
        return ops.bitcast_convert_type(value, wanted.element_type)

    return writer.compose(operands, [given], build)


@stablehlo.attach(COPY_START)
def copy_start(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    context = zeros(writer, instruction.element_shapes[2:])
    return (*operands[0], *operands[0], *context)


@stablehlo.attach(COPY_DONE)
def copy_done(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    return operands[0][:1]


@stablehlo.attach(FUSION)
def fusion(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    return writer.call(instruction.attributes["calls"], operands, instruction.shape)


@stablehlo.attach(ASYNC_START)
def async_start(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    """The bundle: operands, result, contexts, which mean nothing."""
    parts = instruction.element_shapes
    made = writer.call(instruction.attributes["calls"], operands, parts[1])
    given = [name for names in operands for name in names]
    return (*given, *made, *zeros(writer, parts[2:]))


@stablehlo.attach(ASYNC_DONE)
def async_done(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    bundle = instruction.operands[0].shape
    assert isinstance(bundle, TupleShape)
    first, result = (len(leaves(part)) for part in bundle.elements[:2])
    return operands[0][first : first + result]


def zeros(writer: Writer, shapes: tuple[AnyShape, ...]) -> Names:
    """Values for contexts, which mean nothing."""
    names: Names = ()
    for shape in (leaf for part in shapes for leaf in leaves(part)):
        if isinstance(shape, Shape):
            names += writer.compose([], [], partial(ops.full, shape, 0))
        else:
            names += writer.compose([], [], lambda: ops.after_all([]))
    return names
