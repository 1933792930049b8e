"""Contractions in parts: RaggedDot, whose rows or sums fall into groups, and ScaledDot, by blocks.

ragged_dot(x, w, group_sizes, RAGGED_ROWS)      rows of x times the matrix of their group
scaled_dot(x, x_scale, w, w_scale, numbers)     (x * x_scale) (w * w_scale), a scale for each block
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from tracejit.attributes import Attribute, Kind
from tracejit.errors import AttributeValueError, ShapeError, TracejitError
from tracejit.graph import Instruction
from tracejit.ops.base import (
    FLOATING,
    INTEGRAL,
    define,
    make,
    require_array,
    require_element_type,
    require_same_element_type,
)
from tracejit.ops.contraction import DOT_GENERAL, DotDimensionNumbers, precisions
from tracejit.shapes import AnyShape, ElementType, Shape


@dataclass(frozen=True)
class RaggedDotDimensionNumbers:
    """Which dimension of ``lhs`` the groups divide, and which of ``rhs`` numbers them, if any."""

    dot_dimension_numbers: DotDimensionNumbers
    lhs_ragged_dimensions: tuple[int, ...]
    rhs_group_dimensions: tuple[int, ...] = ()


RAGGED_ROWS = RaggedDotDimensionNumbers(DotDimensionNumbers((1,), (1,)), (0,), (0,))
"""lhs [m, k], rhs [g, k, n], result [m, n]."""


class RaggedMode(enum.Enum):
    """What kind of dimension the groups divide."""

    ROWS = "lhs dimension that is neither batch nor contracting"
    CONTRACTING = "contracting dimension"
    BATCH = "batch dimension"


@dataclass(frozen=True)
class Ragged:
    """A RaggedDot's attributes, and what follows from them.

    ``prefix`` are the dimensions of lhs for each of whose elements there are group sizes.
    """

    numbers: DotDimensionNumbers
    ragged: int
    mode: RaggedMode
    prefix: tuple[int, ...]

    @staticmethod
    def of(numbers: DotDimensionNumbers, ragged: int, rank: int) -> Ragged:
        batch, contracting = numbers.lhs_batch_dimensions, numbers.lhs_contracting_dimensions
        rows = tuple(d for d in range(rank) if d not in batch + contracting)
        if ragged in batch:
            return Ragged(numbers, ragged, RaggedMode.BATCH, batch[: batch.index(ragged)])
        if ragged in contracting:
            outer = contracting[: contracting.index(ragged)]
            return Ragged(numbers, ragged, RaggedMode.CONTRACTING, batch + outer)
        return Ragged(numbers, ragged, RaggedMode.ROWS, batch + rows[: rows.index(ragged)])


def ragged_of(instruction: Instruction) -> Ragged:
    """What a RaggedDot's attributes mean."""
    a = instruction.attributes
    numbers = DotDimensionNumbers(
        a["lhs_contracting_dims"],
        a["rhs_contracting_dims"],
        a["lhs_batch_dims"],
        a["rhs_batch_dims"],
    )
    rank = instruction.operands[0].array_shape.rank
    return Ragged.of(numbers, a["lhs_ragged_dims"][0], rank)


def _dot_shape(
    function: str,
    lhs: Shape,
    rhs: Shape,
    numbers: DotDimensionNumbers,
    precision: tuple[str, ...],
    like: Shape,
) -> Shape:
    """What DotGeneral makes of these, by its own rule, in the element type of ``like``."""
    batch = [lhs.dimensions[d] for d in numbers.lhs_batch_dimensions if d < lhs.rank]
    left = numbers.lhs_batch_dimensions + numbers.lhs_contracting_dimensions
    right = numbers.rhs_batch_dimensions + numbers.rhs_contracting_dimensions
    sizes = [
        *batch,
        *(s for d, s in enumerate(lhs.dimensions) if d not in left),
        *(s for d, s in enumerate(rhs.dimensions) if d not in right),
    ]
    try:
        made = DOT_GENERAL.shape_rule(
            lhs,
            rhs,
            lhs_batch_dims=numbers.lhs_batch_dimensions,
            lhs_contracting_dims=numbers.lhs_contracting_dimensions,
            rhs_batch_dims=numbers.rhs_batch_dimensions,
            rhs_contracting_dims=numbers.rhs_contracting_dimensions,
            operand_precision=precision,
            shape=like.with_dimensions(sizes),
        )
    except TracejitError as error:
        message = error.message.replace("dot_general", function, 1)
        raise type(error)(message, error.source) from None
    assert isinstance(made, Shape)
    return made


