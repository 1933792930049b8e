"""Ops that move elements without changing them: broadcast, reshape, transpose, slice, pad …"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tracejit.attributes import Attribute, Kind
from tracejit.errors import AttributeValueError, ShapeError
from tracejit.graph import Instruction
from tracejit.ops.base import define, make, require_array
from tracejit.ops.constants import constant
from tracejit.shapes import AnyShape, ElementType, Shape


@define(
    "BroadcastInDim",
    "broadcast",
    Attribute("dimensions", Kind.INTS),
    Attribute("shape", Kind.SHAPE),
)
def BROADCAST_IN_DIM(operand: AnyShape, *, dimensions: tuple[int, ...], shape: Shape) -> Shape:
    source = require_array("broadcast_in_dim", "operand", operand)
    if len(dimensions) != source.rank:
        raise ShapeError(
            f"broadcast_in_dim: broadcast_dimensions {dimensions} must name one result dimension "
            f"for each dimension of operand {source}"
        )
    if list(dimensions) != sorted(set(dimensions)):
        raise AttributeValueError(
            f"broadcast_in_dim: broadcast_dimensions {dimensions} must be strictly increasing"
        )
    for position, dimension in enumerate(dimensions):
        if not 0 <= dimension < shape.rank:
            raise AttributeValueError(
                f"broadcast_in_dim: broadcast_dimensions {dimensions} must be below the result's "
                f"rank, {shape}"
            )
        if source.dimensions[position] != shape.dimensions[dimension]:
            raise ShapeError(
                f"broadcast_in_dim: operand {source} dimension {position} is "
                f"{source.dimensions[position]}, result {shape} dimension {dimension} is "
                f"{shape.dimensions[dimension]}"
            )
    return Shape(source.element_type, shape.dimensions)


def broadcast_in_dim(
    operand: Instruction, out_dim_size: Sequence[int], broadcast_dimensions: Sequence[int]
) -> Instruction:
    """``operand`` repeated to ``out_dim_size``; its dimension i is ``broadcast_dimensions[i]``.

    Dimensions of size 1 stretch. ``broadcast_dimensions`` must be strictly increasing
    (XLA: BroadcastInDim). Raises `ShapeError` when another size differs.
    """
    source = require_array("broadcast_in_dim", "operand", operand.shape)
    sizes, dimensions = tuple(out_dim_size), tuple(broadcast_dimensions)
    if sizes == source.dimensions and dimensions == tuple(range(source.rank)):
        return operand
    stretched = [
        i
        for i, d in enumerate(dimensions[: source.rank])
        if 0 <= d < len(sizes) and source.dimensions[i] == 1 != sizes[d]
    ]
    if stretched and len(dimensions) == source.rank:
        # HLO's broadcast never stretches, so size-1 dimensions are dropped first.
        kept = [i for i in range(source.rank) if i not in stretched]
        operand = reshape(operand, [source.dimensions[i] for i in kept])
        dimensions = tuple(dimensions[i] for i in kept)
    shape = Shape(source.element_type, sizes)
    return make(BROADCAST_IN_DIM, operand, dimensions=dimensions, shape=shape)


def broadcast(operand: Instruction, broadcast_sizes: Sequence[int]) -> Instruction:
    """``operand`` repeated along new leading dimensions (XLA: Broadcast)."""
    source = require_array("broadcast", "operand", operand.shape)
    sizes = (*broadcast_sizes, *source.dimensions)
    return broadcast_in_dim(operand, sizes, range(len(sizes) - source.rank, len(sizes)))


def full(shape: Shape, value: complex) -> Instruction:
    """An array filled with one value."""
    scalar = constant(value, shape.element_type)
    return broadcast_in_dim(scalar, shape.dimensions, ())


def full_like(operand: Instruction, value: complex) -> Instruction:
    """An array of the operand's shape and element type, filled with one value."""
    return full(operand.array_shape, value)


@define("Reshape", "reshape", Attribute("shape", Kind.SHAPE))
def RESHAPE(operand: AnyShape, *, shape: Shape) -> Shape:
    source = require_array("reshape", "operand", operand)
    if any(size < 0 for size in shape.dimensions):
        raise AttributeValueError(f"reshape: dimensions {shape.dimensions} must not be negative")
    if math.prod(shape.dimensions) != source.size:
        raise ShapeError(
            f"reshape: operand {source} has {source.size} elements, "
            f"{list(shape.dimensions)} has {math.prod(shape.dimensions)}"
        )
    return Shape(source.element_type, shape.dimensions)


def reshape(operand: Instruction, dimensions: Sequence[int]) -> Instruction:
    """The same elements in row-major order under other dimensions (XLA: Reshape).

    Raises `ShapeError` when the number of elements differs.
    """
    source = require_array("reshape", "operand", operand.shape)
    if tuple(dimensions) == source.dimensions:
        return operand
    shape = Shape(source.element_type, tuple(dimensions))
    return make(RESHAPE, operand, shape=shape)


def scalar_like(operand: Instruction, value: complex) -> Instruction:
    """A rank-0 constant of the operand's element type."""
    return constant(value, element_type_of_instruction(operand))


def element_type_of_instruction(operand: Instruction) -> ElementType:
    return operand.array_shape.element_type
