"""One device that runs a compiled program: its numbers, its groups, and what it has begun.

with Device(communicator, 2, 2, sources).running():
    executable.run(arrays)
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence

import numpy as np

from tracejit.errors import DeadlockError
from tracejit.graph import Instruction
from tracejit.ops.groups import GroupsOfDevices
from tracejit.runtime.devices import timeline
from tracejit.runtime.devices.communicator import Communicator, Tag, Transfer
from tracejit.sources import Source

Steps = Generator[Transfer, None, None]
Again = Callable[[], tuple[str, Source | None, int, Steps]]
"""One more run of an op on the same memory: the function, the user's line, bytes, and steps."""

_LONG_BYTES = 1 << 16
"""Shorter messages arrive without anybody asking about them."""
_PROGRESS_SECONDS = 0.0001

_CHECK_SECONDS = 0.2
"""A device that has waited so long asks whether those it waits for are still there."""


class Operation:
    """A collective op under way: ``steps`` yields each transfer that must end before the next.

    ``results`` are the arrays that it fills.
    """

    def __init__(
        self, function: str, source: Source | None, steps: Steps, results: Sequence[np.ndarray]
    ) -> None:
        self.function = function
        self.source = source
        self.results = results
        self.begin = timeline.now()
        self._steps = steps
        self._lock = threading.Lock()
        self.transfer: Transfer | None = None
        self._is_over = False

    def test(self, spins: bool = False) -> bool:
        """Goes on as far as it can; whether the op has ended. Raises what went wrong.

        With ``spins`` it waits a little for each transfer.
        """
        with self._lock:
            while not self._is_over:
                transfer = self.transfer
                if transfer is not None and not (transfer.spin() if spins else transfer.test()):
                    return False
                self.transfer = next(self._steps, None)
                self._is_over = self.transfer is None
            return True

    def cancel(self) -> None:
        with self._lock:
            if self.transfer is not None and not self._is_over:
                self.transfer.cancel()
            self._is_over = True


class _Progress:
    """A thread that lets ops go on while the program computes."""

    def __init__(self) -> None:
        self._operations: list[Operation] = []
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def watch(self, operation: Operation) -> None:
        with self._changed:
            self._operations.append(operation)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="tracejit-mpi", daemon=True)
                self._thread.start()
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._operations)
                waiting, self._operations = self._operations, []
            left = [operation for operation in waiting if not _has_ended(operation)]
            with self._changed:
                self._operations += left
            if left:
                time.sleep(_PROGRESS_SECONDS)


def _has_ended(operation: Operation) -> bool:
    try:
        return operation.test()
    except Exception:  # raised again where the program waits for it
        return True


_progress = _Progress()


class Turns:
    """The order in which sums are handed to MPI: that in which their ops were begun.

    Every rank begins them in the same order; when all ranks have come to one of them is another
    matter on each rank.
    """

    def __init__(self) -> None:
        self.taken = 0
        self.passed = 0

    def take(self, others: Sequence[int]) -> Turn:
        """The turn of a sum with ``others``, after all that were taken before."""
        self.taken += 1
        return Turn(self, self.taken, others)


class Turn(Transfer):
    """Has ended when all turns before it were passed on."""

    def __init__(self, turns: Turns, number: int, others: Sequence[int]) -> None:
        self._turns = turns
        self._number = number
        self._others = list(others)

    def test(self) -> bool:
        return self._turns.passed == self._number - 1

    def missing(self) -> list[int]:
        return self._others

    def cancel(self) -> None:
        """Nothing has begun."""

    def pass_on(self) -> None:
        """Lets the next one go on."""
        self._turns.passed = self._number