def _ragged_shape(
    lhs: Shape,
    rhs: Shape,
    group_sizes: Shape,
    numbers: RaggedDotDimensionNumbers,
    precision: tuple[str, ...],
    like: Shape,
) -> Shape:
    function = "ragged_dot"
    dot, ragged = numbers.dot_dimension_numbers, numbers.lhs_ragged_dimensions
    if len(ragged) != 1 or not 0 <= ragged[0] < lhs.rank:
        raise AttributeValueError(
            f"{function}: lhs_ragged_dimensions must be one dimension of lhs {lhs}, not {ragged}"
        )
    require_element_type(function, "group_sizes", group_sizes, INTEGRAL)
    if not group_sizes.rank:
        raise ShapeError(f"{function}: group_sizes must have at least one dimension")
    groups = group_sizes.dimensions[-1]
    meaning = Ragged.of(dot, ragged[0], lhs.rank)
    prefix = tuple(lhs.dimensions[d] for d in meaning.prefix if 0 <= d < lhs.rank)
    if group_sizes.rank > 1 and group_sizes.dimensions[:-1] != prefix:
        raise ShapeError(
            f"{function}: group_sizes must have the dimensions [{groups}] or "
            f"{[*prefix, groups]}; group_sizes {group_sizes}, lhs {lhs}"
        )
    group = numbers.rhs_group_dimensions
    if meaning.mode is not RaggedMode.ROWS:
        if group:
            raise AttributeValueError(
                f"{function}: rhs_group_dimensions must be empty where lhs_ragged_dimensions is a "
                f"{meaning.mode.value}, not {group}"
            )
        made = _dot_shape(function, lhs, rhs, dot, precision, like)
        if meaning.mode is RaggedMode.BATCH:
            return made
        return made.with_dimensions((groups, *made.dimensions))
    taken = dot.rhs_batch_dimensions + dot.rhs_contracting_dimensions
    if len(group) != 1 or not 0 <= group[0] < rhs.rank or group[0] in taken:
        raise AttributeValueError(
            f"{function}: rhs_group_dimensions must be one dimension of rhs {rhs} that is neither "
            f"batch nor contracting, not {group}"
        )
    if rhs.dimensions[group[0]] != groups:
        raise ShapeError(
            f"{function}: rhs must have one entry for each group; group_sizes {group_sizes}, "
            f"rhs {rhs} dimension {group[0]} is {rhs.dimensions[group[0]]}"
        )
    # With one group more to sum over, it would be this DotGeneral.
    summed = DotDimensionNumbers(
        (*dot.lhs_contracting_dimensions, lhs.rank),
        (*dot.rhs_contracting_dimensions, group[0]),
        dot.lhs_batch_dimensions,
        dot.rhs_batch_dimensions,
    )
    return _dot_shape(
        function, lhs.with_dimensions((*lhs.dimensions, groups)), rhs, summed, precision, like
    )


@define(
    "RaggedDot",
    "ragged-dot",
    Attribute("lhs_batch_dims", Kind.INTS, ()),
    Attribute("lhs_contracting_dims", Kind.INTS, ()),
    Attribute("rhs_batch_dims", Kind.INTS, ()),
    Attribute("rhs_contracting_dims", Kind.INTS, ()),
    Attribute("lhs_ragged_dims", Kind.INTS, ()),
    Attribute("rhs_group_dims", Kind.INTS, ()),
    Attribute("operand_precision", Kind.PRECISIONS, ()),
    Attribute("shape", Kind.SHAPE),
)
def RAGGED_DOT(
    lhs: AnyShape,
    rhs: AnyShape,
    group_sizes: AnyShape,
    *,
    lhs_batch_dims: tuple[int, ...],
    lhs_contracting_dims: tuple[int, ...],
    rhs_batch_dims: tuple[int, ...],
    rhs_contracting_dims: tuple[int, ...],
    lhs_ragged_dims: tuple[int, ...],
    rhs_group_dims: tuple[int, ...],
    operand_precision: tuple[str, ...],
    shape: Shape,
) -> Shape:
    numbers = RaggedDotDimensionNumbers(
        DotDimensionNumbers(
            lhs_contracting_dims, rhs_contracting_dims, lhs_batch_dims, rhs_batch_dims
        ),
        lhs_ragged_dims,
        rhs_group_dims,
    )
    arrays = [
        require_array("ragged_dot", name, given)
        for name, given in (("lhs", lhs), ("rhs", rhs), ("group_sizes", group_sizes))
    ]
    made = _ragged_shape(arrays[0], arrays[1], arrays[2], numbers, operand_precision, shape)
    if made != shape:
        raise ShapeError(
            f"ragged_dot: the result of lhs {lhs} and rhs {rhs} is {made}, not {shape}"
        )
    return made


