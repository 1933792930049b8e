"""Running the variants of one kernel on memory of its own, filled as a program's call fills it.

bench = Workbench(kernel, contents)
old, *others = bench.load(library)  # those that compute what the kernel did
stopwatch.times({"old": old.call, "new": others[0].call}, seconds)
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from tracejit.backends.abi import ALIGNMENT
from tracejit.backends.tunable import Library, Tunable, Variant
from tracejit.runtime.callbacks import raise_pending, require
from tracejit.runtime.library import runtime
from tracejit.runtime.sandbox import survivors

KERNEL_ULPS = 1024
"""How far the results of two variants may lie apart, in roundings of the largest number."""


TRIAL_SECONDS = 1.0
TRIAL_RUNS = 20
"""The limits in seconds, and in runs of the first variant; a variant over both is given up."""


class Failed(Exception):
    """A variant gave up."""


@dataclass(frozen=True)
class Run:
    """A variant that can be run; it raises `Failed`, and what a callback raises."""

    variant: Variant
    call: Callable[[], None]


Allocate = Callable[[int, int], np.ndarray]


def aligned(nbytes: int, alignment: int) -> np.ndarray:
    """Bytes that start where a cache line does, which is a multiple of every ``alignment``."""
    memory = np.zeros(nbytes + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + nbytes]


class Workbench:
    """Memory for a kernel's parameters, and the results that every variant has to make.

    ``contents`` are the bytes of each parameter before the kernel runs. ``allocate`` returns
    memory of a number of bytes, which starts at a multiple of the second number.
    """

    def __init__(
        self, kernel: Tunable, contents: Sequence[np.ndarray], allocate: Allocate = aligned
    ) -> None:
        self._kernel = kernel
        self._contents = contents
        self._allocate = allocate
        self._memory = [allocate(array.nbytes, 1) for array in contents]
        self._wanted: list[np.ndarray] | None = None
        self._once = False
        self._patience = TRIAL_SECONDS
        self._fill()

    def load(self, library: Library) -> list[Run]:
        """The library's variants, without those that fail, crash, hang or make other results.

        The first variant of all, the kernel as it was, says what is right; the others are run in a
        copy of the process before they are run here.
        """
        if not library.variants:
            return []
        runs = self.runs(library)
        if self._wanted is not None:
            self._fill()
            came_back = survivors([run.call for run in runs], self._patience)
            runs = [run for run, back in zip(runs, came_back, strict=True) if back]
        return [run for run in runs if self._is_right(run)]

    def runs(self, library: Library) -> list[Run]:
        """All of the library's variants."""
        for variant in library.variants:
            require(variant.callbacks)
        functions = runtime().load_library(library.path)
        return [Run(v, self._caller(functions, v)) for v in library.variants]

    def _caller(self, functions: ctypes.CDLL, variant: Variant) -> Callable[[], None]:
        function = functions[variant.function]
        function.restype = ctypes.c_int
        own = [
            self._allocate(size, ALIGNMENT) if place < 0 else None
            for place, size in variant.arguments
        ]
        pairs = zip(own, variant.arguments, strict=True)
        arrays = [self._memory[place] if mine is None else mine for mine, (place, _) in pairs]
        addresses = [ctypes.c_void_p(array.ctypes.data) for array in arrays]

        def call() -> None:
            if self._once:
                self._fill()
            if function(*addresses):
                raise_pending()
                raise Failed(variant.function)

        call.__dict__["held"] = arrays
        return call

    def _fill(self) -> None:
        for memory, content in zip(self._memory, self._contents, strict=True):
            memory[:] = content

    def _results(self) -> list[np.ndarray]:
        first = self._kernel.reads
        return [
            self._memory[first + number].view(dtype).copy()
            for number, dtype in enumerate(self._kernel.results)
        ]

    def _is_right(self, run: Run) -> bool:
        self._fill()
        begin = time.perf_counter()
        try:
            run.call()
        except Failed:
            return False
        took = time.perf_counter() - begin
        made = self._results()
        if self._wanted is None:
            self._wanted = made
            self._patience = max(TRIAL_SECONDS, TRIAL_RUNS * took)
            run.call()
            # What updates memory in place finds it changed, unless it is filled before each run.
            self._once = not all(map(same_bits, made, self._results()))
            return True
        return all(agree(a, b, KERNEL_ULPS) for a, b in zip(self._wanted, made, strict=True))


def same_bits(left: np.ndarray, right: np.ndarray) -> bool:
    """Whether two arrays hold the same bytes."""
    return left.tobytes() == right.tobytes()


def epsilon(array: np.ndarray) -> float:
    """The distance between 1 and the next number of the array's element type, or of its parts."""
    return float(ml_dtypes.finfo(array.dtype).eps)  # type: ignore[no-untyped-call]


def agree(wanted: np.ndarray, made: np.ndarray, ulps: float) -> bool:
    """Whether two arrays are equal but for rounding: by at most ``ulps`` ulps of the largest
    number.

    NaN and infinity stand in the same places; integers are equal.
    """
    if same_bits(wanted, made):
        return True
    kind = wanted.dtype.kind
    if kind in "biu":
        return False
    wide = np.complex128 if kind == "c" else np.float64
    left, right = wanted.astype(wide), made.astype(wide)
    finite = np.isfinite(left)
    if not np.array_equal(left[~finite], right[~finite], equal_nan=True):
        return False
    if not np.isfinite(right[finite]).all():
        return False
    largest = np.abs(left[finite]).max(initial=0.0)
    return bool(
        np.abs(left[finite] - right[finite]).max(initial=0.0) <= ulps * epsilon(wanted) * largest
    )
