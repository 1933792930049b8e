"""What a program costs, read off its graph: operations, bytes, transcendental functions.

costs = tj.jit(f).lower(x).cost_analysis()
costs["flops"], costs["bytes accessed"], costs["transcendentals"], costs["ops"]["DotGeneral"]
"""

from __future__ import annotations

import math
from typing import Any

from tracejit.graph import Computation, Instruction
from tracejit.ops.constants import CONSTANT, GET_TUPLE_ELEMENT, IOTA, PARAMETER, TUPLE
from tracejit.ops.contraction import CONV_GENERAL_DILATED, DOT_GENERAL
from tracejit.ops.control import CALL, CONDITIONAL, WHILE
from tracejit.ops.elementwise import ATAN2, POW
from tracejit.ops.elementwise_unary import (
    ACOS,
    ACOSH,
    ASIN,
    ASINH,
    ATANH,
    CBRT,
    COS,
    COSH,
    ERF,
    EXP,
    EXPM1,
    LOG,
    LOG1P,
    LOGISTIC,
    RSQRT,
    SIN,
    SINH,
    SQRT,
    TAN,
    TANH,
)
from tracejit.ops.indexing import SCATTER
from tracejit.ops.layout import RESHAPE
from tracejit.ops.linalg import CHOLESKY, TRIANGULAR_SOLVE
from tracejit.ops.reduction import REDUCE
from tracejit.ops.scanning import SCAN
from tracejit.ops.spectra import FFT
from tracejit.ops.windows import REDUCE_WINDOW, SELECT_AND_SCATTER
from tracejit.shapes import AnyShape, Shape, TupleShape
from tracejit.traversal import instructions

_TRANSCENDENTAL = frozenset(
    {ACOS, ACOSH, ASIN, ASINH, ATAN2, ATANH, CBRT, COS, COSH, ERF, EXP, EXPM1, LOG, LOG1P}
) | frozenset({LOGISTIC, POW, RSQRT, SIN, SINH, SQRT, TAN, TANH})
_FREE = frozenset({CONSTANT, GET_TUPLE_ELEMENT, IOTA, PARAMETER, RESHAPE, TUPLE})
_ARITHMETIC = ("elementwise", "elementwise_unary", "comparison")

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
        if instruction.op in _FREE:
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
    """How often a Scan turns: the size of what it scans or stacks, or 1 where there is nothing."""
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


def _size(instruction: Instruction) -> int:
    return sum(s.size for s in instruction.element_shapes if isinstance(s, Shape))


def work_of(instruction: Instruction) -> tuple[int, int]:
    """Flops and transcendental functions of one instruction."""
    op, size, given = instruction.op, _size(instruction), instruction.attributes
    if op in _TRANSCENDENTAL:
        return 0, size
    if op.family in _ARITHMETIC:
        return size, 0
    if op is DOT_GENERAL:
        lhs = instruction.operands[0].array_shape.dimensions
        return 2 * size * math.prod(lhs[d] for d in given["lhs_contracting_dims"]), 0
    if op is CONV_GENERAL_DILATED:
        kernel = instruction.operands[1].array_shape
        outputs = kernel.dimensions[given["dim_labels"].kernel_output_feature_dimension]
        return 2 * size * (kernel.size // max(outputs, 1)), 0
    if op is REDUCE:
        count = len(instruction.operands) // 2
        read = sum(o.array_shape.size for o in instruction.operands[:count])
        return _called(given["to_apply"], max(read - size, 0) // count)
    if op is REDUCE_WINDOW:
        window = math.prod(dimension.size for dimension in given["window"])
        return _called(given["to_apply"], size * max(window - 1, 0))
    if op is SELECT_AND_SCATTER:
        source = instruction.operands[1].array_shape.size
        window = math.prod(dimension.size for dimension in given["window"])
        return source * window, 0
    if op is SCATTER:
        updates = instruction.operands[-1].array_shape.size
        return _called(given["to_apply"], updates)
    if op is CHOLESKY:
        n = instruction.array_shape.dimensions[-1]
        return size * n // 3, 0
    if op is TRIANGULAR_SOLVE:
        return size * instruction.operands[0].array_shape.dimensions[-1], 0
    if op is FFT:
        points = math.prod(given["fft_length"])
        return 5 * size * max(points - 1, 0).bit_length(), 0
    return 0, 0


def _called(computation: Computation, times: int) -> tuple[int, int]:
    """Work of a computation of scalars, applied so many times."""
    works = [work_of(i) for i in instructions(computation) if i.op not in _FREE]
    return times * sum(w[0] for w in works), times * sum(w[1] for w in works)
