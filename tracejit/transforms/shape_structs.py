"""An array's shape and dtype as a user writes them, in place of the array.

jit(f).lower(ShapeDtypeStruct((3, 4), np.float32))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.shapes import Shape, element_type_of


class ShapeDtypeStruct:
    """An array's shape and dtype, in place of the array: for `eval_shape`, `make_graph`, `lower`.

    Raises `ArgumentError` for a dtype that XLA lacks.
    """

    __slots__ = ("_shape",)

    def __init__(
        self,
        shape: Sequence[int],
        dtype: Any,
        *,
        sharding: None = None,
        weak_type: bool = False,
    ) -> None:
        self._shape = Shape(element_type_of(dtype), shape)  # type: ignore[arg-type]

    @property
    def array_shape(self) -> Shape:
        """The same as a `Shape` of the graph."""
        return self._shape

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the dimensions."""
        return self._shape.dimensions

    @property
    def dtype(self) -> np.dtype:
        """The elements' dtype."""
        return self._shape.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._shape.rank

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._shape.size

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and self._shape == other._shape

    def __hash__(self) -> int:
        return hash(self._shape)

    def __repr__(self) -> str:
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype})"
