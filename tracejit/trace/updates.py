"""``x.at[index].set(value)``: updates that give a new array, in JAX's spelling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.errors import AttributeValueError

_WRITES = (None, "drop", "promise_in_bounds")
_READS = (None, "clip", "promise_in_bounds")


class At:
    """What ``x.at`` is: brackets name a `IndexUpdate` in the array."""

    __slots__ = ("_array",)

    def __init__(self, array: Any) -> None:
        self._array = array

    def __getitem__(self, index: Any) -> IndexUpdate:
        return IndexUpdate(self._array, index)

    def __repr__(self) -> str:
        return f"{self._array!r}.at"


class IndexUpdate:
    """Elements of an array, by any index that brackets take.

    Each method but `get` gives a copy of the array in which they are changed; an index that
    stands there twice counts twice, but for `set` and `apply`. Places outside the array are left
    out: ``mode`` may say so (``"drop"``), or that there are none (``"promise_in_bounds"``).
    ``indices_are_sorted`` and ``unique_indices`` change nothing. Raises `AttributeValueError` for
    another mode, and what a write by brackets raises.
    """

    __slots__ = ("_array", "_index")

    def __init__(self, array: Any, index: Any) -> None:
        self._array = array
        self._index = index

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | None = None,
    ) -> Any:
        """The elements themselves; unknown places outside the array are clamped (``"clip"``)."""
        if mode not in _READS:
            raise AttributeValueError(f"at[].get: mode must be one of {_READS}, not {mode!r}")
        return self._array[self._index]

    def set(self, values: Any, **options: Any) -> Any:
        """The array with ``values`` there."""
        copy = self._copy("set", options)
        copy[self._index] = values
        return copy

    def apply(self, function: Callable[[Any], Any], **options: Any) -> Any:
        """The array with ``function`` of the elements there."""
        copy = self._copy("apply", options)
        copy[self._index] = function(copy[self._index])
        return copy

    def add(self, values: Any, **options: Any) -> Any:
        """The array with ``values`` added there."""
        return self._combined(np.add, "add", values, options)

    def subtract(self, values: Any, **options: Any) -> Any:
        """The array with ``values`` subtracted there."""
        return self._combined(np.subtract, "subtract", values, options)

    def multiply(self, values: Any, **options: Any) -> Any:
        """The array with the elements there multiplied by ``values``."""
        return self._combined(np.multiply, "multiply", values, options)

    mul = multiply

    def divide(self, values: Any, **options: Any) -> Any:
        """The array with the elements there divided by ``values``."""
        return self._combined(np.divide, "divide", values, options)

    def power(self, values: Any, **options: Any) -> Any:
        """The array with the elements there raised to the powers ``values``."""
        return self._combined(np.power, "power", values, options)

    def min(self, values: Any, **options: Any) -> Any:
        """The array with the lesser of the elements there and ``values``."""
        return self._combined(np.minimum, "min", values, options)

    def max(self, values: Any, **options: Any) -> Any:
        """The array with the greater of the elements there and ``values``."""
        return self._combined(np.maximum, "max", values, options)

    def _combined(self, ufunc: np.ufunc, name: str, values: Any, options: Any) -> Any:
        copy = self._copy(name, options)
        ufunc.at(copy, self._index, values)
        return copy

    def _copy(self, name: str, options: dict[str, Any]) -> Any:
        mode = options.pop("mode", None)
        unknown = options.keys() - {"indices_are_sorted", "unique_indices"}
        if mode not in _WRITES or unknown:
            raise AttributeValueError(
                f"at[].{name}: mode must be one of {_WRITES}, not {mode!r}"
                if not unknown
                else f"at[].{name}: takes no argument {min(unknown)!r}"
            )
        return self._array.copy()
