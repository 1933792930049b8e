"""CUDA devices: what they can do, and the context in which this process works on each.

device = devices()[0]
device.name, device.arch, device.multiprocessors
with device.context(): ...          # driver calls of this thread are for this device
device.reset()                      # frees all of its memory; arrays that lay there are gone
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, cached_property

from tracejit.cuda.driver import Driver, driver
from tracejit.errors import AttributeValueError, DeviceError, DeviceNotFoundError

_ATTRIBUTES = {
    "most_threads": 1,
    "shared_memory": 8,
    "warp": 10,
    "multiprocessors": 16,
    "major": 75,
    "minor": 76,
    "most_shared_memory": 97,
    "most_threads_of_multiprocessor": 39,
    "registers_of_multiprocessor": 82,
    "shared_memory_of_multiprocessor": 81,
}
"""The driver's numbers of device attributes."""


class Device:
    """One CUDA device. Devices are made by `devices` alone, one object for each.

    ``generation`` counts how often the device was reset.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.generation = 0
        self._driver: Driver = driver()
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._context: int | None = None
        self._handle = self._driver.number("cuDeviceGet", number)

    def __repr__(self) -> str:
        return f"<CUDA device {self.number}: {self.name}, {self.arch}>"

    def __reduce__(self) -> tuple[object, ...]:
        return device_of, (f"cuda:{self.number}",)

    @cached_property
    def name(self) -> str:
        """The product's name."""
        text = ctypes.create_string_buffer(256)
        self._driver("cuDeviceGetName", text, len(text), self._handle)
        return text.value.decode()

    def attribute(self, name: str) -> int:
        """A number that the driver tells of the device, such as ``"multiprocessors"``."""
        return self._driver.number("cuDeviceGetAttribute", _ATTRIBUTES[name], self._handle)

    @cached_property
    def arch(self) -> str:
        """The architecture, such as ``"sm_90"``."""
        return f"sm_{self.attribute('major')}{self.attribute('minor')}"

    @cached_property
    def multiprocessors(self) -> int:
        """How many blocks' worth of processors there are."""
        return self.attribute("multiprocessors")

    @property
    def total_memory(self) -> int:
        """The device's memory, in bytes."""
        return self._driver.handle("cuDeviceTotalMem_v2", self._handle)

    @property
    def free_memory(self) -> int:
        """The bytes that nobody has allocated now."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        with self.context() as call:
            call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    @contextmanager
    def context(self) -> Iterator[Driver]:
        """The driver, with this device current for this thread; what was current is so again.

        Raises `DeviceError` in a process that was forked from the one that used the device.
        """
        if os.getpid() != self._process:
            raise DeviceError(
                f"cuda: device {self.number} was used before this process was forked, and CUDA "
                "does not survive a fork; start processes by multiprocessing's 'spawn'"
            )
        with self._lock:
            if self._context is None:
                self._context = self._driver.handle("cuDevicePrimaryCtxRetain", self._handle)
            context = self._context
        self._driver("cuCtxPushCurrent_v2", context)
        try:
            yield self._driver
        finally:
            self._driver("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_uint64()))

    def synchronize(self) -> None:
        """Waits for all work on the device. Raises `DeviceError` where some of it failed."""
        with self.context() as call:
            call("cuCtxSynchronize", doing=f"cuda: work on device {self.number}")

    def reset(self) -> None:
        """Ends the device's context: its memory is freed, loaded programs are loaded anew.

        The only way on after a kernel has failed. `DeviceArray`s that lay on the device raise
        `DeviceError` from now on.
        """
        with self._lock:
            self.generation += 1
            self._context = None
            self._driver("cuDevicePrimaryCtxReset_v2", self._handle)


_guard = threading.Lock()


@cache
def _devices() -> list[Device]:
    return [Device(number) for number in range(driver().number("cuDeviceGetCount"))]


def devices() -> list[Device]:
    """The CUDA devices of this machine; none where there is no driver, or none behind it."""
    try:
        with _guard:
            return [*_devices()]
    except DeviceNotFoundError:
        return []


def device_of(name: str = "cuda") -> Device:
    """The device that ``"cuda"`` (the first) or ``"cuda:1"`` names.

    Raises `DeviceNotFoundError` where there is none, `AttributeValueError` for other names.
    """
    kind, _, number = name.partition(":")
    if kind != "cuda" or not (number or "0").isdecimal():
        raise AttributeValueError(f"device must be 'cuda' or 'cuda:NUMBER', not {name!r}")
    driver()
    with _guard:
        found = _devices()
    if int(number or 0) >= len(found):
        raise DeviceNotFoundError(
            f"cuda: there is no device {int(number or 0)}; the driver sees {len(found)}"
        )
    return found[int(number or 0)]