class Device:
    """``number`` is that of partition ``partition`` of replica ``replica``.

    ``sources`` has the user's line for the text of each collective op of the program, ``calls``
    ops that have run, by the memory they work on.
    """

    def __init__(
        self,
        communicator: Communicator,
        replica_count: int,
        num_partitions: int,
        sources: Mapping[str, Source],
    ) -> None:
        self.communicator = communicator
        self.replica_count = replica_count
        self.num_partitions = num_partitions
        self.number = communicator.number
        self.replica, self.partition = divmod(self.number, num_partitions)
        self.sources = sources
        self._groups = GroupsOfDevices(replica_count, num_partitions)
        self._begun: dict[int, Operation] = {}
        self._runs: dict[str, int] = {}
        self._count = 0
        self.turns = Turns()
        self.calls: dict[object, Again] = {}
        self._scratch = np.empty(0, np.uint8)

    def group(self, instruction: Instruction) -> tuple[int, ...] | None:
        """The devices that take part in an op with this one, in order; None: in none.

        Raises `AttributeValueError` where the op names devices that are not there.
        """
        return self._groups.of(instruction).get(self.number)

    def begin(self, operation: Operation) -> int:
        """Starts an op, and returns its number for `end`."""
        operation.test()
        self._count += 1
        self._begun[self._count] = operation
        is_long = sum(result.nbytes for result in operation.results) >= _LONG_BYTES
        if is_long and self.communicator.needs_progress:
            _progress.watch(operation)
        return self._count

    def end(self, number: int) -> Sequence[np.ndarray]:
        """Waits for an op that was begun, and returns its results."""
        operation = self._begun.pop(number)
        wait = timeline.now()
        self.finish(operation)
        if wait is not None and operation.begin is not None:
            nbytes = sum(result.nbytes for result in operation.results)
            self._note(operation.function, operation.source, nbytes, operation.begin, wait)
        return operation.results

    def numbered(self, op: str) -> Tag:
        """The tag of this run of the op, as every device counts its runs."""
        count = self._runs[op] = self._runs.get(op, 0) + 1
        return Tag(op, count)

    def scratch(self, nbytes: int) -> np.ndarray:
        """Bytes for what ends before the next op begins."""
        if self._scratch.size < nbytes:
            self._scratch = np.empty(nbytes, np.uint8)
        return self._scratch

    def run(self, function: str, source: Source | None, nbytes: int, steps: Steps) -> None:
        """Does an op, in fewer steps than `begin` and `finish`. Raises what `finish` raises."""
        begin = timeline.now()
        for transfer in steps:
            if not transfer.spin():
                operation = Operation(function, source, steps, ())
                operation.transfer = transfer
                self.finish(operation)
                break
        if begin is not None:
            self._note(function, source, nbytes, begin, begin)

    def _note(
        self, function: str, source: Source | None, nbytes: int, begin: float, wait: float
    ) -> None:
        """Tells the timeline of an op that has just ended."""
        line = f" ({source.file.rpartition('/')[2]}:{source.line})" if source else ""
        end = timeline.now() or wait
        event = timeline.Event(self.number, function, line, nbytes, begin, wait, end)
        timeline.note(event)

    def finish(self, operation: Operation) -> None:
        """Waits for an op; others that were begun go on meanwhile.

        Raises `DeadlockError` where it will never end.
        """
        if operation.test(spins=True):
            return
        attempt = 0
        now = time.monotonic()
        end, check = now + self.communicator.timeout, now + _CHECK_SECONDS
        while not operation.test():
            attempt += 1
            for other in tuple(self._begun.values()):
                other.test()
            self.communicator.pause(attempt)
            now = time.monotonic()
            if now > check:
                check = now + _CHECK_SECONDS
                self._require_hope(operation, now > end)

    def _require_hope(self, operation: Operation, is_late: bool) -> None:
        transfer, communicator = operation.transfer, self.communicator
        if transfer is None:
            return
        unit, missing = communicator.unit, transfer.missing()
        known = {number: communicator.state_of(number, transfer) for number in missing}
        states = [f"{unit} {n} {state}" for n, state in known.items() if state is not None]
        # What was sent before its sender ended is still on its way.
        if not states and not is_late:
            return
        if transfer.test():
            return
        if not states:
            names = ", ".join(map(str, missing))
            states = [f"{unit} {names} did not answer in {communicator.timeout:g} s"]
        raise DeadlockError(
            f"{operation.function}: {unit} {self.number} waits for what never comes: "
            f"{'; '.join(states)}",
            operation.source,
        )

    def running(self) -> _Running:
        """A context in which this thread's programs run on the device."""
        return _Running(self)

    def start(self) -> Device | None:
        """Begins a program; returns the device on which this thread's program has run."""
        before, _current.device = _current.device, self
        self._runs.clear()
        self.turns = Turns()
        return before

    def stop(self, before: Device | None, has_failed: bool) -> None:
        """Ends the program; nothing that it has begun goes on where it ``has_failed``."""
        if has_failed:
            for operation in self._begun.values():
                operation.cancel()
        self._begun.clear()
        _current.device = before


class _Running:
    """`contextlib.contextmanager` would take as long as a short message."""

    __slots__ = ("_before", "_device")

    def __init__(self, device: Device) -> None:
        self._device = device

    def __enter__(self) -> None:
        self._before = self._device.start()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._device.stop(self._before, kind is not None)


class _Current(threading.local):
    device: Device | None = None


_current = _Current()


def current_device() -> Device | None:
    """The device on which this thread's program runs, if it is one of several."""
    return _current.device
