"""Devices that are ranks of MPI, which carries their messages (mpi4py).

    communicator = MPICommunicator(timeout=300.0)

Ranks that fail or end tell the others so, by messages of their own.
"""

from __future__ import annotations

import functools
import os
import time
import zlib

import numpy as np
from mpi4py import MPI

from tracejit.errors import UnsupportedError
from tracejit.runtime.devices.communicator import Communicator, Parts, Tag, Transfer
from tracejit.runtime.devices.world import HAS_ENDED, SIZES
from tracejit.system import affinity

_STATE_TAG, _DONE_TAG = 1, 2
_SPINS, _YIELDS = 2000, 2000
"""Attempts without a pause, where each rank here has a processor; then attempts that yield."""
_SHORT_PAUSE = 0.0002
_RUN = 40503
"""How far apart the tags of an op's runs are."""


class MPICommunicator(Communicator):
    """This rank's way to all ranks that the launcher started."""

    unit = "rank"
    needs_progress = True
    has_sum = True

    def __init__(self, timeout: float) -> None:
        _require_launcher()
        world = MPI.COMM_WORLD
        self.number, self.count = world.rank, world.size
        self.timeout = timeout
        self._collectives = world.Dup()
        self._messages = world.Dup()
        self._control = world.Dup()
        self._most = int(world.Get_attr(MPI.TAG_UB) or 32767)
        here = world.Split_type(MPI.COMM_TYPE_SHARED)
        self._spins = _SPINS if here.size <= affinity() else 0
        here.Free()
        self._states: dict[int, str] = {}
        self._groups: dict[tuple[int, ...], MPI.Intracomm] = {}
        self._is_announced = False
        self._done: set[int] = set()
        self._sent: list[tuple[MPI.Request, object]] = []

    def exchange(
        self, tag: Tag, sends: Parts, receives: Parts, is_message: bool = False
    ) -> Transfer:
        """Messages between the memory of both, without a copy where the MPI library needs none."""
        comm = self._messages if is_message else self._collectives
        number = (_number(tag.op) + tag.run * _RUN) % self._most
        arriving = [
            (source, comm.Irecv((array, array.nbytes, MPI.BYTE), source, number), array)
            for source, array in receives
        ]
        leaving = []
        for target, array in sends:
            # A message may be taken at any time: it is sent from memory of its own.
            kept = array.copy() if is_message else array
            request = comm.Isend((kept, kept.nbytes, MPI.BYTE), target, number)
            if is_message:
                self._sent = [pair for pair in self._sent if not pair[0].Test()]
                self._sent.append((request, kept))
            else:
                leaving.append((target, request, kept))
        return _Requests(number, arriving, leaving, self._spins)

    def sum(self, members: tuple[int, ...], given: np.ndarray, result: np.ndarray) -> Transfer:
        """MPI's Allreduce."""
        comm = self._groups.get(members)
        if comm is None:
            group = self._collectives.group.Incl(members)
            comm = self._groups[members] = self._collectives.Create_group(group)
        request = comm.Iallreduce(given, result, MPI.SUM)
        others = [n for n in members if n != self.number]
        return _Requests(-1, [(n, request, result) for n in others[:1]], [], self._spins)

    def pause(self, attempt: int) -> None:
        """Spins a little, then lets other processes run, then sleeps."""
        if attempt > self._spins + _YIELDS:
            time.sleep(_SHORT_PAUSE)
        elif attempt > self._spins:
            os.sched_yield() if hasattr(os, "sched_yield") else time.sleep(0)

    def state_of(self, number: int, transfer: Transfer) -> str | None:
        """What a rank has announced, or that it is at another op."""
        self._listen()
        if number in self._states:
            return self._states[number]
        status = MPI.Status()
        if (
            isinstance(transfer, _Requests)
            and transfer.tag >= 0
            and self._collectives.Iprobe(number, MPI.ANY_TAG, status)
            and (status.Get_tag() != transfer.tag)
        ):
            return "is at another op, or at one of another shape"
        return None

    def _listen(self) -> None:
        status = MPI.Status()
        while self._control.Iprobe(MPI.ANY_SOURCE, _STATE_TAG, status):
            text = np.empty(status.Get_count(MPI.BYTE), np.uint8)
            self._control.Recv([text, MPI.BYTE], status.Get_source(), _STATE_TAG)
            self._states.setdefault(status.Get_source(), text.tobytes().decode(errors="replace"))
        while self._control.Iprobe(MPI.ANY_SOURCE, _DONE_TAG, status):
            self._control.Recv([np.empty(0, np.uint8), MPI.BYTE], status.Get_source(), _DONE_TAG)
            self._done.add(status.Get_source())

    def announce(self, state: str) -> None:
        """Only the first time."""
        if self._is_announced:
            return
        self._is_announced = True
        self._tell_all(np.frombuffer(state[:1000].encode(), np.uint8), _STATE_TAG)

    def _tell_all(self, text: np.ndarray, tag: int) -> None:
        for number in range(self.count):
            if number != self.number:
                request = self._control.Isend([text, MPI.BYTE], number, tag)
                self._sent.append((request, text))

    def end_together(self, seconds: float) -> bool:
        """Whether all other ranks have nothing left to say either, within ``seconds``.

        A rank has said all when it calls this, or when it has ended.
        """
        self._tell_all(np.empty(0, np.uint8), _DONE_TAG)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._listen()
            self._sent = [pair for pair in self._sent if not pair[0].Test()]
            ended = {number for number, state in self._states.items() if state == HAS_ENDED}
            if len(self._done | ended) == self.count - 1 and not self._sent:
                return True
            time.sleep(0.01)
        return False

    def abort(self) -> None:
        """Ends all ranks."""
        MPI.COMM_WORLD.Abort(1)

    def gathered(self, array: np.ndarray) -> list[np.ndarray]:
        """The arrays that all ranks bring, which may be of any shapes."""
        return list(self._control.allgather(array))

    def barrier(self) -> None:
        """Returns when all ranks are here."""
        self._control.Barrier()


