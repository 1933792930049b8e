"""Which dimensions of an op's operands and results run together: a rule for each op.

    dot(f32[8,4], f32[4,6])       operands [[m, k], [k, n]], result [m, n], k is summed over

A dimension with a label may be split: each partition then does the op on its part, and what it has
of a dimension that is reduced is combined with the others'. A dimension without one (None) must be
whole. Results along a label depend on the operands at the same index alone, or are reduced.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tracejit.graph import Computation, Instruction
from tracejit.ops.computations import identity_value, monoid, scalar_computation
from tracejit.ops.constants import CONSTANT
from tracejit.ops.contraction import DOT_GENERAL
from tracejit.ops.control import MAP
from tracejit.ops.convolution import CONV_GENERAL_DILATED
from tracejit.ops.dumps import COPY
from tracejit.ops.element_types import BITCAST_CONVERT_TYPE
from tracejit.ops.indexing import GATHER, SCATTER
from tracejit.ops.layout import (
    BROADCAST_IN_DIM,
    CONCATENATE,
    DYNAMIC_SLICE,
    DYNAMIC_UPDATE_SLICE,
    PAD,
    RESHAPE,
    REV,
    SLICE,
    TRANSPOSE,
)
from tracejit.ops.linalg import CHOLESKY, TRIANGULAR_SOLVE
from tracejit.ops.reduction import REDUCE, SORT, TOP_K
from tracejit.ops.spectra import FFT
from tracejit.ops.windows import REDUCE_WINDOW, SELECT_AND_SCATTER
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
    if not all(isinstance(operand.shape, Shape) for operand in instruction.operands):
        return None
    rule = rules.get(instruction.op)
    if rule is not None:
        return rule(instruction)
    return _elementwise(instruction) if instruction.op.is_elementwise else None


def local_attributes(
    instruction: Instruction, operand: Shape, result: Shape, splits: Sequence[bool]
) -> dict[str, Any]:
    """The attributes of an op on parts: sizes that stand in them are those of the parts.

    ``operand`` is the part of the first operand; ``splits`` has a flag for each of its dimensions.
    """
    attributes = dict(instruction.attributes)
    if isinstance(attributes.get("shape"), Shape):
        attributes["shape"] = result
    if instruction.op is SLICE:
        attributes["slice"] = tuple(
            replace(each, limit=size) if is_split else each
            for each, size, is_split in zip(
                attributes["slice"], operand.dimensions, splits, strict=True
            )
        )
    for name in ("slice_sizes", "dynamic_slice_sizes"):
        if name in attributes:
            attributes[name] = tuple(
                min(given, size) if is_split else given
                for given, size, is_split in zip(
                    attributes[name], operand.dimensions, splits, strict=True
                )
            )
    return attributes


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


@rules.attach(SELECT_AND_SCATTER)
def select_and_scatter(instruction: Instruction) -> Labelling:
    """Windows that are one element of a dimension leave it as it is."""
    moved = [
        d
        for d, w in enumerate(instruction.attributes["window"])
        if (w.size, w.stride, w.padding_low, w.padding_high) != (1, 1, 0, 0)
    ]
    kept = _but(instruction.array_shape, moved)
    return Labelling([kept, kept, []], kept)


@rules.attach(BITCAST_CONVERT_TYPE)
def bitcast_convert_type(instruction: Instruction) -> Labelling:
    """The last dimension of one of them may be the bytes of an element."""
    given, made = instruction.operands[0].array_shape.rank, instruction.array_shape.rank
    labels: Labels = list(range(min(given, made)))
    more: Labels = [None]
    return Labelling([labels + more * (given - len(labels))], labels + more * (made - len(labels)))


@rules.attach(MAP)
def map_(instruction: Instruction) -> Labelling:
    return _elementwise(instruction)


def _by_batch(instruction: Instruction, inner: int) -> Labelling:
    """All but the last dimensions."""
    ranks = [operand.array_shape.rank for operand in instruction.operands]
    operands, (results,) = (
        [[*range(rank - inner), *[None] * inner] for rank in each] for each in (ranks, ranks[-1:])
    )
    return Labelling(operands, results)


@rules.attach(TOP_K)
def top_k(instruction: Instruction) -> Labelling:
    return _by_batch(instruction, 1)


@rules.attach(CHOLESKY)
def cholesky(instruction: Instruction) -> Labelling:
    return _by_batch(instruction, 2)


@rules.attach(TRIANGULAR_SOLVE)
def triangular_solve(instruction: Instruction) -> Labelling:
    """By batch, and by right-hand sides."""
    labels = _by_batch(instruction, 2)
    side = instruction.array_shape.rank - (1 if instruction.attributes["left_side"] else 2)
    labels.operands[1][side] = labels.results[side] = "right-hand sides"
    return Labelling(labels.operands, list(labels.operands[1]))


@rules.attach(FFT)
def fft(instruction: Instruction) -> Labelling:
    return _by_batch(instruction, len(instruction.attributes["fft_length"]))


@rules.attach(DYNAMIC_SLICE)
def dynamic_slice(instruction: Instruction) -> Labelling:
    """Dimensions that are taken whole, whatever their start."""
    given = instruction.operands[0].array_shape
    sizes = instruction.array_shape.dimensions
    kept = _but(given, [d for d, size in enumerate(sizes) if size != given.dimensions[d]])
    return Labelling([kept, *[[]] * given.rank], kept)


@rules.attach(DYNAMIC_UPDATE_SLICE)
def dynamic_update_slice(instruction: Instruction) -> Labelling:
    """Dimensions that are written whole, whatever their start."""
    given, update = (o.array_shape for o in instruction.operands[:2])
    sizes = update.dimensions
    kept = _but(given, [d for d, size in enumerate(sizes) if size != given.dimensions[d]])
    return Labelling([kept, kept, *[[]] * given.rank], kept)


@dataclass(frozen=True)
class _Windows:
    """How Gather and Scatter read their dimensions: the labels of the three arrays."""

    operand: Labels
    indices: Labels
    windows: Labels


def _windows(
    operand: Shape,
    indices: Shape,
    windows: Shape,
    inner: Sequence[int],
    removed: Sequence[int],
    batching: tuple[Sequence[int], Sequence[int]],
    index_vector_dim: int,
) -> _Windows:
    """Windows that take a dimension whole leave it as it is; batching dimensions run together."""
    sources: Labels = [None] * operand.rank
    at: Labels = [None if d == index_vector_dim else ("index", d) for d in range(indices.rank)]
    for number, (source, index) in enumerate(zip(*batching, strict=True)):
        sources[source] = at[index] = ("batch", number)
    made: Labels = [None] * windows.rank
    kept = [d for d in range(operand.rank) if d not in (*removed, *batching[0])]
    for d, place in zip(kept, inner, strict=True):
        if windows.dimensions[place] == operand.dimensions[d]:
            sources[d] = made[place] = ("window", d)
    outer = iter([label for d, label in enumerate(at) if d != index_vector_dim])
    for place in range(windows.rank):
        if place not in inner:
            made[place] = next(outer)
    return _Windows(sources, at, made)


@rules.attach(GATHER)
def gather(instruction: Instruction) -> Labelling:
    """By the indices, by what is taken whole, and by batch."""
    a = instruction.attributes
    operand, indices = (o.array_shape for o in instruction.operands)
    labels = _windows(
        operand,
        indices,
        instruction.array_shape,
        a["offset_dims"],
        a["collapsed_slice_dims"],
        (a["operand_batching_dims"], a["start_indices_batching_dims"]),
        a["index_vector_dim"],
    )
    return Labelling([labels.operand, labels.indices], labels.windows)


@rules.attach(SCATTER)
def scatter(instruction: Instruction) -> Labelling:
    """By what is written whole, and by batch; of sums and the like by the indices too.

    There each partition adds its updates to an array of its own, the first to the operand and the
    others to the identity, and the arrays are combined.
    """
    a = instruction.attributes
    shapes = [o.array_shape for o in instruction.operands]
    count = len(shapes) // 2
    labels = _windows(
        shapes[0],
        shapes[count],
        shapes[count + 1],
        a["update_window_dims"],
        a["inserted_window_dims"],
        (a["input_batching_dims"], a["scatter_indices_batching_dims"]),
        a["index_vector_dim"],
    )
    by_index = [x for x in labels.indices if x is not None and x not in labels.operand]
    combined = count == 1 and monoid(a["to_apply"]) is not None
    left_out = set() if combined else set(by_index)

    def kept(given: Labels) -> Labels:
        return [None if label in left_out else label for label in given]

    windows = [kept(labels.windows)] * count
    reduced = dict.fromkeys(by_index, a["to_apply"]) if combined else {}
    operands = [[labels.operand] * count, [kept(labels.indices)], windows]
    return Labelling([*itertools.chain(*operands)], labels.operand, reduced)


def pairs(labels: Sequence[Labels]) -> list[tuple[int, int, Hashable]]:
    """(operand, dimension, label) of every dimension that has a label."""
    return [
        (n, d, label)
        for n, operand in enumerate(labels)
        for d, label in zip(itertools.count(), operand, strict=False)
        if label is not None
    ]
