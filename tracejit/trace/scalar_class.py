"""The recording ``np.float32`` of traced functions: called with a traced value, it converts it.

np.float32(x) a float32 number that is recorded Everywhere else the name is NumPy's class, as a
dtype, in isinstance and comparisons; only ``type(x) is np.float32`` does not hold: write
isinstance.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from tracejit.shapes import element_type_of
from tracejit.trace.convert import operand
from tracejit.trace.table import find_traced
from tracejit.trace.tracer import Tracer, lift

_CLASSES = (
    np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
    np.float16, np.float32, np.float64, np.complex64, np.complex128,
)  # fmt: skip


class ScalarClass:
    """One of NumPy's classes of numbers inside a traced function."""

    def __init__(self, own: type[np.generic]) -> None:
        self.own = own
        self.dtype = np.dtype(own)
        self.__doc__ = own.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The value as this dtype: a number from a number, else an array."""
        if find_traced((args, kwargs)) is None:
            return self.own(*args, **kwargs)
        (value,) = args
        made = operand(value).to(element_type_of(self.dtype))
        return lift(made, not made.array_shape.rank)

    def __instancecheck__(self, instance: Any) -> bool:
        if isinstance(instance, Tracer):
            return instance.is_scalar and instance.operand().type == self.dtype
        return isinstance(instance, self.own)

    def __subclasscheck__(self, subclass: Any) -> bool:
        return issubclass(getattr(subclass, "own", subclass), self.own)

    def __eq__(self, other: object) -> bool:
        return self.own == getattr(other, "own", other)

    def __hash__(self) -> int:
        return hash(self.own)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.own, name)

    def __repr__(self) -> str:
        return repr(self.own)


@cache
def scalar_class(own: type) -> Any:
    """What a traced function sees in the place of a class: other classes as they are."""
    return ScalarClass(own) if own in _CLASSES else own
