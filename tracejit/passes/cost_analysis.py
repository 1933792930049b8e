"""What a program costs, read off its graph: operations, bytes, transcendental functions.

costs = tj.jit(f).lower(x).cost_analysis()
costs["flops"], costs["bytes accessed"], costs["transcendentals"], costs["ops"]["DotGeneral"]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tracejit.backends.work import FREE, work_of
from tracejit.graph import Computation, Instruction
from tracejit.ops.control import CALL, CONDITIONAL, WHILE
from tracejit.ops.scanning import SCAN
from tracejit.shapes import AnyShape, Shape, TupleShape
from tracejit.traversal import instructions

NAMES = ("flops", "transcendentals", "bytes accessed")


def cost_analysis(computation: Computation) -> dict[str, Any]:
    """The costs of one run, as a dictionary.

    "flops" counts additions, multiplications and comparisons (a multiplication with an addition
    is two), "transcendentals" calls of exp, sqrt and their kin, "bytes accessed" what each
    operation reads and writes as if none were fused. "ops" has the same and "count" for every
    kind of operation. Loops count as often as they are known to turn; "unknown loops" is how many
    Whiles there are whose turns are not known, counted once. Of branches the dearest counts.
    """
    made: dict[str, Any] = {name: 0 for name in NAMES}
    made["ops"], made["unknown loops"] = {}, 0
    for cost in instruction_costs(computation):
        op = cost.instruction.op
        if op is WHILE:
            made["unknown loops"] += 1
            continue
        own = made["ops"].setdefault(op.name, {"count": 0, **dict.fromkeys(NAMES, 0)})
        own["count"] += cost.times
        for name, each in zip(
            NAMES, (cost.flops, cost.transcendentals, cost.bytes_accessed), strict=True
        ):
            own[name] += cost.times * each
            made[name] += cost.times * each
    return made


@dataclass(frozen=True)
class InstructionCost:
    """The costs of one run of an instruction, and how often it runs. A While has no own costs."""

    instruction: Instruction
    times: int
    flops: int
    transcendentals: int
    bytes_accessed: int


def instruction_costs(computation: Computation, times: int = 1) -> Iterator[InstructionCost]:
    """What each instruction costs, in loops and branches too, counted as `cost_analysis` does."""
    for instruction in instructions(computation):
        given = instruction.attributes
        if instruction.op in FREE:
            continue
        if instruction.op is CALL:
            yield from instruction_costs(given["to_apply"], times)
        elif instruction.op is WHILE:
            yield InstructionCost(instruction, times, 0, 0, 0)
            yield from instruction_costs(given["body"], times)
            yield from instruction_costs(given["condition"], times)
        elif instruction.op is SCAN:
            yield from instruction_costs(given["to_apply"], times * _turns(instruction))
        elif instruction.op is CONDITIONAL:
            branches = [list(instruction_costs(c, times)) for c in instruction.computations]
            yield from max(branches, key=_total)
        else:
            flops, functions = work_of(instruction)
            yield InstructionCost(instruction, times, flops, functions, _traffic(instruction))


def _total(costs: Sequence[InstructionCost]) -> int:
    return sum(c.times * (c.flops + c.transcendentals + c.bytes_accessed) for c in costs)


def _turns(instruction: Instruction) -> int:
    """The trip count of a Scan: the size of its scanned or stacked arrays, or 1 without any."""
    (dimension, *_) = instruction.attributes["dimensions"]
    carries = instruction.attributes["num_carries"]
    scanned = instruction.operands[: len(instruction.operands) - carries]
    stacked = instruction.element_shapes[: len(instruction.element_shapes) - carries]
    for shape in (*(o.shape for o in scanned), *stacked):
        if isinstance(shape, Shape) and shape.rank:
            size: int = shape.dimensions[dimension]
            return size
    return 1


def size_in_bytes(shape: AnyShape) -> int:
    """The bytes of a value, of a tuple those of all its elements."""
    if isinstance(shape, TupleShape):
        return sum(map(size_in_bytes, shape.elements))
    return shape.size * shape.dtype.itemsize if isinstance(shape, Shape) else 0


def _traffic(instruction: Instruction) -> int:
    read = sum(size_in_bytes(operand.shape) for operand in instruction.operands)
    return read + size_in_bytes(instruction.shape)
