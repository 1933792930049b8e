"""Which dimensions of an op's operands and results run together: a rule for each op.

    dot(f32[8,4], f32[4,6])       operands [[m, k], [k, n]], result [m, n], k is summed over

A dimension with a label may be split: each partition then does the op on its part, and what it has
of a dimension that is reduced is combined with the others'. A dimension without one (None) must be
whole.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tracejit.graph import Computation, Instruction
from tracejit.ops.computations import identity_value, monoid, scalar_computation
from tracejit.ops.constants import CONSTANT
from tracejit.ops.contraction import DOT_GENERAL
from tracejit.ops.convolution import CONV_GENERAL_DILATED
from tracejit.ops.dumps import COPY
from tracejit.ops.indexing import GATHER
from tracejit.ops.layout import (
    BROADCAST_IN_DIM,
    CONCATENATE,
    PAD,
    RESHAPE,
    REV,
    SLICE,
    TRANSPOSE,
)
from tracejit.ops.reduction import REDUCE, SORT
from tracejit.ops.windows import REDUCE_WINDOW
from tracejit.rules import RuleTable
from tracejit.shapes import Shape

Labels = list[Hashable]


@dataclass(frozen=True)
class Labelling:
    """The labels of each operand's dimensions and of each result's, and how some are reduced."""

    operands: list[Labels]
    results: Labels
    reduced: Mapping[Hashable, Computation] = field(default_factory=dict)


Rule = Callable[[Instruction], Labelling]
rules: RuleTable[Rule] = RuleTable("partitioning")


def labelling(instruction: Instruction) -> Labelling | None:
    """The labels of an op's dimensions; None for an op that has no rule."""
    rule = rules.get(instruction.op)
    if rule is not None:
        return rule(instruction)
    return _elementwise(instruction) if instruction.op.is_elementwise else None


def _every(shape: Shape) -> Labels:
    return list(range(shape.rank))


def _elementwise(instruction: Instruction) -> Labelling:
    operands = [_every(operand.array_shape) for operand in instruction.operands]
    return Labelling(operands, _every(instruction.array_shape))


def _but(shape: Shape, excepted: Sequence[int]) -> Labels:
    return [None if d in excepted else d for d in range(shape.rank)]


@rules.attach(COPY)
def copy(instruction: Instruction) -> Labelling:
    return _elementwise(instruction)


@rules.attach(BROADCAST_IN_DIM)
def broadcast_in_dim(instruction: Instruction) -> Labelling:
    dimensions = list(instruction.attributes["dimensions"])
    return Labelling([dimensions], _every(instruction.array_shape))


@rules.attach(RESHAPE)
def reshape(instruction: Instruction) -> Labelling:
    """Dimensions before which equally many elements lie run together: the first of each group."""
    given, made = instruction.operands[0].array_shape, instruction.array_shape
    places: dict[int, int] = {}
    for d, size in enumerate(given.dimensions):
        if size > 1:
            places[math.prod(given.dimensions[:d])] = d
    results: Labels = [
        places.get(math.prod(made.dimensions[:d])) if size > 1 else None
        for d, size in enumerate(made.dimensions)
    ]
    return Labelling([[d if d in results else None for d in _every(given)]], results)


@rules.attach(TRANSPOSE)
def transpose(instruction: Instruction) -> Labelling:
    given = instruction.operands[0].array_shape
    return Labelling([_every(given)], list(instruction.attributes["dimensions"]))


@rules.attach(REV)
def rev(instruction: Instruction) -> Labelling:
    kept = _but(instruction.array_shape, instruction.attributes["dimensions"])
    return Labelling([kept], kept)


@rules.attach(PAD)
def pad(instruction: Instruction) -> Labelling:
    padding = instruction.attributes["padding"]
    padded = [d for d, p in enumerate(padding) if (p.low, p.high, p.interior) != (0, 0, 0)]
    kept = _but(instruction.array_shape, padded)
    return Labelling([kept, []], kept)


@rules.attach(CONCATENATE)
def concatenate(instruction: Instruction) -> Labelling:
    kept = _but(instruction.array_shape, instruction.attributes["dimensions"])
    return Labelling([kept] * len(instruction.operands), kept)


@rules.attach(SLICE)
def slice_(instruction: Instruction) -> Labelling:
    given = instruction.operands[0].array_shape
    kept = _but(given, [d for d, n in enumerate(instruction.array_shape.dimensions)
                        if n != given.dimensions[d]])  # fmt: skip
    return Labelling([kept], kept)


