"""Where ops that make one element of many are known to differ: reductions, sums, scatters."""

from __future__ import annotations

import math

import numpy as np

from tests.fuzz.differences.difference import Difference
from tracejit.backends.numpy import evaluate, evaluate_instruction
from tracejit.graph import Instruction
from tracejit.shapes import element_type_of

# Arrays of so many elements are reduced by other code of XLA's.
_MANY = 4096


def _with_ties(instruction: Instruction, base: np.ndarray, *others: np.ndarray) -> bool:
    wide = base.astype(np.float64) if element_type_of(base.dtype).bits < 32 else base
    return len(np.unique(wide)) < base.size


def _cancelling(instruction: Instruction, operand: np.ndarray, *others: np.ndarray) -> bool:
    axes = tuple(d for d in range(operand.ndim) if d != instruction.attributes["feature_index"])
    wide = operand.astype(np.float64)
    if not operand.size:
        return False
    with np.errstate(all="ignore"):
        small = np.var(wide, axes) < np.mean(wide, axes) ** 2
    return bool(np.any(small))


def _over_one(instruction: Instruction, *operands: np.ndarray) -> bool:
    dimensions: tuple[int, ...] = instruction.attributes["dimensions"]
    return bool(math.prod(operands[0].shape[d] for d in dimensions) == 1)


def _in_stages(instruction: Instruction, *operands: np.ndarray) -> bool:
    """Long ones from an initial value that changes what it meets twice."""
    half = len(operands) // 2
    dimensions: tuple[int, ...] = instruction.attributes["dimensions"]
    if math.prod(operands[0].shape[d] for d in dimensions) <= 32:
        return False
    initial = list(operands[half:])
    twice = evaluate(instruction.attributes["to_apply"], [*initial, *initial])
    made = twice if isinstance(twice, tuple) else (twice,)
    return any(a.tobytes() != np.asarray(b).tobytes() for a, b in zip(made, initial, strict=True))


def _lost_nan(instruction: Instruction, *operands: np.ndarray) -> np.ndarray | bool:
    """NaN among the minima or maxima of arrays of many elements."""
    if len(operands) != 2 or operands[0].size < _MANY:
        return False
    if instruction.attributes["to_apply"].root.op.name not in ("Max", "Min"):
        return False
    result = evaluate_instruction(instruction, operands)
    return np.asarray(result != result)


def _narrow_places(instruction: Instruction, *operands: np.ndarray) -> bool:
    """Where an operand of a scatter has more places than its indices of that type can number."""
    indices = element_type_of(operands[len(operands) // 2].dtype)
    numbered = instruction.attributes["scatter_dims_to_operand_dims"]
    most = max((operands[0].shape[d] for d in numbered), default=0)
    if indices.is_signed:
        return most > 1 << (indices.bits - 1)
    return indices.bits < 8 and most > 1 << indices.bits


def _many_narrow(instruction: Instruction, *operands: np.ndarray) -> bool:
    return len(operands) > 2 and any(
        element_type_of(o.dtype).is_floating and o.dtype.itemsize < 4 and o.size > 8
        for o in operands
    )


MANY_ELEMENTS: list[Difference] = [
    Difference(
        ["SelectAndScatter"],
        "XLA compares elements in an order of its own, which decides among equal ones",
        _with_ties,
    ),
    Difference(
        ["BatchNormTraining"],
        "XLA takes the square of the mean from the mean of the squares, which leaves little of a "
        "small variance",
        _cancelling,
    ),
    Difference(
        ["Reduce"],
        "XLA drops a reduction over one element, and the initial value with it",
        _over_one,
    ),
    Difference(
        ["Reduce"],
        "XLA reduces long dimensions in stages, each of which takes the initial value again",
        _in_stages,
    ),
    Difference(
        ["Reduce"],
        "XLA keeps NaN in minima and maxima, but not in those of 4,096 elements and more",
        _lost_nan,
    ),
    Difference(
        ["Scatter"],
        "XLA compares signed indices, and those of few bits, with the last place in their own "
        "type, in which that may wrap",
        _narrow_places,
    ),
    Difference(
        ["Reduce", "ReduceWindow"],
        "of several operands, XLA sums those of a narrow type in that type, one after the other",
        _many_narrow,
    ),
]
