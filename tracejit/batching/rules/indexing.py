"""Gather and Scatter: the batch is a dimension of operand and indices that goes in step."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.batching.axes import later
from tracejit.batching.batch import Batched, batching
from tracejit.graph import Instruction
from tracejit.ops.base import make
from tracejit.ops.indexing import GATHER, SCATTER

_OF_GATHERED = ("collapsed_slice_dims", "start_index_map", "operand_batching_dims")
_OF_SCATTERED = ("inserted_window_dims", "scatter_dims_to_operand_dims", "input_batching_dims")


@batching.attach(GATHER)
def gather_rule(instruction: Instruction, operands: Sequence[Batched], size: int) -> Instruction:
    operand, indices = operands
    a = dict(instruction.attributes)
    a["offset_dims"] = later(a["offset_dims"])
    if operand.is_batched:
        a.update({name: later(a[name]) for name in _OF_GATHERED})
        a["slice_sizes"] = (1 if indices.is_batched else size, *a["slice_sizes"])
    if indices.is_batched:
        a["index_vector_dim"] += 1
        a["start_indices_batching_dims"] = later(a["start_indices_batching_dims"])
        a["indices_are_sorted"] = False
    if operand.is_batched and indices.is_batched:
        a["operand_batching_dims"] = (0, *a["operand_batching_dims"])
        a["start_indices_batching_dims"] = (0, *a["start_indices_batching_dims"])
    elif operand.is_batched:
        a["offset_dims"] = (0, *a["offset_dims"])
    return make(GATHER, operand.value, indices.value, **a)


@batching.attach(SCATTER)
def scatter_rule(instruction: Instruction, operands: Sequence[Batched], size: int) -> Instruction:
    count = len(operands) // 2
    indices = operands[count]
    a = dict(instruction.attributes)
    a["update_window_dims"] = later(a["update_window_dims"])
    a.update({name: later(a[name]) for name in _OF_SCATTERED})
    if indices.is_batched:
        a["index_vector_dim"] += 1
        a["input_batching_dims"] = (0, *a["input_batching_dims"])
        batching_dims = later(a["scatter_indices_batching_dims"])
        a["scatter_indices_batching_dims"] = (0, *batching_dims)
        a["indices_are_sorted"] = False
    else:
        a["update_window_dims"] = (0, *a["update_window_dims"])
    inputs = [operand.stretched(size) for operand in operands[:count]]
    updates = [operand.stretched(size) for operand in operands[count + 1 :]]
    return make(SCATTER, *inputs, indices.value, *updates, **a)
