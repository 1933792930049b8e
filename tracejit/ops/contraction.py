"""The op that sums products, DotGeneral, with XLA's shorter form of it.

dot(a, b)                                               vectors and matrices
dot_general(a, b, DotDimensionNumbers((2,), (1,), (0,), (0,)))           a batch of matrices
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from tracejit.attributes import Attribute, Kind, Numbers
from tracejit.errors import AttributeValueError, ElementTypeError, ShapeError
from tracejit.graph import Instruction
from tracejit.ops.base import (
    define,
    make,
    require_array,
    require_same_element_type,
    require_unique_dimensions,
)
from tracejit.ops.mixed_types import of_one_type
from tracejit.shapes import AnyShape, ElementType, Shape

_PRECISIONS = ("default", "high", "highest")


@dataclass(frozen=True)
class DotDimensionNumbers(Numbers):
    """Which dimensions of both operands are summed over, and which run in step."""

    lhs_contracting_dimensions: tuple[int, ...] = ()
    rhs_contracting_dimensions: tuple[int, ...] = ()
    lhs_batch_dimensions: tuple[int, ...] = ()
    rhs_batch_dimensions: tuple[int, ...] = ()


def require_precisions(function: str, operand_precision: tuple[str, ...]) -> None:
    """Raises `AttributeValueError` unless none or two of XLA's precisions are given."""
    if len(operand_precision) not in (0, 2) or any(p not in _PRECISIONS for p in operand_precision):
        raise AttributeValueError(
            f"{function}: precision_config must be two of {', '.join(_PRECISIONS)}, "
            f"not {operand_precision}"
        )


def precisions(precision_config: Sequence[str] | str | None) -> tuple[str, ...]:
    """HLO's form: empty where everything is default."""
    if precision_config is None:
        return ()
    if isinstance(precision_config, str):
        precision_config = (precision_config, precision_config)
    names = tuple(name.lower() for name in precision_config)
    return () if all(name == "default" for name in names) else names


def require_preferred(function: str, operand: Shape, preferred: ElementType) -> None:
    """The result's type may not lose what the operands' kind can hold."""
    given = operand.element_type
    fits = {
        given.is_complex: preferred.is_complex,
        given.is_floating: preferred.is_floating,
        given.is_integral: preferred.is_floating
        or (preferred.is_integral and preferred.bits >= given.bits),
        given is ElementType.PRED: preferred is ElementType.PRED,
    }[True]
    if not fits:
        raise ElementTypeError(
            f"{function}: preferred_element_type {preferred} does not fit operands of element "
            f"type {given}; integers may become floating or wider integers, other types keep "
            f"their kind"
        )


@functools.lru_cache(maxsize=1024)
def _dot_sizes(lhs: AnyShape, rhs: AnyShape, numbers: DotDimensionNumbers) -> tuple[int, ...]:
    """The result's dimensions: batch, then the other ones of ``lhs``, then of ``rhs``."""
    left = require_array("dot_general", "lhs", lhs)
    right = require_array("dot_general", "rhs", rhs)
    require_same_element_type("dot_general", lhs=left, rhs=right)
    lhs_contracting = numbers.lhs_contracting_dimensions
    rhs_contracting = numbers.rhs_contracting_dimensions
    lhs_batch, rhs_batch = numbers.lhs_batch_dimensions, numbers.rhs_batch_dimensions
    for side, shape, contracting, batch in (
        ("lhs", left, lhs_contracting, lhs_batch),
        ("rhs", right, rhs_contracting, rhs_batch),
    ):
        require_unique_dimensions(
            "dot_general",
            f"{side}_batch_dimensions and {side}_contracting_dimensions of {shape}",
            (*batch, *contracting),
            shape.rank,
        )
    for kind, of_lhs, of_rhs in (
        ("contracting", lhs_contracting, rhs_contracting),
        ("batch", lhs_batch, rhs_batch),
    ):
        if len(of_lhs) != len(of_rhs):
            raise AttributeValueError(
                f"dot_general: lhs and rhs must have equally many {kind} dimensions; "
                f"lhs {of_lhs}, rhs {of_rhs}"
            )
        for i, j in zip(of_lhs, of_rhs, strict=True):
            if left.dimensions[i] != right.dimensions[j]:
                raise ShapeError(
                    f"dot_general: {kind} dimensions must have equal sizes; lhs {left} dimension "
                    f"{i} is {left.dimensions[i]}, rhs {right} dimension {j} is "
                    f"{right.dimensions[j]}"
                )
    return (
        *[left.dimensions[d] for d in lhs_batch],
        *[s for d, s in enumerate(left.dimensions) if d not in lhs_batch + lhs_contracting],
        *[s for d, s in enumerate(right.dimensions) if d not in rhs_batch + rhs_contracting],
    )