def ragged_dot(
    lhs: Instruction,
    rhs: Instruction,
    group_sizes: Instruction,
    dimension_numbers: RaggedDotDimensionNumbers = RAGGED_ROWS,
    precision_config: Sequence[str] | str | None = None,
    preferred_element_type: ElementType | None = None,
) -> Instruction:
    """`dot_general` in groups of consecutive elements along one dimension (XLA: RaggedDot).

    The groups divide the one ragged dimension of ``lhs``, ``group_sizes`` elements each; elements
    after the last group belong to none and count as zeros.

    - A dimension that is neither batch nor contracting: each group has its own ``rhs``, which its
      group dimension numbers.
    - A contracting dimension: each group has its own sum, which a new first dimension numbers.
    - A batch dimension: the groups change nothing.

    ``group_sizes`` is integral of shape [g], or has sizes for every element of the batch dimensions
    and of those dimensions of the ragged one's kind that come before it. Raises `ShapeError` when
    sizes do not fit.
    """
    left, right, sizes = (
        require_array("ragged_dot", name, given.shape)
        for name, given in (("lhs", lhs), ("rhs", rhs), ("group_sizes", group_sizes))
    )
    precision = precisions(precision_config)
    like = Shape(preferred_element_type or left.element_type)
    dot = dimension_numbers.dot_dimension_numbers
    return make(
        RAGGED_DOT,
        lhs,
        rhs,
        group_sizes,
        lhs_batch_dims=dot.lhs_batch_dimensions,
        lhs_contracting_dims=dot.lhs_contracting_dimensions,
        rhs_batch_dims=dot.rhs_batch_dimensions,
        rhs_contracting_dims=dot.rhs_contracting_dimensions,
        lhs_ragged_dims=dimension_numbers.lhs_ragged_dimensions,
        rhs_group_dims=dimension_numbers.rhs_group_dimensions,
        operand_precision=precision,
        shape=_ragged_shape(left, right, sizes, dimension_numbers, precision, like),
    )


def _require_scale(name: str, operand: Shape, scale: Shape) -> None:
    require_element_type("scaled_dot", f"{name}_scale", scale, FLOATING)
    if not scale.rank:
        return
    fits = scale.rank == operand.rank and all(
        part and size % part == 0 if size else part in (0, 1)
        for size, part in zip(operand.dimensions, scale.dimensions, strict=True)
    )
    if not fits:
        raise ShapeError(
            f"scaled_dot: {name}_scale must be a scalar, or have {name}'s rank and divide its "
            f"sizes; {name} {operand}, {name}_scale {scale}"
        )


@define(
    "ScaledDot",
    "scaled-dot",
    Attribute("lhs_batch_dims", Kind.INTS, ()),
    Attribute("lhs_contracting_dims", Kind.INTS, ()),
    Attribute("rhs_batch_dims", Kind.INTS, ()),
    Attribute("rhs_contracting_dims", Kind.INTS, ()),
    Attribute("operand_precision", Kind.PRECISIONS, ()),
    Attribute("shape", Kind.SHAPE),
)
def SCALED_DOT(
    lhs: AnyShape,
    rhs: AnyShape,
    lhs_scale: AnyShape,
    rhs_scale: AnyShape,
    *,
    lhs_batch_dims: tuple[int, ...],
    lhs_contracting_dims: tuple[int, ...],
    rhs_batch_dims: tuple[int, ...],
    rhs_contracting_dims: tuple[int, ...],
    operand_precision: tuple[str, ...],
    shape: Shape,
) -> Shape:
    left, right, left_scale, right_scale = (
        require_array("scaled_dot", name, given)
        for name, given in (
            ("lhs", lhs),
            ("rhs", rhs),
            ("lhs_scale", lhs_scale),
            ("rhs_scale", rhs_scale),
        )
    )
    require_element_type("scaled_dot", "lhs", left, FLOATING)
    require_same_element_type("scaled_dot", lhs=left, rhs=right)
    numbers = DotDimensionNumbers(
        lhs_contracting_dims, rhs_contracting_dims, lhs_batch_dims, rhs_batch_dims
    )
    made = _dot_shape("scaled_dot", left, right, numbers, operand_precision, shape)
    _require_scale("lhs", left, left_scale)
    _require_scale("rhs", right, right_scale)
    if made != shape:
        raise ShapeError(
            f"scaled_dot: the result of lhs {lhs} and rhs {rhs} is {made}, not {shape}"
        )
    return made


def scaled_dot(
    lhs: Instruction,
    lhs_scale: Instruction,
    rhs: Instruction,
    rhs_scale: Instruction,
    dimension_numbers: DotDimensionNumbers,
    precision_config: Sequence[str] | str | None = None,
    preferred_element_type: ElementType | None = None,
) -> Instruction:
    """`dot_general` of operands that are scaled block by block (XLA: ScaledDot).

    ``lhs`` and ``rhs`` are floating, of one element type; a scale is a floating scalar, or an array
    of its operand's rank whose sizes divide the operand's: each of its elements multiplies a block.
    Products are taken and summed in f32 (f64 where something is). Raises `ShapeError` when sizes do
    not fit.
    """
    left = require_array("scaled_dot", "lhs", lhs.shape)
    right = require_array("scaled_dot", "rhs", rhs.shape)
    precision = precisions(precision_config)
    like = Shape(preferred_element_type or left.element_type)
    return make(
        SCALED_DOT,
        lhs,
        rhs,
        lhs_scale,
        rhs_scale,
        lhs_batch_dims=dimension_numbers.lhs_batch_dimensions,
        lhs_contracting_dims=dimension_numbers.lhs_contracting_dimensions,
        rhs_batch_dims=dimension_numbers.rhs_batch_dimensions,
        rhs_contracting_dims=dimension_numbers.rhs_contracting_dimensions,
        operand_precision=precision,
        shape=_dot_shape("scaled_dot", left, right, dimension_numbers, precision, like),
    )
