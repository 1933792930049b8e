"""Addresses of C functions, in the forms in which Python has them."""

from __future__ import annotations

import ctypes
from typing import Any

from tracejit.errors import ArgumentError

_CAPSULE = b"xla._CUSTOM_CALL_TARGET"
# Prototypes of our own: attributes of `ctypes.pythonapi` belong to whoever set them last.
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(
    ("PyCapsule_GetName", ctypes.pythonapi)
)
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def capsule_of(address: int) -> Any:
    """A capsule of a function, as `jax.ffi.pycapsule` makes them."""
    return _new(address, _CAPSULE, None)


def address_of(what: str, function: Any) -> int:
    """The address of a C function: a capsule, a function of ctypes or Numba's, or the number.

    Raises `ArgumentError`, which begins with ``what``, for anything else.
    """
    if isinstance(function, bool):
        found = None
    elif isinstance(function, int):
        found = function
    elif type(function).__name__ == "PyCapsule":
        found = _pointer_of(function, _name_of(function))
    elif isinstance(function, ctypes._CFuncPtr | ctypes.c_void_p):  # type: ignore[attr-defined]
        found = ctypes.cast(function, ctypes.c_void_p).value
    else:
        found = getattr(function, "address", None)  # Numba's
    if not isinstance(found, int) or not found:
        raise ArgumentError(
            f"{what}: {function!r} is no function of a library: a capsule, a ctypes function or an "
            "address"
        )
    return found
