"""The memory interface of a target: a launch allocates and copies by it while a program runs."""

from __future__ import annotations

import ctypes
from typing import Protocol

import numpy as np


class MemorySpaces(Protocol):
    """The memory that kernels work on. Addresses are numbers, of the host or of a device.

    A loop's predicate and a branch's selector lie where kernels have put them; `read` fetches
    them, and no portable code reads them from the host's memory.
    """

    def allocate(self, nbytes: int) -> int:
        """The address of fresh memory, as aligned as `ir.limits.Limits` says."""

    def free(self, address: int) -> None:
        """Gives memory back that `allocate` has given."""

    def place(self, array: np.ndarray) -> int:
        """The address of an array's bytes for kernels: its own, or that of a copy."""

    def fetch(self, address: int, array: np.ndarray) -> None:
        """Makes the array hold what lies at an address that `place` gave for it; frees a copy."""

    def read(self, address: int, nbytes: int) -> bytes:
        """A few bytes, when all kernels that were called before have written them."""


class HostMemory:
    """Kernels work on NumPy's own memory."""

    def __init__(self) -> None:
        self._held: dict[int, np.ndarray] = {}

    def allocate(self, nbytes: int) -> int:
        memory = np.empty(nbytes + 64, np.uint8)
        address = -(-memory.ctypes.data // 64) * 64
        self._held[address] = memory
        return address

    def free(self, address: int) -> None:
        del self._held[address]

    def place(self, array: np.ndarray) -> int:
        return array.ctypes.data

    def fetch(self, address: int, array: np.ndarray) -> None:
        assert address == array.ctypes.data

    def read(self, address: int, nbytes: int) -> bytes:
        return ctypes.string_at(address, nbytes)
