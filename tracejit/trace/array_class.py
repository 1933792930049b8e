"""What ``np.ndarray`` is to a traced function: ``np.ndarray(n)`` makes an array that records.

Traced arrays are its instances, so that ``isinstance(x, np.ndarray)`` says what it says untraced.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.trace.table import call
from tracejit.trace.tracer import Tracer


class _ArrayClass(type):
    """The class of `ArrayClass`: how it is called, and what its instances are."""

    def __call__(cls, shape: Any, dtype: Any = float, buffer: Any = None, **kwargs: Any) -> Any:
        """An array of unspecified elements, or NumPy's array over a buffer."""
        if buffer is None and kwargs.get("strides") is None:
            return call(np.empty, shape, dtype)
        return np.ndarray(shape, dtype, buffer, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        if isinstance(instance, Tracer):
            return not instance.is_scalar
        return isinstance(instance, np.ndarray)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, np.ndarray)


class ArrayClass(np.ndarray, metaclass=_ArrayClass):
    """``np.ndarray`` inside a traced function."""
