"""Kernels written in CUDA C by hand, launched without the product's compiler.

kernels = load({"twice": TEXT}, device)
kernels["twice"](grid, block, x, y, 3, dynamic=0)
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from tracejit.cuda import Device, DeviceArray
from tracejit.cuda.nvrtc import compiler

PRELUDE = """
#ifdef __CUDACC_RTC__
#define DYNAMIC_SHARED(name) extern __shared__ __align__(16) char name[]
#endif
"""


def source_of(texts: Mapping[str, str]) -> str:
    """One source of several kernels; each text calls its own kernel KERNEL."""
    return PRELUDE + "\n".join(text.replace("KERNEL", name) for name, text in texts.items())


def load(texts: Mapping[str, str], device: Device) -> dict[str, Callable[..., None]]:
    """What launches each of some kernels, compiled together."""
    binary = compiler().compile(source_of(texts), f"{device.arch}a")
    with device.context() as call:
        module = call.handle("cuModuleLoadData", binary.cubin)
        handles = {n: call.handle("cuModuleGetFunction", module, n.encode()) for n in texts}
    return {name: partial(_launch, device, handle) for name, handle in handles.items()}


def _launch(
    device: Device, handle: int, grid: int, block: int, *arguments: object, dynamic: int = 0
) -> None:
    values = [
        ctypes.c_uint64(a.address) if isinstance(a, DeviceArray) else ctypes.c_int(int(str(a)))
        for a in arguments
    ]
    pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
    with device.context() as call:
        call("cuLaunchKernel", handle, grid, 1, 1, block, 1, 1, dynamic, 0, pointers, None)


def zeros(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """An array of zeros, for results that are added to."""
    return np.zeros(shape, dtype)
