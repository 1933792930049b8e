"""How an array's elements lie in memory, and where each one lies.

Layout((1, 0))                                      row-major, {1,0} in HLO text
Layout((0, 1), padded_dimensions=(3, 5))            column-major, padded to 3 x 5
Layout((1, 0), tiles=((8, 128),), memory_space=1)   {1,0:T(8,128)S(1)}

Values never depend on a layout; only buffers do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tracejit.errors import AttributeValueError, DimensionError, ShapeError


@dataclass(frozen=True, slots=True)
class Layout:
    """How the dimensions lie in memory: ``minor_to_major[0]`` varies fastest.

    ``padded_dimensions``: the width that each dimension takes in memory, none for its own;
    what is added holds ``padding_value``. ``tiles``: blocks of the minor dimensions that lie
    together, the outermost first. The rest is kept for the text's sake: the buffer's length
    is a multiple of ``tail_padding_alignment`` elements, an element takes ``element_size_in_bits``
    (0: its type's), and the buffer is in ``memory_space`` (0: the usual one).
    """

    minor_to_major: tuple[int, ...]
    padded_dimensions: tuple[int, ...] = ()
    padding_value: complex = 0
    tiles: tuple[tuple[int, ...], ...] = ()
    tail_padding_alignment: int = 1
    element_size_in_bits: int = 0
    memory_space: int = 0

    def __post_init__(self) -> None:
        rank = len(self.minor_to_major)
        if sorted(self.minor_to_major) != list(range(rank)):
            raise DimensionError(
                f"layout: minor_to_major must be a permutation of 0…{rank - 1}, "
                f"not {self.minor_to_major}"
            )
        if self.padded_dimensions and len(self.padded_dimensions) != rank:
            raise DimensionError(
                f"layout: padded_dimensions {self.padded_dimensions} must have one size for each "
                f"dimension, and minor_to_major {self.minor_to_major} has {rank}"
            )
        if any(not tile or min(tile) < 1 for tile in self.tiles):
            raise AttributeValueError(
                f"layout: tiles {self.tiles} must hold positive sizes, one or more each"
            )
        if self.tail_padding_alignment < 1:
            raise AttributeValueError(
                f"layout: tail_padding_alignment {self.tail_padding_alignment} must be positive"
            )

    @staticmethod
    def row_major(rank: int) -> Layout:
        """The default: the last dimension varies fastest."""
        return Layout(tuple(range(rank - 1, -1, -1)))

    @staticmethod
    def column_major(rank: int) -> Layout:
        """As in Fortran: the first dimension varies fastest."""
        return Layout(tuple(range(rank)))

    @property
    def major_to_minor(self) -> tuple[int, ...]:
        """The dimensions from the slowest to the fastest: transposed so, an array is row-major."""
        return self.minor_to_major[::-1]

    @property
    def is_row_major(self) -> bool:
        """Whether the last dimension varies fastest, the first slowest."""
        return self.minor_to_major == tuple(range(len(self.minor_to_major) - 1, -1, -1))

    def require_fits(self, dimensions: Sequence[int]) -> None:
        """Raises `ShapeError` unless the layout is one for an array of these dimensions."""
        if len(self.minor_to_major) != len(dimensions):
            raise ShapeError(
                f"layout: minor_to_major {self.minor_to_major} must have one number for each of "
                f"the dimensions {tuple(dimensions)}"
            )
        pairs = zip(self.padded_dimensions, dimensions, strict=False)
        if any(padded < size for padded, size in pairs):
            raise ShapeError(
                f"layout: padded_dimensions {self.padded_dimensions} must not be smaller than the "
                f"dimensions {tuple(dimensions)}"
            )

    def physical_dimensions(self, dimensions: Sequence[int]) -> tuple[int, ...]:
        """The sizes of the buffer seen as a row-major array: padded, then cut into tiles.

        ``f32[3,5]{1,0:T(2,4)}`` lies in memory as 2 x 2 tiles of 2 x 4 elements. A tile with
        more sizes than there are dimensions cuts an array with dimensions of size 1 in front.
        """
        widths = self.padded_dimensions or dimensions
        sizes = [widths[d] for d in self.major_to_minor]
        for tile in self.tiles:
            sizes = _widened(sizes, len(tile), 1)
            start = len(sizes) - len(tile)
            counts = [-(-size // t) for size, t in zip(sizes[start:], tile, strict=True)]
            sizes = [*sizes[:start], *counts, *tile]
        return tuple(sizes)

    def buffer_size(self, dimensions: Sequence[int]) -> int:
        """How many elements the buffer has, padding included."""
        size = math.prod(self.physical_dimensions(dimensions))
        return -(-size // self.tail_padding_alignment) * self.tail_padding_alignment

    def linear_index(self, index: Sequence[int], dimensions: Sequence[int]) -> int:
        """Where in the buffer the element at ``index`` lies, counted in elements.

        Raises `DimensionError` for an index outside the dimensions.
        """
        if len(index) != len(dimensions) or any(
            not 0 <= i < size for i, size in zip(index, dimensions, strict=True)
        ):
            raise DimensionError(f"layout: index {tuple(index)} is not in {tuple(dimensions)}")
        place = [index[d] for d in self.major_to_minor]
        for tile in self.tiles:
            place = _widened(place, len(tile), 0)
            start = len(place) - len(tile)
            parts = [divmod(i, t) for i, t in zip(place[start:], tile, strict=True)]
            place = [*place[:start], *(p[0] for p in parts), *(p[1] for p in parts)]
        linear = 0
        for i, size in zip(place, self.physical_dimensions(dimensions), strict=True):
            linear = linear * size + i
        return linear

    def multi_index(self, linear: int, dimensions: Sequence[int]) -> tuple[int, ...]:
        """The inverse of `linear_index`; at a place that is padding, an index outside.

        Raises `DimensionError` outside the buffer, or in its tail.
        """
        if not 0 <= linear < math.prod(self.physical_dimensions(dimensions)):
            raise DimensionError(
                f"layout: place {linear} is not in the buffer of {tuple(dimensions)}"
            )
        rest = linear
        place: list[int] = []
        for size in reversed(self.physical_dimensions(dimensions)):
            rest, i = divmod(rest, size)
            place.insert(0, i)
        for tile in reversed(self.tiles):
            count = len(tile)
            outer, inner = place[-2 * count : -count], place[-count:]
            joined = [o * t + i for o, t, i in zip(outer, tile, inner, strict=True)]
            place = [*place[: -2 * count], *joined]
        index = [0] * len(dimensions)
        for dimension, i in zip(self.minor_to_major, reversed(place), strict=False):
            index[dimension] = i
        return tuple(index)

    def __str__(self) -> str:
        """As XLA prints it; padded dimensions have no text."""
        text = "".join(f"({','.join(map(str, tile))})" for tile in self.tiles)
        text = f"T{text}" if text else ""
        if self.tail_padding_alignment != 1:
            text += f"L({self.tail_padding_alignment})"
        if self.element_size_in_bits:
            text += f"E({self.element_size_in_bits})"
        if self.memory_space:
            text += f"S({self.memory_space})"
        order = ",".join(map(str, self.minor_to_major))
        return f"{{{order}:{text}}}" if text else f"{{{order}}}"


def to_buffer(array: np.ndarray, layout: Layout) -> np.ndarray:
    """The elements of ``array`` in the order in which they lie in memory, padding included.

    Raises `ShapeError` for a layout of another rank or one that is too small.
    """
    layout.require_fits(array.shape)
    fill = np.asarray(layout.padding_value).astype(array.dtype)
    widths = layout.padded_dimensions or array.shape
    buffer = _padded(array, widths, fill).transpose(layout.major_to_minor)
    for tile in layout.tiles:
        buffer = buffer.reshape(_widened(buffer.shape, len(tile), 1))
        start = buffer.ndim - len(tile)
        major, minor = buffer.shape[:start], buffer.shape[start:]
        cut = [(-(-size // t), t) for size, t in zip(minor, tile, strict=True)]
        buffer = _padded(buffer, (*major, *[count * t for count, t in cut]), fill)
        buffer = buffer.reshape(*major, *[size for pair in cut for size in pair])
        counts, within = range(start, buffer.ndim, 2), range(start + 1, buffer.ndim, 2)
        buffer = buffer.transpose(*range(start), *counts, *within)
    return _padded(buffer.reshape(-1), (layout.buffer_size(array.shape),), fill)


def from_buffer(buffer: np.ndarray, dimensions: Sequence[int], layout: Layout) -> np.ndarray:
    """The row-major array of these dimensions whose elements lie so in ``buffer``."""
    size = math.prod(dimensions)
    numbered = np.arange(1, size + 1).reshape(dimensions)
    places = to_buffer(numbered, replace(layout, padding_value=0))
    array = np.empty(size, buffer.dtype)
    array[places[places > 0] - 1] = buffer[places > 0]
    return array.reshape(dimensions)


def _widened(numbers: Sequence[int], count: int, filler: int) -> list[int]:
    """At least ``count`` numbers: as many fillers as are missing, in front."""
    return [filler] * (count - len(numbers)) + list(numbers)


def _padded(array: np.ndarray, sizes: Sequence[int], fill: np.ndarray) -> np.ndarray:
    """``array`` widened at the end of each dimension."""
    if array.shape == tuple(sizes):
        return array
    wide = np.full(sizes, fill, array.dtype)
    wide[tuple(map(slice, array.shape))] = array
    return wide
