"""Memory of a device, and the copies between it and the host's.

memory = allocate(device, nbytes, "a result f32[3]")
copy_in(device, memory.address, array);  copy_out(device, memory.address, array)
"""

from __future__ import annotations

import ctypes
import os
import threading

import numpy as np

from tracejit.cuda.device import Device
from tracejit.cuda.driver import OUT_OF_MEMORY
from tracejit.cuda.streams import Stream
from tracejit.errors import DeviceError, DeviceMemoryError

STAGING_BYTES = 4 << 20
"""Host memory that the device reads directly, through which arrays are copied in pieces."""

ALIGNMENT = 256
"""Every allocation of the driver begins at a multiple of this."""


class Memory:
    """Bytes of a device, freed with the object, in the order of the stream that it was made on."""

    def __init__(self, device: Device, address: int, nbytes: int, stream: Stream) -> None:
        self.device = device
        self.address = address
        self.nbytes = nbytes
        self.generation = device.generation
        self._stream = stream
        self._process = os.getpid()

    @property
    def is_lost(self) -> bool:
        """Whether the device was reset since, which freed the memory."""
        return self.generation != self.device.generation

    def __del__(self) -> None:
        if not self.address or self.is_lost or os.getpid() != self._process:
            return
        try:
            with self.device.context() as call:
                call.function("cuMemFreeAsync")(self.address, self._stream.handle)
        except DeviceError:
            pass  # the interpreter ends, or the device has failed and says so elsewhere


def allocate(device: Device, nbytes: int, purpose: str) -> Memory:
    """New memory that holds anything; no bytes have address 0.

    Raises `DeviceMemoryError`, naming the ``purpose``.
    """
    stream = Stream.current(device)
    if not nbytes:
        return Memory(device, 0, 0, stream)
    made = ctypes.c_uint64()
    with device.context() as call:
        status = call.function("cuMemAllocAsync")(ctypes.byref(made), nbytes, stream.handle)
        if status == OUT_OF_MEMORY:
            raise DeviceMemoryError(
                f"cuda: {purpose} needs {nbytes} bytes, and device {device.number} has "
                f"{device.free_memory} free of {device.total_memory}"
            )
        if status:
            after = stream.last and f" after {stream.last}"  # which may have failed
            raise call.error(status, f"cuda: {purpose.rstrip(',')}, {nbytes} bytes{after}")
    return Memory(device, made.value, nbytes, stream)


class _Staging:
    """Page-locked host memory of a device, used by one copy at a time."""

    def __init__(self, device: Device) -> None:
        self.lock = threading.Lock()
        with device.context() as call:
            address = call.handle("cuMemHostAlloc", STAGING_BYTES, 0, doing="cuda: pinned memory")
        self.address = address
        self.bytes = np.ctypeslib.as_array((ctypes.c_uint8 * STAGING_BYTES).from_address(address))


_stagings: dict[tuple[int, int], _Staging] = {}
_lock = threading.Lock()


def _staging(device: Device) -> _Staging:
    key = device.number, device.generation
    with _lock:
        if key not in _stagings:
            _stagings[key] = _Staging(device)
        return _stagings[key]


def copy_in(device: Device, address: int, array: np.ndarray) -> None:
    """Copies a C-contiguous array to a device; complete, for the host, on return."""
    _copied(device, address, array, "cuMemcpyHtoDAsync_v2")


def copy_out(device: Device, address: int, array: np.ndarray) -> None:
    """Copies from a device to a C-contiguous array, after all work of the current stream.

    Raises `DeviceError` where that work failed.
    """
    _copied(device, address, array, "cuMemcpyDtoHAsync_v2")


def _copied(device: Device, address: int, array: np.ndarray, function: str) -> None:
    flat = array.reshape(-1).view(np.uint8)
    stream = Stream.current(device)
    inwards = function.startswith("cuMemcpyHtoD")
    what = f"cuda: a copy of {array.nbytes} bytes {'to' if inwards else 'from'} the device"
    if stream.last:
        what += f" after {stream.last}"
    if not flat.size:
        return
    staging = _staging(device)
    with staging.lock, device.context() as call:
        for begin in range(0, flat.size, STAGING_BYTES):
            piece = flat[begin : begin + STAGING_BYTES]
            if inwards:
                staging.bytes[: piece.size] = piece
                sides: tuple[int, int] = (address + begin, staging.address)
            else:
                sides = (staging.address, address + begin)
            call(function, *sides, piece.size, stream.handle, doing=what)
            call("cuStreamSynchronize", stream.handle, doing=what)
            if not inwards:
                piece[:] = staging.bytes[: piece.size]
