"""DLPack capsules: an array's memory handed from library to library.

exported(owner, address, dtype, shape, device)     # a capsule
imported(capsule)                                  # a Tensor that keeps the memory alive
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from tracejit.errors import ArgumentError

CUDA = 2
"""kDLCUDA, kDLInt, kDLUInt … are the numbers of ``dlpack.h``."""

_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_BFLOAT16 = 4
_NAME = b"dltensor"
_USED = b"used_dltensor"


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    pass


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Managed))
_Managed._fields_ = (
    ("tensor", _Tensor),
    ("context", ctypes.c_void_p),
    ("deleter", _Deleter),
)

_api = ctypes.pythonapi
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", _api)
)
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", _api)
)
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _api)
)
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_SetName", _api)
)

_exports: dict[int, tuple[object, ...]] = {}
"""What capsules need to stay alive, by the addresses of their structures."""


def _delete(managed: Any) -> None:
    _exports.pop(ctypes.addressof(managed.contents), None)


# The capsule is going: `py_object` would take a reference to it, so its address is taken.
def _destruct(capsule: int) -> None:
    if _is_valid_at(capsule, _NAME):
        _exports.pop(_pointer_at(capsule, _NAME), None)


_deleter = _Deleter(_delete)
_destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_destruct)

_is_valid_at = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", _api)
)
_pointer_at = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _api)
)


class Tensor(NamedTuple):
    """What a capsule holds; ``owner`` keeps the memory alive."""

    owner: object
    device_type: int
    device: int
    address: int
    dtype: np.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None


def exported(
    owner: object, address: int, dtype: np.dtype, shape: Sequence[int], device: int
) -> object:
    """A capsule of a row-major array in a CUDA device's memory, which keeps ``owner`` alive.

    Raises `BufferError` for an element type that DLPack lacks.
    """
    code = _CODES.get(dtype.kind) if dtype.isbuiltin == 1 else None
    if dtype == ml_dtypes.bfloat16:
        code = _BFLOAT16
    if code is None:
        raise BufferError(f"DLPack has no {dtype}")
    dimensions = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    managed = _Managed()
    managed.tensor = _Tensor(
        address, CUDA, device, len(shape), code, 8 * dtype.itemsize, 1, dimensions, None, 0
    )
    managed.deleter = _deleter
    key = ctypes.addressof(managed)
    _exports[key] = managed, dimensions, owner
    return _new(key, _NAME, ctypes.cast(_destructor, ctypes.c_void_p))


class _Imported:
    """Calls a capsule's deleter when nobody needs its memory any more."""

    def __init__(self, managed: Any) -> None:
        self._managed = managed

    def __del__(self) -> None:
        if self._managed.deleter:
            self._managed.deleter(ctypes.byref(self._managed))


def imported(capsule: Any) -> Tensor:
    """The tensor in a capsule, which is used up.

    Raises `ArgumentError` for a used one and for an element type that NumPy lacks.
    """
    if not _is_valid(capsule, _NAME):
        raise ArgumentError("from_dlpack: the capsule was used before, or is none of DLPack's")
    managed = _Managed.from_address(_pointer(capsule, _NAME))
    _rename(capsule, _USED)
    given = managed.tensor
    shape = tuple(given.shape[d] for d in range(given.ndim))
    strides = tuple(given.strides[d] for d in range(given.ndim)) if given.strides else None
    owner = _Imported(managed)
    kinds = {code: kind for kind, code in _CODES.items()}
    if given.code == _BFLOAT16 and given.bits == 16:
        dtype = np.dtype(ml_dtypes.bfloat16)
    elif given.code in kinds and given.lanes == 1 and given.bits % 8 == 0:
        dtype = np.dtype(f"{kinds[given.code]}{given.bits // 8}")
    else:
        raise ArgumentError(
            f"from_dlpack: no element type has code {given.code}, {given.bits} bits"
        )
    address = (given.data or 0) + given.byte_offset
    return Tensor(owner, given.device_type, given.device_id, address, dtype, shape, strides)
