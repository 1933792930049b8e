"""Scan: the batch follows every slice and every carry that it reaches."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.batching.batch import (
    Batched,
    Flag,
    batch_computation,
    batching,
    stretch,
    union,
)
from tracejit.graph import Computation, Instruction
from tracejit.ops.constants import elements_of, tuple_
from tracejit.ops.dimensions import moved
from tracejit.ops.scanning import SCAN, scan, scan_length


@batching.attach(SCAN)
def scan_rule(instruction: Instruction, operands: Sequence[Batched], size: int) -> Batched:
    """Slices along the scan dimension, with the batch behind it; so that steps see it in front."""
    a = instruction.attributes
    (dimension,) = a["dimensions"]
    carried = a["num_carries"]
    count = len(operands) - carried
    inputs, inits = operands[:count], operands[count:]
    stacked = len(instruction.element_shapes) - carried
    step = a["to_apply"]
    of_slices = [operand.flag for operand in inputs]
    of_carries = [operand.flag for operand in inits]
    while True:
        body, flags = batch_computation(step, [*of_slices, *of_carries], size)
        assert isinstance(flags, tuple)
        found: list[Flag] = [
            union(old, new) for old, new in zip(of_carries, flags[stacked:], strict=True)
        ]
        if found == of_carries:
            break
        of_carries = found
    wanted = (*flags[:stacked], *of_carries)
    root = tuple_(
        [
            stretch(value, flag, wish, size)
            for value, flag, wish in zip(elements_of(body.root), flags, wanted, strict=True)
        ]
    )
    # [batch, ..., steps, ...] -> [steps, batch, ...]: a step sees [batch, ...].
    slices = [
        moved(o.value, dimension + 1, 0) if o.is_batched else moved(o.value, dimension, 0)
        for o in inputs
    ]
    made = scan(
        slices,
        [stretch(o.value, o.flag, f, size) for o, f in zip(inits, of_carries, strict=True)],
        Computation(body.name, body.parameters, root, body.effects),
        is_reverse=a["is_reverse"],
        is_associative=a["is_associative"],
        length=scan_length(instruction),
    )
    results = list(elements_of(made))
    for number in range(stacked):
        if wanted[number]:
            results[number] = moved(moved(results[number], 1, 0), 1, dimension + 1)
        else:
            results[number] = moved(results[number], 0, dimension)
    return Batched(tuple_(results), wanted)
