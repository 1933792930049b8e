"""Samples of collective ops in two halves, on one device."""

from __future__ import annotations

from tests.samples.base import Operand, Sample
from tracejit import ops
from tracejit.graph import Instruction
from tracejit.ops.base import ALL, NUMERIC


def reduced(x: Instruction, *others: Instruction) -> Instruction:
    add = ops.scalar_computation("add", x.array_shape.element_type)
    return ops.all_reduce_done(ops.all_reduce_start([x, *others], add))


def gathered(x: Instruction, *others: Instruction) -> Instruction:
    return ops.all_gather_done(ops.all_gather_start([x, *others], 0, 1, [[0]], 3))


def permuted(x: Instruction) -> Instruction:
    return ops.collective_permute_done(ops.collective_permute_start(x, [[0, 0]], 5))


TWO = (Operand(), Operand((2, 0)))

SAMPLES = [
    *[Sample(f"AllReduce{half}", reduced, TWO[:1], NUMERIC, "one") for half in ("Start", "Done")],
    *[Sample(f"AllReduce{half}", reduced, TWO, NUMERIC, "several") for half in ("Start", "Done")],
    *[Sample(f"AllGather{half}", gathered, TWO[:1], ALL, "one") for half in ("Start", "Done")],
    *[Sample(f"AllGather{half}", gathered, TWO, ALL, "several") for half in ("Start", "Done")],
    *[Sample(f"CollectivePermute{half}", permuted, TWO[:1], ALL) for half in ("Start", "Done")],
]
