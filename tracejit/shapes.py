"""Element types, shapes and layouts: the types of all values of a graph.

Shape(ElementType.F32, (2, 3))      prints as f32[2,3]
Shape(ElementType.F32, (2, 3), Layout((0, 1)))  prints as f32[2,3]{0,1}
TupleShape((a, b))                  prints as (f32[2,3], s32[])
TOKEN                               prints as token[]
"""

from __future__ import annotations

import enum
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np

from tracejit.errors import ArgumentError, DimensionError, ShapeError
from tracejit.layouts import Layout as Layout


class ElementType(enum.Enum):
    """XLA's element types; the value is the name in HLO text."""

    PRED = "pred"
    S4 = "s4"
    S8 = "s8"
    S16 = "s16"
    S32 = "s32"
    S64 = "s64"
    U4 = "u4"
    U8 = "u8"
    U16 = "u16"
    U32 = "u32"
    U64 = "u64"
    F8E4M3FN = "f8e4m3fn"
    F8E5M2 = "f8e5m2"
    BF16 = "bf16"
    F16 = "f16"
    F32 = "f32"
    F64 = "f64"
    C64 = "c64"
    C128 = "c128"

    dtype: np.dtype
    bits: int
    is_signed: bool
    is_integral: bool
    is_floating: bool
    is_complex: bool

    def __str__(self) -> str:
        return str(self.value)

    __hash__ = object.__hash__

    @property
    def real(self) -> ElementType:
        """The element type of the real part: f32 for c64, itself for a real type."""
        return {ElementType.C64: ElementType.F32, ElementType.C128: ElementType.F64}.get(self, self)

    @property
    def is_numeric(self) -> bool:
        """Everything but pred."""
        return self is not ElementType.PRED

    @property
    def is_inexact(self) -> bool:
        """Floating or complex: what has a derivative."""
        return self.is_floating or self.is_complex


_DTYPES: dict[ElementType, object] = {
    ElementType.PRED: np.bool_,
    ElementType.S4: ml_dtypes.int4,
    ElementType.S8: np.int8,
    ElementType.S16: np.int16,
    ElementType.S32: np.int32,
    ElementType.S64: np.int64,
    ElementType.U4: ml_dtypes.uint4,
    ElementType.U8: np.uint8,
    ElementType.U16: np.uint16,
    ElementType.U32: np.uint32,
    ElementType.U64: np.uint64,
    ElementType.F8E4M3FN: ml_dtypes.float8_e4m3fn,
    ElementType.F8E5M2: ml_dtypes.float8_e5m2,
    ElementType.BF16: ml_dtypes.bfloat16,
    ElementType.F16: np.float16,
    ElementType.F32: np.float32,
    ElementType.F64: np.float64,
    ElementType.C64: np.complex64,
    ElementType.C128: np.complex128,
}

for _type, _dtype in _DTYPES.items():
    _text = _type.value
    _type.dtype = np.dtype(_dtype)  # type: ignore[call-overload]
    _type.bits = 4 if _text in ("s4", "u4") else _type.dtype.itemsize * 8
    _type.is_integral = _text[0] in "su"
    _type.is_floating = _text[0] in "fb"
    _type.is_complex = _text[0] == "c"
    _type.is_signed = _text[0] == "s" or _type.is_floating or _type.is_complex

_ELEMENT_TYPES: dict[np.dtype, ElementType] = {t.dtype: t for t in ElementType}


def element_type_of(dtype: object) -> ElementType:
    """The element type for anything that names a NumPy dtype, in either byte order.

    Raises `ArgumentError` for dtypes that have no XLA counterpart (object, str, datetime,
    longdouble, structured).
    """
    if isinstance(dtype, ElementType):
        return dtype
    try:
        given = np.dtype(dtype)  # type: ignore[call-overload]
    except TypeError as error:
        raise ArgumentError(f"{dtype!r} names no element type and no dtype of NumPy's") from error
    known = _ELEMENT_TYPES.get(given) or _ELEMENT_TYPES.get(given.newbyteorder("="))
    if known is None:
        raise ArgumentError(
            f"arrays of dtype {given} cannot be traced; supported are "
            f"{', '.join(str(t.dtype) for t in ElementType)}"
        )
    return known


def _integers(sizes: Sequence[int]) -> tuple[int, ...]:
    try:
        return tuple(map(operator.index, sizes))
    except TypeError:
        raise ArgumentError(f"shape: sizes are integers, not {sizes}") from None


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
            object.__setattr__(self, "dimensions", tuple(self.dimensions))
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
        """Bytes in memory; four-bit integers take one byte each, as in NumPy."""
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
