"""tracejit.numpy as the array-API suite sees it: every function traces, compiles and runs.

ARRAY_API_TESTS_MODULE=tests.conformance.array_api_namespace pytest array_api_tests
"""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any

import numpy as np

import tracejit.numpy as tnp
from tests.conformance.array_api_arrays import Array, inner, through_jit

__array_api_version__ = "2024.12"

e, inf, nan, newaxis, pi = np.e, np.inf, np.nan, np.newaxis, np.pi

# They speak about types, not elements.
UNTRACED = (tnp.can_cast, tnp.isdtype, tnp.iinfo, tnp.finfo)


def __array_namespace_info__() -> Any:
    return np.__array_namespace_info__()


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Any:
    """An array of nested lists and numbers, or a copy or the array itself."""
    if isinstance(obj, Array) and not copy and dtype in (None, obj.dtype):
        return obj
    if isinstance(obj, list | tuple):
        obj = [_nested(item) for item in obj]
    return through_jit(tnp.asarray)(obj, dtype=dtype, device=device, copy=copy)


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """The standard's names for the limits, which NumPy's function takes by keyword only."""
    return through_jit(tnp.clip)(x, min=min, max=max)


def broadcast_arrays(*arrays: Any) -> list[Any]:
    """A list, as this version of the standard has it; NumPy's is a tuple."""
    return list(through_jit(tnp.broadcast_arrays)(*arrays))


def meshgrid(*arrays: Any, indexing: str = "xy") -> list[Any]:
    """A list, as this version of the standard has it; NumPy's is a tuple."""
    return list(through_jit(tnp.meshgrid)(*arrays, indexing=indexing))


def _nested(item: Any) -> Any:
    if isinstance(item, list | tuple):
        return [_nested(one) for one in item]
    return inner(item)[()] if isinstance(item, Array) else item


def _type_of(value: Any) -> Any:
    return value.dtype if isinstance(value, Array) else value


def result_type(*arrays_and_dtypes: Any) -> Any:
    """The dtype that arrays, dtypes and numbers have in common."""
    return tnp.result_type(*map(_type_of, arrays_and_dtypes))


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether the cast keeps every value."""
    return bool(tnp.can_cast(_type_of(from_), to))


def finfo(type: Any, /) -> Any:
    """The limits of a floating type, as Python numbers."""
    found = np.finfo(_type_of(type))
    names = "eps max min smallest_normal".split()
    numbers = {name: float(getattr(found, name)) for name in names}
    return SimpleNamespace(bits=found.bits, dtype=found.dtype, **numbers)


def iinfo(type: Any, /) -> Any:
    """The limits of an integer type."""
    found = np.iinfo(_type_of(type))
    return SimpleNamespace(bits=found.bits, dtype=found.dtype, max=found.max, min=found.min)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
    """An array that shares no memory with ``x``."""
    return Array(np.from_dlpack(x, device=device, copy=copy).copy())


def _fill(namespace: dict[str, Any], source: Any) -> None:
    """Every public function of ``source`` through `through_jit`."""
    for name in dir(source):
        value = getattr(source, name)
        if name.startswith("_") or name in namespace or inspect.ismodule(value):
            continue
        namespace[name] = through_jit(value) if _is_function(value) else value


def _is_function(value: Any) -> bool:
    return callable(value) and not isinstance(value, type) and value not in UNTRACED


def _extension(name: str) -> Any:
    source = getattr(tnp, name)
    namespace: dict[str, Any] = {}
    _fill(namespace, source)
    return SimpleNamespace(**namespace)


_fill(globals(), tnp)
for _name in ("linalg", "fft"):
    if hasattr(tnp, _name):
        globals()[_name] = _extension(_name)
