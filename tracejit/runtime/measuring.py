"""Running a compiled program one kernel at a time, with a clock beside each."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tracejit.backends.abi import ALIGNMENT
from tracejit.backends.explanation import SIGNALS, Explanation, Node
from tracejit.errors import CompilationError, UnsupportedError
from tracejit.runtime import interrupts
from tracejit.runtime.callbacks import raise_pending
from tracejit.runtime.executable import Executable

# Runs, at least and at most, and the time after which no other is begun.
LEAST_RUNS, MOST_RUNS, SECONDS = 3, 50, 0.5


@dataclass(frozen=True)
class Timing:
    """For each kernel how often it ran in one run, and the least time that took in all.

    ``whole`` is the least time of a call of the whole program.
    """

    calls: list[int]
    seconds: list[float]
    whole: float


def timed(
    executable: Executable,
    told: Explanation,
    arguments: Sequence[object],
    seconds: float = SECONDS,
    fewest: int = LEAST_RUNS,
) -> Timing:
    """Times every kernel of a program on these arguments, for about ``seconds``.

    There are at least ``fewest`` runs.

    Raises `ArgumentError` for arguments that do not fit, `UnsupportedError` for a program that lies
    in no library of its own, and what a callback raises.
    """
    if executable.library is None:
        raise UnsupportedError(
            "explain: kernels can be timed only where a linker makes a library of them"
        )
    arrays = executable.conformed(arguments)
    executable(without_donation(executable, arrays))
    whole = float("inf")
    names = [kernel.name for kernel in told.kernels]
    runs: list[tuple[list[int], list[float]]] = []
    end = time.perf_counter() + seconds
    while len(runs) < fewest or (len(runs) < MOST_RUNS and time.perf_counter() < end):
        given = without_donation(executable, arrays)
        begin = time.perf_counter()
        executable(given)
        whole = min(whole, time.perf_counter() - begin)
        given = without_donation(executable, arrays)
        run = _Run(executable, executable.library, names, given)
        run.steps(told.steps)
        runs.append((run.calls, run.seconds))
    least = [min(seconds) for seconds in zip(*(s for _, s in runs), strict=True)]
    return Timing(runs[-1][0], least, whole)


def captured(
    executable: Executable,
    told: Explanation,
    arguments: Sequence[object],
    kernel: int,
    sizes: Sequence[int],
) -> list[np.ndarray] | None:
    """The bytes of a kernel's parameters, of these sizes, when it is first called.

    None if it never is. Raises what `timed` raises.
    """
    if executable.library is None:
        raise UnsupportedError("kernels can be run only where a linker makes a library of them")
    arrays = without_donation(executable, executable.conformed(arguments))
    names = [each.name for each in told.kernels]
    run = _Watching(executable, executable.library, names, arrays)
    run.kernel, run.sizes = kernel, sizes
    try:
        run.steps(told.steps)
    except _Seen as seen:
        return seen.contents
    return None


def without_donation(executable: Executable, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The arrays with copies of those that would be written over."""
    donated = executable.donated
    return [array.copy() if n in donated else array for n, array in enumerate(arrays)]


class _Run:
    """One run: memory for everything, and the program's steps carried out on it."""

    def __init__(
        self,
        executable: Executable,
        library: ctypes.CDLL,
        names: Sequence[str],
        arrays: Sequence[np.ndarray],
    ) -> None:
        artifact = executable.artifact
        outputs = [
            arrays[artifact.aliases[number]]
            if number in artifact.aliases
            else np.empty(spec.shape, spec.dtype)
            for number, spec in enumerate(artifact.outputs)
        ]
        work = np.empty(artifact.workspace_bytes + ALIGNMENT, np.uint8)
        start = -work.ctypes.data % ALIGNMENT
        state = interrupts.signal_state()
        self._held = (arrays, outputs, work, artifact.constants, state)
        self._bases = {
            "input": [array.ctypes.data for array in arrays],
            "output": [array.ctypes.data for array in outputs],
            "constant": [array.ctypes.data for array in artifact.constants],
            "workspace": [work.ctypes.data + start],
            SIGNALS: [state.ctypes.data],
        }
        self._kernels = [_kernel(library, name) for name in names]
        self.calls = [0] * len(names)
        self.seconds = [0.0] * len(names)

    def _address(self, place: Sequence[object]) -> int:
        memory, index, offset = place
        assert isinstance(memory, str)
        assert isinstance(index, int)
        assert isinstance(offset, int)
        return self._bases[memory][index] + offset

    def steps(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            if node[0] == "call":
                self._call(node[1], node[2])
            elif node[0] == "loop":
                _, condition, predicate, body, _ = node
                address = self._address(predicate)
                self.steps(condition)
                while ctypes.c_uint8.from_address(address).value:
                    self.steps(body)
                    self.steps(condition)
            else:
                _, selector, branches = node
                chosen = ctypes.c_int32.from_address(self._address(selector)).value
                last = len(branches) - 1
                self.steps(branches[chosen if 0 <= chosen <= last else last])

    def _call(self, number: int, places: Sequence[Sequence[object]]) -> None:
        addresses = [ctypes.c_void_p(self._address(place)) for place in places]
        kernel = self._kernels[number]
        begin = time.perf_counter()
        status = kernel(*addresses)
        self.seconds[number] += time.perf_counter() - begin
        self.calls[number] += 1
        raise_pending()
        if status:
            raise CompilationError("explain: a kernel failed")


class _Seen(Exception):
    """A kernel that was waited for is going to run."""

    def __init__(self, contents: list[np.ndarray]) -> None:
        self.contents = contents


class _Watching(_Run):
    """A run that ends before the first call of one kernel."""

    kernel: int
    sizes: Sequence[int]

    def _call(self, number: int, places: Sequence[Sequence[object]]) -> None:
        if number != self.kernel:
            super()._call(number, places)
            return
        contents = []
        # Candidates ask for no signals.
        own = [place for place in places if place[0] != SIGNALS]
        for place, size in zip(own, self.sizes, strict=True):
            memory = (ctypes.c_uint8 * size).from_address(self._address(place))
            contents.append(np.array(memory, np.uint8))
        raise _Seen(contents)


def _kernel(library: ctypes.CDLL, name: str) -> Callable[..., int]:
    function = library[name]
    function.restype = ctypes.c_int
    return function