@define(
    "DotGeneral",
    "dot",
    Attribute("lhs_batch_dims", Kind.INTS, ()),
    Attribute("lhs_contracting_dims", Kind.INTS, ()),
    Attribute("rhs_batch_dims", Kind.INTS, ()),
    Attribute("rhs_contracting_dims", Kind.INTS, ()),
    Attribute("operand_precision", Kind.PRECISIONS, ()),
    Attribute("shape", Kind.SHAPE),
)
def DOT_GENERAL(
    lhs: AnyShape,
    rhs: AnyShape,
    *,
    lhs_batch_dims: tuple[int, ...],
    lhs_contracting_dims: tuple[int, ...],
    rhs_batch_dims: tuple[int, ...],
    rhs_contracting_dims: tuple[int, ...],
    operand_precision: tuple[str, ...],
    shape: Shape,
) -> Shape:
    numbers = DotDimensionNumbers(
        lhs_contracting_dims, rhs_contracting_dims, lhs_batch_dims, rhs_batch_dims
    )
    sizes = _dot_sizes(lhs, rhs, numbers)
    require_precisions("dot_general", operand_precision)
    require_preferred("dot_general", require_array("dot_general", "lhs", lhs), shape.element_type)
    if shape.dimensions != sizes:
        raise ShapeError(
            f"dot_general: the result of lhs {lhs} and rhs {rhs} has dimensions {sizes}, "
            f"not {shape}"
        )
    return shape.with_dimensions(sizes)


def dot_general(
    lhs: Instruction,
    rhs: Instruction,
    dimension_numbers: DotDimensionNumbers,
    precision_config: Sequence[str] | str | None = None,
    preferred_element_type: ElementType | None = None,
) -> Instruction:
    """Sums of products over the contracting dimensions, batch dimensions in step (XLA: DotGeneral).

    The result's dimensions are the batch dimensions, then the others of ``lhs``, then of ``rhs``.
    ``precision_config`` is default, high or highest, for both operands or each. Operands of two
    element types are converted to one that holds both. Raises
    `ShapeError` when paired sizes differ.
    """
    lhs, rhs = of_one_type(lhs, rhs, preferred_element_type)
    sizes = _dot_sizes(lhs.shape, rhs.shape, dimension_numbers)
    element_type = preferred_element_type or lhs.array_shape.element_type
    return make(
        DOT_GENERAL,
        lhs,
        rhs,
        lhs_batch_dims=dimension_numbers.lhs_batch_dimensions,
        lhs_contracting_dims=dimension_numbers.lhs_contracting_dimensions,
        rhs_batch_dims=dimension_numbers.rhs_batch_dimensions,
        rhs_contracting_dims=dimension_numbers.rhs_contracting_dimensions,
        operand_precision=precisions(precision_config),
        shape=Shape(element_type, tuple(sizes)),
    )


def dot(
    lhs: Instruction,
    rhs: Instruction,
    precision_config: Sequence[str] | str | None = None,
    preferred_element_type: ElementType | None = None,
) -> Instruction:
    """The product of vectors or matrices (XLA: Dot).

    Sums over the last dimension of ``lhs`` and the first of ``rhs``. Raises `ShapeError` when
    these differ or a rank is not 1 or 2.
    """
    left = require_array("dot", "lhs", lhs.shape)
    right = require_array("dot", "rhs", rhs.shape)
    if left.rank not in (1, 2) or right.rank not in (1, 2):
        raise ShapeError(f"dot: operands must have rank 1 or 2; lhs {left}, rhs {right}")
    numbers = DotDimensionNumbers((left.rank - 1,), (0,))
    return dot_general(lhs, rhs, numbers, precision_config, preferred_element_type)