@rules.attach(REDUCE)
def reduce(instruction: Instruction) -> Labelling:
    """Parts are combined where the initial value changes nothing."""
    dimensions = instruction.attributes["dimensions"]
    computation = instruction.attributes["to_apply"]
    count = len(instruction.operands) // 2
    given = instruction.operands[0].array_shape
    is_split = count == 1 and _is_identity(instruction.operands[1], computation)
    labels = _every(given) if is_split else _but(given, dimensions)
    results: Labels = [d for d in range(given.rank) if d not in dimensions]
    reduced = dict.fromkeys(dimensions, computation) if is_split else {}
    return Labelling([labels] * count + [[]] * count, results, reduced)


def _is_identity(value: Instruction, computation: Computation) -> bool:
    op = monoid(computation)
    if value.op is not CONSTANT or op is None:
        return False
    literal = np.asarray(value.attributes["literal"])
    return bool(literal == identity_value(op.function, value.array_shape.element_type))


@rules.attach(REDUCE_WINDOW)
def reduce_window(instruction: Instruction) -> Labelling:
    """Windows that are one element of a dimension leave it as it is."""
    if len(instruction.operands) != 2:
        return Labelling(
            [[None] * o.array_shape.rank for o in instruction.operands],
            [None] * instruction.operands[0].array_shape.rank,
        )
    window = instruction.attributes["window"]
    moved = [
        d
        for d, w in enumerate(window)
        if (w.size, w.stride, w.padding_low, w.padding_high, w.base_dilation) != (1, 1, 0, 0, 1)
    ]
    kept = _but(instruction.array_shape, moved)
    return Labelling([kept, []], kept)


@rules.attach(SORT)
def sort(instruction: Instruction) -> Labelling:
    kept = _but(instruction.operands[0].array_shape, instruction.attributes["dimensions"])
    return Labelling([kept] * len(instruction.operands), kept)


def _sum(instruction: Instruction) -> Computation:
    return scalar_computation("add", instruction.array_shape.element_type)


@rules.attach(DOT_GENERAL)
def dot_general(instruction: Instruction) -> Labelling:
    a = instruction.attributes
    lhs, rhs = (
        [(side, d) for d in range(operand.array_shape.rank)]
        for side, operand in enumerate(instruction.operands)
    )
    batch = list(zip(a["lhs_batch_dims"], a["rhs_batch_dims"], strict=True))
    contracted = list(zip(a["lhs_contracting_dims"], a["rhs_contracting_dims"], strict=True))
    left: Labels = list(lhs)
    right: Labels = list(rhs)
    for at, (i, j) in enumerate([*batch, *contracted]):
        left[i] = right[j] = ("both", at)
    free = [d for d in left if d in lhs] + [d for d in right if d in rhs]
    results: Labels = [*[left[i] for i, _ in batch], *free]
    reduced = dict.fromkeys([left[i] for i, _ in contracted], _sum(instruction))
    return Labelling([left, right], results, reduced)


@rules.attach(CONV_GENERAL_DILATED)
def conv(instruction: Instruction) -> Labelling:
    """By batch and, where there is one group, by features; windows are whole."""
    numbers, a = instruction.attributes["dim_labels"], instruction.attributes
    lhs, rhs = (instruction.operands[n].array_shape.rank for n in (0, 1))
    base: Labels = [None] * lhs
    kernel: Labels = [None] * rhs
    results: Labels = [None] * instruction.array_shape.rank
    reduced: dict[Hashable, Computation] = {}
    if a["batch_group_count"] == 1:
        base[numbers.input_batch_dimension] = "batch"
        results[numbers.output_batch_dimension] = "batch"
    if a["feature_group_count"] == a["batch_group_count"] == 1:
        base[numbers.input_feature_dimension] = "features"
        kernel[numbers.kernel_input_feature_dimension] = "features"
        kernel[numbers.kernel_output_feature_dimension] = "made"
        results[numbers.output_feature_dimension] = "made"
        reduced["features"] = _sum(instruction)
    return Labelling([base, kernel], results, reduced)


@rules.attach(GATHER)
def gather(instruction: Instruction) -> Labelling:
    """By the indices; the array that is indexed is whole."""
    a = instruction.attributes
    operand, indices = (o.array_shape for o in instruction.operands)
    at = _but(indices, [a["index_vector_dim"]])
    if a["start_indices_batching_dims"]:
        at = [None] * indices.rank
    batch = iter([label for d, label in enumerate(at) if d != a["index_vector_dim"]])
    rank = instruction.array_shape.rank
    results = [None if d in a["offset_dims"] else next(batch) for d in range(rank)]
    return Labelling([[None] * operand.rank, at], results)


def pairs(labels: Sequence[Labels]) -> list[tuple[int, int, Hashable]]:
    """(operand, dimension, label) of every dimension that has a label."""
    return [
        (n, d, label)
        for n, operand in enumerate(labels)
        for d, label in zip(itertools.count(), operand, strict=False)
        if label is not None
    ]
