"""Maps NumPy functions and ufuncs to the functions that record them.

The table is filled by `implements`; Python's operators and NumPy's protocols read it. A module that
fills it is imported when a function of its own is first looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tracejit.errors import UnsupportedError
from tracejit.loading import load
from tracejit.trace.context import Trace

Function = Callable[..., Any]

FUNCTIONS: dict[Any, Function] = {}
"""What is implemented so far; `find` looks further."""

_SOURCES: dict[str, str] = {}
"""The packages and modules that implement functions, by the module of these."""


def implemented_in(module: str, origin: str) -> None:
    """Says that ``module`` implements the functions of the module ``origin``: numpy, math.

    It may be a package that imports its parts when one asks for the function of the same name.
    """
    _SOURCES[origin] = module


def origin(function: Any) -> str:
    """The module that a user calls a function from: numpy.fft."""
    if isinstance(function, np.ufunc):
        known = getattr(np, function.__name__, None) is function
        return "numpy" if known else "scipy.special"
    name = getattr(function, "__module__", None) or ""
    # Functions say in which private module they were written: scipy.linalg._basic, numpy.lib._x.
    if name.startswith("scipy."):
        return ".".join(name.split(".")[:2])
    return "numpy" if name.startswith("numpy.lib") else name


def find(function: Any) -> Function | None:
    """What records a NumPy function, or None."""
    found = FUNCTIONS.get(function)
    if found is None:
        module = _SOURCES.get(origin(function))
        if module is not None:
            getattr(load(module), own_name(function), None)  # which enters it, if it is there
            return FUNCTIONS.get(function)
    return found


def is_scipys(kind: type) -> bool:
    """Whether a class is SciPy's, or that of its functions which choose among backends."""
    return kind.__module__.startswith(("scipy.", "uarray"))


def own_name(function: Any) -> str:
    """The name of a function, or of an object such as np.r_, in NumPy; "" for others."""
    name = getattr(function, "__name__", None)
    if name is None and is_scipys(type(function)):
        name = getattr(function, "name", "")  # a distribution's name
    if name is None:
        name = next((n for n, value in vars(np).items() if value is function), "")
    return str(name)


class Traced:
    """Base class of tracers for unknown arrays."""

    __slots__ = ()

    @property
    def owner(self) -> Trace:
        """The trace that the value belongs to."""
        raise NotImplementedError

    def operand(self) -> Any:
        """The value as an `Operand`, for promotion."""
        raise NotImplementedError


def find_traced(values: Iterable[Any]) -> Traced | None:
    """The first traced value among ``values`` or inside their lists, tuples and dicts."""
    for value in values:
        if isinstance(value, Traced):
            return value
        found = None
        if type(value) in (list, tuple):
            found = find_traced(value)
        elif type(value) is dict:
            found = find_traced(value.values())
        if found is not None:
            return found
    return None


def function_name(function: Any) -> str:
    """How a user writes a NumPy function: np.linalg.norm."""
    module = getattr(function, "__module__", None) or "numpy"
    name = getattr(function, "__name__", str(function))
    return f"{module.replace('numpy', 'np', 1)}.{name}"


def implementation(function: Any) -> Function:
    """What records ``function``. Raises `UnsupportedError` for one that cannot be traced."""
    found = find(function)
    if found is None:
        raise UnsupportedError(
            f"{function_name(function)}: cannot be traced; call it on NumPy arrays outside the "
            f"traced function and pass in the result"
        )
    return found


def call(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Calls what records a NumPy function."""
    return implementation(function)(*args, **kwargs)
