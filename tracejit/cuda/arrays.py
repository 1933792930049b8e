"""Arrays in a device's memory, shared with other libraries without a copy.

x.shape, x.dtype, x.device
torch.from_dlpack(x);  cupy.asarray(x)      # the same memory
numpy.asarray(x)                            # a copy on the host
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from tracejit.cuda import dlpack
from tracejit.cuda.device import Device, device_of
from tracejit.cuda.memory import Memory, allocate, copy_in, copy_out
from tracejit.cuda.streams import Stream
from tracejit.errors import ArgumentError, DeviceError


class DeviceArray:
    """A row-major array in the memory of a CUDA device.

    ``owner`` keeps the memory at ``address`` alive: a `Memory`, or another library's array. The
    array's values are there when the work that was queued on ``device``'s stream is done.
    """

    __array_priority__ = 1000
    is_device_array = True
    """What tells `jit` that an array stays where it lies."""

    def __init__(
        self,
        device: Device,
        dtype: np.dtype,
        shape: tuple[int, ...],
        address: int,
        owner: object,
    ) -> None:
        self.device = device
        self.dtype = dtype
        self.shape = shape
        self._address = address
        self._owner = owner
        self._generation = device.generation

    @staticmethod
    def over(memory: Memory, dtype: np.dtype, shape: tuple[int, ...]) -> DeviceArray:
        """The array that fills ``memory``."""
        return DeviceArray(memory.device, dtype, shape, memory.address, memory)

    @property
    def address(self) -> int:
        """Where the array begins.

        Raises `DeviceError` where it was donated, or the device was reset.
        """
        if self._owner is None:
            raise DeviceError(f"{self._described()} was donated to a call and cannot be read")
        if self._generation != self.device.generation:
            raise DeviceError(
                f"{self._described()} is gone: device {self.device.number} was reset "
                "after it was made"
            )
        return self._address

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self.size * self.dtype.itemsize

    @property
    def is_deleted(self) -> bool:
        """Whether the memory was donated, or lost with the device's context."""
        return self._owner is None or self._generation != self.device.generation

    def give_away(self) -> object:
        """What keeps the memory alive, for a call that writes over it; the array is deleted."""
        owner, self._owner = self._owner, None
        return owner

    def block_until_ready(self) -> DeviceArray:
        """The array, once its values are computed. Raises `DeviceError` where a kernel failed."""
        Stream.current(self.device).synchronize()
        return self

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ArgumentError(f"{self._described()} cannot be read on the host without a copy")
        made = np.empty(self.shape, self.dtype)
        copy_out(self.device, self.address, made)
        return made if dtype is None else made.astype(dtype, copy=False)

    def __array_ufunc__(self, *args: Any, **kwargs: Any) -> Any:
        raise ArgumentError(
            f"{self._described()} is no operand of NumPy's; call a function that is compiled for "
            "cuda, or copy it by np.asarray"
        )

    def tolist(self) -> Any:
        """The elements as Python numbers, in nested lists."""
        return np.asarray(self).tolist()

    def item(self) -> Any:
        """The only element, as a Python number."""
        return np.asarray(self).item()

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without dimensions")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iter(np.asarray(self))

    def __getitem__(self, index: Any) -> Any:
        """What NumPy gives for a copy on the host; for ``()`` the array itself."""
        return self if isinstance(index, tuple) and not index else np.asarray(self)[index]

    def __float__(self) -> float:
        return float(np.asarray(self).item())

    def __int__(self) -> int:
        return int(np.asarray(self).item())

    def __bool__(self) -> bool:
        return bool(np.asarray(self))

    def __repr__(self) -> str:
        if self.is_deleted:
            return f"<deleted {self._described()}>"
        text = np.array2string(np.asarray(self), separator=", ", prefix="DeviceArray(")
        return f"DeviceArray({text}, dtype={self.dtype}, device='cuda:{self.device.number}')"

    def __reduce__(self) -> tuple[object, ...]:
        return _copied_back, (np.asarray(self), self.device)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Version 3 of Numba's protocol, which CuPy and PyTorch read."""
        if self.dtype.isbuiltin != 1:
            raise AttributeError(f"__cuda_array_interface__ knows no {self.dtype}; use __dlpack__")
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.address, False),
            "strides": None,
            "version": 3,
            "stream": Stream.current(self.device).handle or 1,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack's number of CUDA, and the device's."""
        return dlpack.CUDA, self.device.number

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: Any = None,
        dl_device: Any = None,
        copy: bool | None = None,
    ) -> object:
        """A capsule of the same memory; work queued on ``stream`` waits for what makes it."""
        if dl_device not in (None, self.__dlpack_device__()) or copy:
            raise BufferError(f"{self._described()} is shared where it lies, without a copy")
        if stream != -1:
            Stream.current(self.device).synchronize()
        return dlpack.exported(
            (self, self._owner), self.address, self.dtype, self.shape, self.device.number
        )

    def _described(self) -> str:
        sizes = ",".join(map(str, self.shape))
        return f"the array {self.dtype}[{sizes}] on CUDA device {self.device.number}"


def _copied_back(array: np.ndarray, device: Device) -> DeviceArray:
    memory = allocate(device, array.nbytes, "an unpickled array")
    copy_in(device, memory.address, array)
    return DeviceArray.over(memory, array.dtype, array.shape)


def device_of_arguments(arguments: Iterable[object]) -> Device:
    """The device on which the device arrays among arguments lie; the first device if there is none.

    Raises `ArgumentError` if they lie on several.
    """
    found = {a.device for a in arguments if isinstance(a, DeviceArray)}
    if len(found) > 1:
        numbers = " and ".join(sorted(str(device.number) for device in found))
        raise ArgumentError(f"call: arguments lie on CUDA devices {numbers}; put them on one")
    return found.pop() if found else device_of()
