"""Arrays to a device and back; arrays of other libraries on a device are taken without a copy.

x = to_device(numpy.arange(3), device_of("cuda"))
to_device(torch_tensor, device)         # the tensor's own memory
from_device(x)                          # a NumPy array
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from tracejit.cuda import dlpack
from tracejit.cuda.arrays import DeviceArray
from tracejit.cuda.device import Device, devices
from tracejit.cuda.memory import allocate, copy_in
from tracejit.cuda.streams import Stream
from tracejit.errors import ArgumentError

_DEVICE_OF_POINTER = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL


def is_on_a_device(x: object) -> bool:
    """Whether an object is an array of any library in a CUDA device's memory."""
    if isinstance(x, DeviceArray):
        return True
    if isinstance(x, np.ndarray | np.generic):
        return False
    place = getattr(x, "__dlpack_device__", None)
    if place is not None and hasattr(x, "__dlpack__"):
        return bool(int(place()[0]) == dlpack.CUDA)
    return getattr(type(x), "__cuda_array_interface__", None) is not None


def to_device(x: Any, device: Device) -> DeviceArray:
    """An array in a device's memory: copied there from the host, shared if it lies there.

    Raises `ArgumentError` for what is no array, for one on another device and for one that is not
    row-major, `DeviceMemoryError` where there is no room.
    """
    if is_on_a_device(x):
        return _shared(x, device)
    array = np.asarray(x)
    if array.dtype.kind not in "biufcV" or array.dtype.hasobject:
        raise ArgumentError(f"device_put: {type(x).__name__} is no array of numbers")
    array = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="), copy=False))
    array = array.reshape(np.shape(x))
    memory = allocate(device, array.nbytes, f"an array {array.dtype}{[*array.shape]}")
    copy_in(memory.device, memory.address, array)
    return DeviceArray.over(memory, array.dtype, array.shape)


def from_device(x: DeviceArray) -> np.ndarray:
    """A copy in the host's memory. Raises `DeviceError` where a kernel failed that makes it."""
    return np.asarray(x)


def _shared(x: Any, device: Device) -> DeviceArray:
    if isinstance(x, DeviceArray):
        made = x
    elif hasattr(x, "__dlpack__"):
        made = _from_dlpack(x, device)
    else:
        made = _from_interface(x, device)
    if made.device is not device:
        raise ArgumentError(
            f"device_put: the array lies on CUDA device {made.device.number}, not on "
            f"{device.number}; copy it with the library that made it"
        )
    return made


def _from_dlpack(x: Any, device: Device) -> DeviceArray:
    # The producer makes our stream wait; 1 is DLPack's name of the default stream.
    tensor = dlpack.imported(x.__dlpack__(stream=Stream.current(device).handle or 1))
    _require_row_major(tensor.shape, tensor.strides)
    place = _numbered(tensor.device)
    return DeviceArray(place, tensor.dtype, tensor.shape, tensor.address, tensor.owner)


def _from_interface(x: Any, device: Device) -> DeviceArray:
    told = x.__cuda_array_interface__
    dtype = np.dtype(told["typestr"])
    shape = tuple(told["shape"])
    if told.get("mask") is not None:
        raise ArgumentError("device_put: the array is masked, and its mask would be ignored")
    strides = told.get("strides")
    if strides is not None:
        strides = tuple(stride // dtype.itemsize for stride in strides)
    _require_row_major(shape, strides)
    address = int(told["data"][0] or 0)
    stream = told.get("stream")
    with device.context() as call:
        if stream is not None:
            call("cuStreamSynchronize", 0 if stream == 1 else stream)
        number = ctypes.c_int(device.number)
        if address:
            call(
                "cuPointerGetAttribute",
                ctypes.byref(number),
                _DEVICE_OF_POINTER,
                address,
                doing="device_put: the array's address",
            )
    return DeviceArray(_numbered(number.value), dtype, shape, address, x)


def _numbered(number: int) -> Device:
    return devices()[number]


def _require_row_major(shape: tuple[int, ...], strides: tuple[int, ...] | None) -> None:
    step = 1
    for size, stride in zip(reversed(shape), reversed(strides or ()), strict=False):
        if size != 1 and stride != step and 0 not in shape:
            raise ArgumentError(
                f"device_put: the array is not row-major: shape {shape}, strides {strides}"
            )
        step *= size
