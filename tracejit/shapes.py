"""Shapes, with their element types and layouts: the types of all values of a graph.

Shape(ElementType.F32, (2, 3))      prints as f32[2,3]
Shape(ElementType.F32, (2, 3), Layout((0, 1)))  prints as f32[2,3]{0,1}
TupleShape((a, b))                  prints as (f32[2,3], s32[])
TOKEN                               prints as token[]
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tracejit.element_types import ElementType as ElementType
from tracejit.element_types import element_type_of as element_type_of
from tracejit.errors import ArgumentError, DimensionError, ShapeError
from tracejit.layouts import Layout as Layout

__all__ = [
    "TOKEN",
    "ElementType",
    "Layout",
    "Shape",
    "TokenShape",
    "TupleShape",
    "canonical_dimension",
    "element_type_of",
    "linear_index",
    "multi_index",
    "part_of",
    "same_layout",
    "shape_of",
    "stated_shape",
]


def _integers(sizes: Sequence[int]) -> tuple[int, ...]:
    try:
        return tuple(map(operator.index, sizes))
    except TypeError:
        raise ArgumentError(f"shape: sizes are integers, not {sizes!r}") from None


MOST_ELEMENTS = 1 << 47
"""No array has as many elements: a process has addresses for as many bytes."""


def _require_sizes(sizes: tuple[int, ...]) -> None:
    """Raises `ShapeError` for a negative size, and for more elements than memory can have."""
    for dimension, size in enumerate(sizes):
        if size < 0:
            raise ShapeError(f"shape: size {size} of dimension {dimension} is negative")
    # NumPy counts the elements of an empty array without its empty dimensions.
    count = math.prod(size for size in sizes if size)
    if count >= MOST_ELEMENTS:
        raise ShapeError(
            f"shape: [{','.join(map(str, sizes))}] has {count} elements; an array has less than "
            f"{MOST_ELEMENTS}"
        )


@dataclass(frozen=True, slots=True)
class Shape:
    """An array's element type and dimensions; ``layout`` None means row-major.

    ``dynamic_dimensions`` says of each dimension whether it is a bound, ``f32[<=5]``, on a size
    that is known when the program runs; () when none is.

    ``element_type`` may be given as a NumPy dtype, ``dimensions`` as any sequence of sizes. Raises
    `ArgumentError` for a dtype XLA lacks, and for sizes that are no integers; `ShapeError` for
    negative sizes, and for more elements than memory can have.

    Shapes are equal when element type and dimensions are: no value depends on a layout, so no
    shape rule looks at one. `same_layout` compares layouts.
    """

    element_type: ElementType
    dimensions: tuple[int, ...] = ()
    layout: Layout | None = field(default=None, compare=False)
    dynamic_dimensions: tuple[bool, ...] = ()

    def __post_init__(self) -> None:
        if type(self.element_type) is not ElementType:
            object.__setattr__(self, "element_type", element_type_of(self.element_type))
        if type(self.dimensions) is not tuple:
            object.__setattr__(self, "dimensions", _integers(self.dimensions))
        for size in self.dimensions:
            if type(size) is not int:
                object.__setattr__(self, "dimensions", _integers(self.dimensions))
                break
        if not 0 <= math.prod(self.dimensions) < MOST_ELEMENTS or 0 in self.dimensions:
            _require_sizes(self.dimensions)
        elif len(self.dimensions) > 1 and min(self.dimensions) < 0:
            _require_sizes(self.dimensions)
        if self.layout is not None:
            self.layout.require_fits(self.dimensions)
        if self.dynamic_dimensions:
            if len(self.dynamic_dimensions) != len(self.dimensions):
                raise DimensionError(
                    f"shape: {len(self.dynamic_dimensions)} dynamic dimensions for rank {self.rank}"
                )
            if not any(self.dynamic_dimensions):
                object.__setattr__(self, "dynamic_dimensions", ())

    @property
    def rank(self) -> int:
        return len(self.dimensions)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.dimensions)

    @property
    def dtype(self) -> np.dtype:
        return self.element_type.dtype

    @property
    def nbytes(self) -> int:
        """Bytes in memory; elements of fewer than eight bits take one byte each, as in NumPy."""
        return self.size * self.dtype.itemsize

    @property
    def explicit_layout(self) -> Layout:
        """The layout, row-major where none is given."""
        return self.layout or Layout.row_major(self.rank)

    def with_layout(self, layout: Layout | None) -> Shape:
        """The same array laid out otherwise. Raises `ShapeError` for a layout of another rank."""
        return Shape(self.element_type, self.dimensions, layout, self.dynamic_dimensions)

    @property
    def is_dynamic(self) -> bool:
        """Whether any dimension is only a bound."""
        return bool(self.dynamic_dimensions)

    def with_dynamic(self, dynamic_dimensions: Sequence[bool]) -> Shape:
        """The same bounds with these dimensions dynamic; () for none."""
        dynamic = tuple(map(bool, dynamic_dimensions))
        return Shape(self.element_type, self.dimensions, self.layout, dynamic)

    def with_dimensions(self, dimensions: Sequence[int]) -> Shape:
        return Shape(self.element_type, tuple(dimensions))

    def with_element_type(self, element_type: ElementType) -> Shape:
        return Shape(element_type, self.dimensions)

    def __str__(self) -> str:
        return f"{self.element_type}[{self.dimensions_text}]{self.layout or ''}"

    @property
    def dimensions_text(self) -> str:
        """The dimensions as text writes them: ``2,<=5``."""
        dynamic = self.dynamic_dimensions or (False,) * self.rank
        pairs = zip(self.dimensions, dynamic, strict=True)
        return ",".join(f"<={size}" if bound else str(size) for size, bound in pairs)


@dataclass(frozen=True, slots=True)
class TupleShape:
    """The shape of a tuple; elements may be tuples again."""

    elements: tuple[AnyShape, ...]

    def __str__(self) -> str:
        return "(" + ", ".join(map(str, self.elements)) + ")"


@dataclass(frozen=True, slots=True)
class TokenShape:
    """The shape of a token, which orders side effects and holds no data."""

    def __str__(self) -> str:
        return "token[]"


TOKEN = TokenShape()
AnyShape = Shape | TupleShape | TokenShape


def stated_shape(value: Any) -> Shape:
    """The shape that anything with a ``shape`` and a ``dtype`` has; a `Shape` is its own."""
    if isinstance(value, Shape):
        return value
    if not (hasattr(value, "shape") and hasattr(value, "dtype")):
        value = np.asarray(value)
    return Shape(element_type_of(value.dtype), tuple(value.shape))


def shape_of(array: np.ndarray) -> Shape:
    """The shape of a NumPy array. Raises `ArgumentError` for dtypes XLA lacks."""
    return Shape(element_type_of(array.dtype), tuple(array.shape))


def same_layout(a: AnyShape, b: AnyShape) -> bool:
    """Whether equal shapes are laid out alike as well; None is row-major."""
    if isinstance(a, TupleShape) and isinstance(b, TupleShape):
        return all(map(same_layout, a.elements, b.elements))
    if isinstance(a, Shape) and isinstance(b, Shape):
        return a.explicit_layout == b.explicit_layout
    return True


def linear_index(index: Sequence[int], shape: Shape) -> int:
    """Where the element at ``index`` lies, counted in elements, under the shape's layout.

    Raises `DimensionError` for an index outside the shape.
    """
    return shape.explicit_layout.linear_index(index, shape.dimensions)


def multi_index(linear: int, shape: Shape) -> tuple[int, ...]:
    """The inverse of `linear_index`. Raises `DimensionError` outside the buffer."""
    return shape.explicit_layout.multi_index(linear, shape.dimensions)


def canonical_dimension(dimension: int, rank: int, op: str) -> int:
    """``dimension`` counted from the front; negative numbers count from the back.

    Raises `DimensionError` when it is outside [-rank, rank).
    """
    if not -rank <= dimension < rank:
        raise DimensionError(f"{op}: dimension {dimension} is out of range for rank {rank}")
    return dimension % rank if rank else 0


def part_of(shape: AnyShape, index: Sequence[int]) -> AnyShape | None:
    """The shape of the element of nested tuples at ``index``; None where there is none."""
    for number in index:
        if not isinstance(shape, TupleShape) or not 0 <= number < len(shape.elements):
            return None
        shape = shape.elements[number]
    return shape


def __dir__() -> list[str]:
    return __all__
