"""How a view reads from the array it was cut from, and how what is written to it gets back.

A path is one step from a base to a view: Permute((1, 0)) is ``x.T``. Strides, counted in
elements of the base's memory as NumPy would lay it out, decide whether a reshape is a view.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tracejit.errors import ReadOnlyError, ShapeError
from tracejit.graph import Instruction
from tracejit.ops import elementwise, elementwise_unary, layout
from tracejit.ops.element_types import bitcast_convert_type
from tracejit.shapes import ElementType, Shape

Strides = tuple[int, ...]


class Path(Protocol):
    """One step from a base to a view of it."""

    def read(self, base: Instruction) -> Instruction:
        """The view's value."""

    def write(self, base: Instruction, value: Instruction) -> Instruction:
        """The base's value after ``value``, of the view's shape, was written to the view."""

    def __hash__(self) -> int: ...

    def strides(self, shape: tuple[int, ...], strides: Strides) -> Strides | None:
        """The view's strides, given the base's shape and strides; None when they are not needed."""


@dataclass(frozen=True, slots=True)
class Permute:
    """The base's dimensions in another order."""

    permutation: tuple[int, ...]

    def read(self, base: Instruction) -> Instruction:
        return layout.transpose(base, self.permutation)

    def write(self, base: Instruction, value: Instruction) -> Instruction:
        inverse = sorted(range(len(self.permutation)), key=self.permutation.__getitem__)
        return layout.transpose(value, inverse)

    def strides(self, shape: tuple[int, ...], strides: Strides) -> Strides:
        return tuple(strides[d] for d in self.permutation)


@dataclass(frozen=True, slots=True)
class Reshape:
    """The base's elements, in row-major order, under other dimensions.

    ``may_copy``: NumPy gives a view only where the base's layout in memory allows it.
    """

    dimensions: tuple[int, ...]
    may_copy: bool = False

    def read(self, base: Instruction) -> Instruction:
        return layout.reshape(base, self.dimensions)

    def write(self, base: Instruction, value: Instruction) -> Instruction:
        return layout.reshape(value, base.array_shape.dimensions)

    def strides(self, shape: tuple[int, ...], strides: Strides) -> Strides | None:
        return reshaped_strides(shape, strides, self.dimensions)


@dataclass(frozen=True, slots=True)
class ComplexPart:
    """The real or the imaginary part of a complex base."""

    real: bool

    def read(self, base: Instruction) -> Instruction:
        return elementwise_unary.real(base) if self.real else elementwise_unary.imag(base)

    def write(self, base: Instruction, value: Instruction) -> Instruction:
        if self.real:
            return elementwise.complex(value, elementwise_unary.imag(base))
        return elementwise.complex(elementwise_unary.real(base), value)

    def strides(self, shape: tuple[int, ...], strides: Strides) -> Strides:
        return tuple(2 * stride for stride in strides)


@dataclass(frozen=True, slots=True)
class Bits:
    """The bits of elements of type ``old``, along the last dimension, as elements of ``new``."""

    old: ElementType
    new: ElementType

    def read(self, base: Instruction) -> Instruction:
        return _bits(base, self.new)

    def write(self, base: Instruction, value: Instruction) -> Instruction:
        return _bits(value, self.old)

    def strides(self, shape: tuple[int, ...], strides: Strides) -> Strides | None:
        if not shape or self.old.bits == self.new.bits:
            return strides
        if strides[-1] != 1:
            return None
        return (*(stride * self.old.bits // self.new.bits for stride in strides[:-1]), 1)


def require_whole(shape: Shape, element_type: ElementType) -> None:
    """Raises `ShapeError` unless the bits along the last dimension make elements of a type."""
    old, new = shape.element_type.bits, element_type.bits
    if old != new and (not shape.rank or shape.dimensions[-1] * old % new):
        along = "its last dimension is no whole number" if shape.rank else "a number is not"
        raise ShapeError(f"view: {shape} as {element_type}: {along} of these elements")


def _bits(value: Instruction, element_type: ElementType) -> Instruction:
    shape = value.array_shape
    if element_type is shape.element_type:
        return value
    if not shape.rank:
        return layout.reshape(_bits(layout.reshape(value, (1,)), element_type), ())
    if shape.element_type.is_complex:
        pairs = (*shape.dimensions, 1)
        parts = [elementwise_unary.real(value), elementwise_unary.imag(value)]
        both = layout.concatenate([layout.reshape(part, pairs) for part in parts], shape.rank)
        in_line = (*shape.dimensions[:-1], 2 * shape.dimensions[-1])
        return _bits(layout.reshape(both, in_line), element_type)
    if element_type.is_complex:
        numbers = _bits(value, element_type.real)
        dimensions = numbers.array_shape.dimensions
        pairs = (*dimensions[:-1], dimensions[-1] // 2, 2)
        both = layout.reshape(numbers, pairs)
        real, imag = (layout.slice_in_dim(both, n, n + 1, 1, -1) for n in (0, 1))
        return elementwise.complex(
            layout.reshape(real, pairs[:-1]), layout.reshape(imag, pairs[:-1])
        )
    old, new = shape.element_type.bits, element_type.bits
    if new > old:
        count = new // old
        value = layout.reshape(
            value, (*shape.dimensions[:-1], shape.dimensions[-1] // count, count)
        )
    made = bitcast_convert_type(value, element_type)
    if new < old:
        made = layout.reshape(made, (*shape.dimensions[:-1], shape.dimensions[-1] * (old // new)))
    return made


@dataclass(frozen=True, slots=True)
class Broadcast:
    """The base stretched to more elements than it has; nothing can be written through it."""

    dimensions: tuple[int, ...]

    def read(self, base: Instruction) -> Instruction:
        return broadcast(base, self.dimensions)

    def write(self, base: Instruction, value: Instruction) -> Instruction:
        raise ReadOnlyError("the result of broadcast_to is read-only; copy it before writing")

    def strides(self, shape: tuple[int, ...], strides: Strides) -> Strides:
        new = len(self.dimensions) - len(shape)
        return (0,) * new + tuple(
            0 if size != wide else stride
            for size, wide, stride in zip(shape, self.dimensions[new:], strides, strict=True)
        )


def broadcast(operand: Instruction, dimensions: Sequence[int]) -> Instruction:
    """``operand`` stretched by NumPy's rules: new dimensions in front, size 1 grows."""
    rank = operand.array_shape.rank
    return layout.broadcast_in_dim(
        operand, dimensions, range(len(dimensions) - rank, len(dimensions))
    )


def row_major_strides(shape: Sequence[int]) -> Strides:
    """The strides of a contiguous array."""
    return tuple(math.prod(shape[d + 1 :]) for d in range(len(shape)))


def reshaped_strides(
    shape: Sequence[int], strides: Sequence[int], dimensions: Sequence[int]
) -> Strides | None:
    """The strides of a reshape that needs no copy, or None when it needs one.

    Runs of dimensions that lie in memory as one, from the back, must hold a whole number of the
    new dimensions.
    """
    if math.prod(shape) == 0:
        return row_major_strides(dimensions)
    old = [(size, stride) for size, stride in zip(shape, strides, strict=True) if size != 1]
    wanted = list(dimensions)
    made: list[int] = []
    while old:
        size, stride = old.pop()
        extent = size
        while old and old[-1][1] == stride * extent:
            extent *= old.pop()[0]
        while extent > 1:
            if not wanted or extent % wanted[-1]:
                return None
            last = wanted.pop()
            made.append(stride)
            stride *= last
            extent //= last
    made.extend(1 for _ in wanted)
    return tuple(reversed(made))
