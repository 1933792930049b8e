"""A compiled program that several devices run together.

program.run(arrays)                 every device gets the same arrays; the first one's results
program.run_each([[x0], [x1]])      each thread gets its own, and returns its own
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from tracejit.errors import UnsupportedError
from tracejit.runtime.devices.communicator import Communicator
from tracejit.runtime.devices.device import Device
from tracejit.runtime.devices.threads import run_on_threads
from tracejit.runtime.devices.world import rank_communicator, timeout
from tracejit.runtime.executable import Executable
from tracejit.sources import Source

R = TypeVar("R")
Results = list[np.ndarray]


class DevicesExecutable(Executable):
    """``executable`` on ``replica_count`` times ``num_partitions`` devices.

    They are the ranks of MPI where it has begun, and threads otherwise. Under MPI a call runs this
    process's part, on its own arguments. Arguments are never written over.
    """

    def __init__(
        self,
        executable: Executable,
        replica_count: int,
        num_partitions: int,
        sources: Mapping[str, Source],
    ) -> None:
        self.__dict__.update(executable.__dict__)
        self._executable = executable
        self._grid = replica_count, num_partitions
        self._sources = sources
        self._device: Device | None = None
        self.run = self._run

    @property
    def device_count(self) -> int:
        return self._grid[0] * self._grid[1]

    @property
    def is_on_ranks(self) -> bool:
        """Whether this process runs one device's part."""
        return rank_communicator() is not None

    def _run(self, arguments: Sequence[object]) -> Results | None:
        communicator = rank_communicator()
        if communicator is None:
            return self._on_devices(lambda number: self._executable.run(arguments))[0]
        with self._device_here(communicator).running():
            return self._executable.run(arguments)

    def run_each(self, arguments: Sequence[Sequence[object]]) -> list[Results]:
        """The results of each device; under MPI ``arguments`` has this rank's alone."""
        return self._on_devices(
            lambda number: self._executable(arguments[number if len(arguments) > 1 else 0])
        )

    def on_all(self, arguments: Sequence[Sequence[object]]) -> list[Results]:
        """The results of every device, on every rank, of every device's arguments."""
        communicator = rank_communicator()
        if communicator is None:
            return self.run_each(arguments)
        (mine,) = self.run_each([arguments[communicator.number]])
        columns = [communicator.gathered(array) for array in mine]
        return [list(part) for part in zip(*columns, strict=True)]

    def _on_devices(self, run: Callable[[int], R]) -> list[R]:
        communicator = rank_communicator()
        if communicator is None:
            return run_on_threads(
                self.device_count, lambda each: _run_on(self._device_of(each), run), timeout()
            )
        return [_run_on(self._device_here(communicator), run)]

    def _device_here(self, communicator: Communicator) -> Device:
        """This rank's device. Raises `UnsupportedError` for another number of ranks."""
        if self._device is None:
            if communicator.count != self.device_count:
                raise UnsupportedError(
                    f"call: the program runs on {self.device_count} devices, and MPI has "
                    f"{communicator.count} ranks; start it with mpiexec -n {self.device_count}"
                )
            self._device = self._device_of(communicator)
        return self._device

    def _device_of(self, communicator: Communicator) -> Device:
        return Device(communicator, *self._grid, self._sources)


def _run_on(device: Device, run: Callable[[int], R]) -> R:
    with device.running():
        return run(device.number)