class _Requests(Transfer):
    def __init__(
        self,
        tag: int,
        arriving: list[tuple[int, MPI.Request, np.ndarray]],
        leaving: list[tuple[int, MPI.Request, np.ndarray]],
        spins: int,
    ) -> None:
        self.tag = tag
        self._arriving = arriving
        self._leaving = leaving
        self._all = [request for _, request, _ in (*arriving, *leaving)]
        self._spins = spins

    def test(self) -> bool:
        return MPI.Request.Testall(self._all)

    def spin(self) -> bool:
        return all(
            request.Test() or any(request.Test() for _ in range(self._spins))
            for request in self._all
        )

    def missing(self) -> list[int]:
        for pairs in (self._arriving, self._leaving):
            left = [n for n, request, _ in pairs if request and not request.Test()]
            if left:
                return list(dict.fromkeys(left))
        return []

    def cancel(self) -> None:
        for _, request, _ in self._arriving:
            if request and self.tag >= 0:
                request.Cancel()
                request.Wait()
        # What is being sent cannot be taken back; its memory is kept.
        _abandoned.extend(self._leaving if self.tag >= 0 else self._arriving)


_abandoned: list[tuple[int, MPI.Request, np.ndarray]] = []


@functools.lru_cache(maxsize=4096)
def _number(op: str) -> int:
    return zlib.crc32(op.encode())


def _require_launcher() -> None:
    """Raises `UnsupportedError` where a launcher of another MPI has started this process."""
    for name, launcher in SIZES.items():
        started = os.environ.get(name, "")
        if started.isdecimal() and int(started) > 1 and MPI.COMM_WORLD.size == 1:
            library = MPI.Get_library_version().split("\n")[0]
            raise UnsupportedError(
                f"distributed: {launcher}'s launcher started {started} processes, but mpi4py is "
                f"built for another MPI ({library}) and each of them is alone; use its own mpiexec"
            )
