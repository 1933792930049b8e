"""What a program costs, read off its graph: operations, bytes, transcendental functions.

costs = tj.jit(f).lower(x).cost_analysis()
costs["flops"], costs["bytes accessed"], costs["transcendentals"], costs["ops"]["DotGeneral"]
"""

from __future__ import annotations

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
    _add(made, computation, 1)
    return made


def _add(into: dict[str, Any], computation: Computation, times: int) -> None:
    for instruction in instructions(computation):
        if instruction.op in FREE:
            continue
        if instruction.op is CALL:
            _add(into, instruction.attributes["to_apply"], times)
            continue
        if instruction.op is WHILE:
            into["unknown loops"] += 1
            _add(into, instruction.attributes["body"], times)
            _add(into, instruction.attributes["condition"], times)
            continue
        if instruction.op is SCAN:
            _add(into, instruction.attributes["to_apply"], times * _turns(instruction))
            continue
        if instruction.op is CONDITIONAL:
            _merge(into, max(map(cost_analysis, instruction.computations), key=_total), times)
            continue
        costs = dict(zip(NAMES, (*work_of(instruction), _traffic(instruction)), strict=True))
        own = into["ops"].setdefault(instruction.op.name, {"count": 0, **dict.fromkeys(NAMES, 0)})
        own["count"] += times
        for name, cost in costs.items():
            own[name] += times * cost
            into[name] += times * cost


def _total(costs: dict[str, Any]) -> int:
    total: int = costs["flops"] + costs["transcendentals"] + costs["bytes accessed"]
    return total


def _merge(into: dict[str, Any], costs: dict[str, Any], times: int) -> None:
    for name in NAMES:
        into[name] += times * costs[name]
    into["unknown loops"] += costs["unknown loops"]
    for op, found in costs["ops"].items():
        own = into["ops"].setdefault(op, dict.fromkeys(found, 0))
        for name, cost in found.items():
            own[name] += times * cost


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
