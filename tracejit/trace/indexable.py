"""Plain arrays from outside a traced function, as the function sees them: NumPy's, but traced
values may index them.

table = np.array([1.0, 2.0])
jit(lambda i: table[i])          records; table[0] is NumPy's, as ever
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.errors import ArgumentError
from tracejit.trace.context import running_traces
from tracejit.trace.convert import PLAIN_KINDS, as_instruction
from tracejit.trace.table import call, find_traced
from tracejit.trace.tracer import Tracer, lift


class Indexable(np.ndarray):
    """A view of an array; NumPy works with it as with the array itself."""

    def _recorded(self) -> Tracer:
        return lift(as_instruction(self), False)

    def _is_recorded(self, arguments: Any) -> bool:
        return bool(running_traces()) and find_traced(arguments) is not None

    def __getitem__(self, index: Any) -> Any:
        if self._is_recorded((index,)):
            return self._recorded()[index]
        return super().__getitem__(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        if self._is_recorded((index, value)):
            raise ArgumentError(
                "a traced value cannot be stored into an array from outside the traced function; "
                "write to a copy (np.array(x)), and return it"
            )
        super().__setitem__(index, value)

    def dot(self, *args: Any, **kwargs: Any) -> Any:
        """`np.dot`, also with traced values."""
        return self._method(np.dot, "dot", args, kwargs)

    def take(self, *args: Any, **kwargs: Any) -> Any:
        """`np.take`, also at traced indices."""
        return self._method(np.take, "take", args, kwargs)

    def searchsorted(self, *args: Any, **kwargs: Any) -> Any:
        """`np.searchsorted`, also of traced values."""
        return self._method(np.searchsorted, "searchsorted", args, kwargs)

    def clip(self, *args: Any, **kwargs: Any) -> Any:
        """`np.clip`, also between traced limits."""
        return self._method(np.clip, "clip", args, kwargs)

    def _method(self, function: Any, name: str, args: Any, kwargs: Any) -> Any:
        if self._is_recorded((args, kwargs)):
            return call(function, self._recorded(), *args, **kwargs)
        return getattr(super(), name)(*args, **kwargs)


PLAIN_KINDS.add(Indexable)


def indexable(array: np.ndarray) -> np.ndarray:
    """The array as a traced function sees it; arrays of no numbers as they are."""
    return array.view(Indexable) if array.dtype.kind in "biufcV" else array
