"""Reduce, Sort and TopK.

TopK of the largest is a composite: XLA knows it by its name, others by its decomposition into
sorting and slicing. Of the smallest, which has no such name, it is these alone.
"""

from __future__ import annotations

from tracejit import ops
from tracejit.graph import Computation, Instruction
from tracejit.hlo.stablehlo.text import boolean, dictionary, integer, integers, string
from tracejit.hlo.stablehlo.writer import Names, Writer, stablehlo
from tracejit.ops.reduction import REDUCE, SORT, TOP_K
from tracejit.shapes import ElementType, Shape


@stablehlo.attach(REDUCE)
def reduce(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    attributes = {"dimensions": integers(instruction.attributes["dimensions"])}
    regions = [writer.region(instruction.attributes["to_apply"])]
    return writer.operation(instruction, "stablehlo.reduce", operands, attributes, regions)


@stablehlo.attach(SORT)
def sort(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    values = instruction.attributes
    attributes = {
        "dimension": integer(values["dimensions"][0]),
        "is_stable": boolean(values["is_stable"]),
    }
    regions = [writer.region(values["to_apply"])]
    return writer.operation(instruction, "stablehlo.sort", operands, attributes, regions)


@stablehlo.attach(TOP_K)
def top_k(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    k, shape = instruction.attributes["k"], instruction.operands[0].shape
    if not instruction.attributes["largest"]:
        return writer.compose(operands, [shape], lambda operand: _sorted(operand, k, False))
    operand = ops.parameter(0, shape)
    meaning = Computation("top_k", (operand,), _sorted(operand, k, True))
    attributes = {
        "composite_attributes": dictionary({"k": integer(k), "largest": boolean(True)}),
        "decomposition": f"@{writer.function(meaning)}",
        "name": string("chlo.top_k"),
        "version": integer(1, 32),
    }
    return writer.operation(instruction, "stablehlo.composite", operands, attributes)


def _sorted(operand: Instruction, k: int, largest: bool) -> Instruction:
    """The first ``k`` of the last dimension in the types' total order, and their indices."""
    shape = operand.array_shape
    last = shape.rank - 1
    indices = ops.iota(Shape(ElementType.S32, shape.dimensions), last)
    scalars = [Shape(shape.element_type)] * 2 + [Shape(ElementType.S32)] * 2
    x, y, i, j = (ops.parameter(n, scalar) for n, scalar in enumerate(scalars))
    before = ops.gt_total_order(x, y) if largest else ops.lt_total_order(x, y)
    order = Computation("order", (x, y, i, j), before)
    ordered = ops.sort([operand, indices], order, last, is_stable=True)
    return ops.tuple_([ops.slice_in_dim(part, 0, k, 1, last) for part in ops.elements_of(ordered)])
