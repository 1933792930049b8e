"""The vector space that a value belongs to, as autograd's `test_util` asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tracejit import tree


def inexact(value: Any) -> np.ndarray:
    """A leaf as an array of real or complex numbers."""
    array = np.asarray(value)
    return array if array.dtype.kind in "fc" else array.astype(np.float64)


class Space:
    """The trees of arrays of the same structure, shapes and dtypes as ``value``."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: Any) -> None:
        leaves, self._structure = tree.flatten(value)
        arrays = [inexact(leaf) for leaf in leaves]
        self._kinds = [(array.shape, array.dtype) for array in arrays]
        self.size = sum(array.size for array in arrays)

    @property
    def shape(self) -> Any:
        """The shape of a single array."""
        return self._kinds[0][0]

    @property
    def dtype(self) -> Any:
        """The dtype of a single array."""
        return self._kinds[0][1]

    @property
    def iscomplex(self) -> bool:
        """Whether a single array is complex."""
        return bool(self.dtype.kind == "c")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Space):
            return NotImplemented
        return self._structure == other._structure and self._kinds == other._kinds

    def __repr__(self) -> str:
        return f"Space({self._kinds})"

    def _made(self, leaves: Any) -> Any:
        return tree.unflatten(self._structure, list(leaves))

    def zeros(self) -> Any:
        return self._made(np.zeros(shape, dtype) for shape, dtype in self._kinds)

    def ones(self) -> Any:
        return self._made(np.ones(shape, dtype) for shape, dtype in self._kinds)

    def randn(self) -> Any:
        """Normally distributed elements."""

        def draw(shape: Any, dtype: Any) -> Any:
            values = np.asarray(np.random.randn(*shape))
            if dtype.kind == "c":
                values = values + 1j * np.random.randn(*shape)
            return values.astype(dtype)[()]

        return self._made(draw(shape, dtype) for shape, dtype in self._kinds)

    def standard_basis(self) -> Iterator[Any]:
        """Each unit vector, and each times i."""
        for number, (shape, dtype) in enumerate(self._kinds):
            for place in np.ndindex(*shape):
                for unit in (1.0, 1j) if dtype.kind == "c" else (1.0,):
                    leaves = tree.leaves(self.zeros())
                    leaves[number][place] = unit
                    yield self._made(leaves)

    def add(self, x: Any, y: Any) -> Any:
        return tree.map(lambda a, b: inexact(a) + inexact(b), x, y)

    def scalar_mul(self, x: Any, factor: Any) -> Any:
        return tree.map(lambda a: inexact(a) * factor, x)

    def inner_prod(self, x: Any, y: Any) -> Any:
        """The real part of <x, y>."""
        pairs = zip(tree.leaves(x), tree.leaves(y), strict=True)
        return sum(np.real(np.vdot(inexact(a), inexact(b))) for a, b in pairs)

    def covector(self, x: Any) -> Any:
        return tree.map(lambda a: np.conj(inexact(a)), x)
