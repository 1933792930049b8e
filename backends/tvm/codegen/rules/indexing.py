"""Element rules of Gather, whose starts are clamped, and IndexVector: TIR for one load."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.affine import Affine
from tracejit.backends.tvm.analysis.element_rules import Scope, Value, indexed
from tracejit.backends.tvm.ir.affine import Index
from tracejit.backends.tvm.ir.internal_ops import INDEX_VECTOR
from tracejit.backends.tvm.ir.tir import i32, tirx
from tracejit.graph import Instruction
from tracejit.ops.indexing import GATHER
from tracejit.shapes import ElementType


@indexed.attach(GATHER)
def gather(scope: Scope, instruction: Instruction, indices: Sequence[Index]) -> Value:
    operand, starts = instruction.operands
    attributes = instruction.attributes
    offset_dims = attributes["offset_dims"]
    vector_dim = attributes["index_vector_dim"]
    batch = [index for d, index in enumerate(indices) if d not in offset_dims]
    sizes = operand.array_shape.dimensions

    places: list[Index] = [Affine()] * len(sizes)
    batching = zip(
        attributes["operand_batching_dims"],
        attributes["start_indices_batching_dims"],
        strict=True,
    )
    for operand_dim, indices_dim in batching:
        # The batch indices lack index_vector_dim, so dimensions behind it move down by one.
        places[operand_dim] = batch[indices_dim - (indices_dim > vector_dim)]
    dropped = {*attributes["collapsed_slice_dims"], *attributes["operand_batching_dims"]}
    inside = [d for d in range(len(sizes)) if d not in dropped]
    for operand_dim, result_dim in zip(inside, offset_dims, strict=True):
        places[operand_dim] = indices[result_dim]

    for number, operand_dim in enumerate(attributes["start_index_map"]):
        where = list(batch)
        if vector_dim < starts.array_shape.rank:
            where.insert(vector_dim, Affine(number))
        limit = sizes[operand_dim] - attributes["slice_sizes"][operand_dim]
        start = scope.start(starts, where, limit)
        places[operand_dim] = scope.shifted(places[operand_dim], start)
    return scope.value(operand, places)


@indexed.attach(INDEX_VECTOR)
def index_vector(scope: Scope, instruction: Instruction, indices: Sequence[Index]) -> Value:
    dimension = instruction.attributes["dimension"]
    which, within = indices[dimension], list(indices)
    within[dimension] = Affine()
    if isinstance(which, Affine) and not which.terms:
        return scope.value(instruction.operands[which.constant], within)
    values = [scope.value(operand, within) for operand in instruction.operands]

    def choose(number: Value, first: Value, *others: Value) -> Value:
        chosen = first
        for place, value in enumerate(others, 1):
            chosen = tirx.Select(number == i32(place), value, chosen)
        return chosen

    return scope.map(choose, scope.number(which, ElementType.S32), *values)
