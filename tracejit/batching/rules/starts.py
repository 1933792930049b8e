"""Collective ops in two halves: both of the whole batch."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.batching.axes import later
from tracejit.batching.batch import Batched, batched_shape, batching, uniform
from tracejit.batching.rules.replicas import whole_batch
from tracejit.errors import UnsupportedError
from tracejit.graph import Instruction
from tracejit.ops.base import make
from tracejit.ops.starts import (
    ALL_GATHER_DONE,
    ALL_GATHER_START,
    ALL_REDUCE_DONE,
    ALL_REDUCE_START,
    COLLECTIVE_PERMUTE_DONE,
    COLLECTIVE_PERMUTE_START,
)
from tracejit.shapes import TupleShape

batching.attach(ALL_REDUCE_START)(whole_batch)


@batching.attach(ALL_GATHER_START, COLLECTIVE_PERMUTE_START)
def start(instruction: Instruction, operands: Sequence[Batched], size: int) -> Batched:
    if instruction.attributes.get("slice_sizes"):
        raise UnsupportedError(
            f"{instruction.op.function}: cannot be batched in its form with slices",
            instruction.source,
        )
    assert isinstance(instruction.shape, TupleShape)
    arrays, result, *contexts = instruction.shape.elements
    flag = (
        uniform(arrays, True),
        uniform(result, True),
        *(uniform(context, False) for context in contexts),
    )
    attributes = dict(instruction.attributes, shape=batched_shape(instruction.shape, flag, size))
    if "dimensions" in attributes:
        attributes["dimensions"] = later(attributes["dimensions"])
    values = [operand.stretched(size) for operand in operands]
    return Batched(make(instruction.op, *values, **attributes), flag)


@batching.attach(ALL_REDUCE_DONE, ALL_GATHER_DONE, COLLECTIVE_PERMUTE_DONE)
def done(instruction: Instruction, operands: Sequence[Batched], size: int) -> Instruction:
    return make(instruction.op, operands[0].value)
