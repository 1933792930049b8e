"""Which recorded function stands for which NumPy function or ufunc.

The table is filled by `implements`; Python's operators and NumPy's protocols read it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracejit.errors import UnsupportedError

Function = Callable[..., Any]

FUNCTIONS: dict[Any, Function] = {}


class Traced:
    """Base of what stands for an unknown array: Tracer and its kin."""

    __slots__ = ()

    def operand(self) -> Any:
        """The value as an `Operand`, for promotion."""
        raise NotImplementedError


def contains_traced(values: Any) -> bool:
    """Whether a traced value is among ``values`` or inside their lists, tuples and dicts."""
    for value in values:
        if isinstance(value, Traced):
            return True
        kind = type(value)
        if kind in (list, tuple) and contains_traced(value):
            return True
        if kind is dict and contains_traced(value.values()):
            return True
    return False


def function_name(function: Any) -> str:
    """How a user writes a NumPy function: np.linalg.norm."""
    module = getattr(function, "__module__", None) or "numpy"
    name = getattr(function, "__name__", str(function))
    return f"{module.replace('numpy', 'np', 1)}.{name}"


def implementation(function: Any) -> Function:
    """What records ``function``. Raises `UnsupportedError` for one that cannot be traced."""
    found = FUNCTIONS.get(function)
    if found is None:
        raise UnsupportedError(
            f"{function_name(function)}: cannot be traced; call it on NumPy arrays outside the "
            f"traced function and pass in the result"
        )
    return found


def call(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Calls what records a NumPy function."""
    return implementation(function)(*args, **kwargs)
