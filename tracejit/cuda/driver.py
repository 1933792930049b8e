"""The CUDA driver's functions, called through ctypes: `driver()("cuMemAlloc_v2", ...)`.

The library is ``libcuda.so.1``, or what the environment variable ``TRACEJIT_LIBCUDA`` names.
Handles are integers. A call that fails raises; `docs/gpu.md` lists the errors.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache
from typing import Any

from tracejit.errors import DeviceError, DeviceMemoryError, DeviceNotFoundError
from tracejit.system import CUDA_DRIVER

VARIABLE = "TRACEJIT_LIBCUDA"
"""The environment variable that names the driver's library."""

OLDEST = 12000
"""The oldest driver's version that is taken: CUDA 12.0."""

SUCCESS = 0
OUT_OF_MEMORY = 2
NO_DEVICE = 100
NO_BINARY = 209
UNSUPPORTED_PTX = 222
NOT_FOUND = 500
"""Statuses, by the names in ``cuda.h`` without the prefix."""

_H = ctypes.c_void_p
_U = ctypes.c_uint
_I = ctypes.c_int
_P = ctypes.c_uint64
_N = ctypes.c_size_t
_A = ctypes.c_void_p

_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cuInit": (_U,),
    "cuDriverGetVersion": (_A,),
    "cuDeviceGetCount": (_A,),
    "cuDeviceGet": (_A, _I),
    "cuDeviceGetName": (ctypes.c_char_p, _I, _I),
    "cuDeviceGetAttribute": (_A, _I, _I),
    "cuDeviceTotalMem_v2": (_A, _I),
    "cuDevicePrimaryCtxRetain": (_A, _I),
    "cuDevicePrimaryCtxReset_v2": (_I,),
    "cuCtxGetCurrent": (_A,),
    "cuCtxPushCurrent_v2": (_H,),
    "cuCtxPopCurrent_v2": (_A,),
    "cuCtxSynchronize": (),
    "cuMemGetInfo_v2": (_A, _A),
    "cuMemAlloc_v2": (_A, _N),
    "cuMemFree_v2": (_P,),
    "cuMemAllocAsync": (_A, _N, _H),
    "cuMemFreeAsync": (_P, _H),
    "cuMemHostAlloc": (_A, _N, _U),
    "cuMemFreeHost": (_A,),
    "cuMemcpyHtoDAsync_v2": (_P, _A, _N, _H),
    "cuMemcpyDtoHAsync_v2": (_A, _P, _N, _H),
    "cuMemcpyDtoDAsync_v2": (_P, _P, _N, _H),
    "cuMemsetD8Async": (_P, ctypes.c_ubyte, _N, _H),
    "cuPointerGetAttribute": (_A, _I, _P),
    "cuStreamCreate": (_A, _U),
    "cuStreamSynchronize": (_H,),
    "cuStreamWaitEvent": (_H, _H, _U),
    "cuEventCreate": (_A, _U),
    "cuEventRecord": (_H, _H),
    "cuEventSynchronize": (_H,),
    "cuEventElapsedTime": (_A, _H, _H),
    "cuEventDestroy_v2": (_H,),
    "cuModuleLoadData": (_A, ctypes.c_char_p),
    "cuModuleUnload": (_H,),
    "cuModuleGetFunction": (_A, _H, ctypes.c_char_p),
    "cuFuncSetAttribute": (_H, _I, _I),
    "cuLaunchKernel": (_H, _U, _U, _U, _U, _U, _U, _U, _H, _A, _A),
    "cuStreamBeginCapture_v2": (_H, _I),
    "cuStreamEndCapture": (_H, _A),
    "cuGraphInstantiateWithFlags": (_A, _H, ctypes.c_ulonglong),
    "cuGraphLaunch": (_H, _H),
    "cuGraphDestroy": (_H,),
    "cuGraphExecDestroy": (_H,),
}


class Driver:
    """The loaded library; called with a function's name and its arguments.

    ``driver(name, *arguments, doing=text)`` raises `DeviceMemoryError` or `DeviceError`, whose
    message begins with ``doing``, where the function returns a status other than success.
    """

    def __init__(self, library: ctypes.CDLL, path: str) -> None:
        self.library = library
        self.path = path
        self._functions: dict[str, Callable[..., int]] = {}

    def function(self, name: str) -> Callable[..., int]:
        """A function that returns its status."""
        found = self._functions.get(name)
        if found is None:
            function = getattr(self.library, name, None)
            if function is None:
                raise DeviceNotFoundError(f"cuda: {self.path} is too old: it has no {name}")
            function.argtypes, function.restype = _SIGNATURES[name], ctypes.c_int
            found = self._functions[name] = function
        return found

    def __call__(self, name: str, *arguments: Any, doing: str = "") -> None:
        status = self.function(name)(*arguments)
        if status:
            raise self.error(status, doing or name)

    def error(self, status: int, doing: str) -> DeviceError | DeviceMemoryError:
        """The exception for a status; ``doing`` says which work failed."""
        text = f"{doing}: {self.text(status)}"
        return DeviceMemoryError(text) if status == OUT_OF_MEMORY else DeviceError(text)

    def text(self, status: int) -> str:
        """The driver's name and sentence for a status."""
        parts = []
        for name in ("cuGetErrorName", "cuGetErrorString"):
            found = ctypes.c_char_p()
            function = getattr(self.library, name, None)
            if function is not None and not function(status, ctypes.byref(found)) and found.value:
                parts.append(found.value.decode())
        return f"{', '.join(parts)} (CUDA status {status})" if parts else f"CUDA status {status}"

    def handle(self, name: str, *arguments: Any, doing: str = "") -> int:
        """What a function writes to its first argument, a handle or an address."""
        made = ctypes.c_uint64()
        self(name, ctypes.byref(made), *arguments, doing=doing)
        return made.value

    def number(self, name: str, *arguments: Any) -> int:
        """The C int that a function writes to its first argument."""
        made = ctypes.c_int()
        self(name, ctypes.byref(made), *arguments)
        return made.value


@cache
def driver() -> Driver:
    """The driver, ready for use.

    Raises `DeviceNotFoundError`: no library, one that is too old, or no device behind it.
    """
    path = os.environ.get(VARIABLE, "").strip() or CUDA_DRIVER
    try:
        library = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise DeviceNotFoundError(
            f"cuda: the driver's library cannot be loaded ({error}); is an NVIDIA driver "
            f"installed? {VARIABLE} may name the library"
        ) from None
    made = Driver(library, path)
    status = made.function("cuInit")(0)
    if status == NO_DEVICE:
        raise DeviceNotFoundError("cuda: the driver sees no device")
    if status:
        raise DeviceNotFoundError(f"cuda: the driver does not start: {made.text(status)}")
    version = made.number("cuDriverGetVersion")
    if version < OLDEST:
        raise DeviceNotFoundError(
            f"cuda: the driver supports CUDA {_version(version)}; "
            f"at least {_version(OLDEST)} is needed"
        )
    return made


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"
