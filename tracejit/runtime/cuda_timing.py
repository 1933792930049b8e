"""Times the kernels of a program on a CUDA device, by events of its stream.

timing = timed_on_device(executable, explanation, [x, y])
"""

from __future__ import annotations

import ctypes
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tracejit.backends.explanation import Explanation
from tracejit.backends.launch_plan import HostCall, Launch, LibraryCall
from tracejit.cuda.streams import Stream
from tracejit.runtime.cuda_executable import CudaExecutable
from tracejit.runtime.measuring import LEAST_RUNS, MOST_RUNS, SECONDS, Timing


def timed_on_device(
    executable: CudaExecutable, told: Explanation, arguments: Sequence[object]
) -> Timing:
    """Times every kernel of a program on these arguments, in about `SECONDS`.

    Raises `ArgumentError` for arguments that do not fit, and what a callback raises.
    """
    run = _Run()
    executable.run_watched(arguments, run.watch)  # loads the program
    run.synchronize()
    runs: list[_Run] = []
    whole = float("inf")
    end = time.perf_counter() + SECONDS
    while len(runs) < LEAST_RUNS or (len(runs) < MOST_RUNS and time.perf_counter() < end):
        begin = time.perf_counter()
        executable.run_watched(arguments, _Run().watch_nothing)
        run.synchronize()
        whole = min(whole, time.perf_counter() - begin)
        runs.append(_Run())
        executable.run_watched(arguments, runs[-1].watch)
        runs[-1].finish()
    names = [kernel.name for kernel in told.kernels]
    least = [min(each.seconds[name] for each in runs) for name in names]
    launched = executable.plan.launched
    calls = [runs[-1].launches[name] // max(len(launched[name]), 1) for name in names]
    return Timing(calls, least, whole)


class _Run:
    """One run: launches and seconds by the names of kernels."""

    def __init__(self) -> None:
        self.launches: Counter[str] = Counter()
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._stream: Stream | None = None
        self._events: list[tuple[str, int, int]] = []

    @contextmanager
    def watch_nothing(
        self, node: Launch | HostCall | LibraryCall, stream: Stream
    ) -> Iterator[None]:
        yield

    @contextmanager
    def watch(self, node: Launch | HostCall | LibraryCall, stream: Stream) -> Iterator[None]:
        """Counts a launch, with an event before it and one after it."""
        self._stream = stream
        self.launches[node.kernel] += len(node.otherwise) if isinstance(node, LibraryCall) else 1
        if isinstance(node, HostCall):
            stream.synchronize()
            begin = time.perf_counter()
            yield
            self.seconds[node.kernel] += time.perf_counter() - begin
            return
        with stream.device.context() as call:
            first, last = (call.handle("cuEventCreate", 0) for _ in range(2))
            call("cuEventRecord", first, stream.handle)
            yield
            call("cuEventRecord", last, stream.handle)
        self._events.append((node.kernel, first, last))

    def synchronize(self) -> None:
        """Waits for what was queued."""
        if self._stream is not None:
            self._stream.synchronize()

    def finish(self) -> None:
        """Waits, and adds up what the events say."""
        self.synchronize()
        if self._stream is None:
            return
        with self._stream.device.context() as call:
            for kernel, first, last in self._events:
                milliseconds = ctypes.c_float()
                call("cuEventElapsedTime", ctypes.byref(milliseconds), first, last)
                self.seconds[kernel] += milliseconds.value / 1e3
                call("cuEventDestroy_v2", first)
                call("cuEventDestroy_v2", last)
