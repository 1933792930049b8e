"""Programs whose kernels were measured, and the measurements on disk.

    programs = TunedPrograms(DiskCache.default(), key, options)
    programs.find(seconds, untuned)                        # without measuring, or None
    programs.tune(executable, candidates, arguments, seconds)

Beside the program lies a note of how it was tuned, and one for every kernel, by its text: another
program with the same kernel need not measure it again. A damaged note is ignored.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict

import numpy as np

from tracejit.backends.explanation import Explanation
from tracejit.backends.tunable import Candidates, Measured, Tunable
from tracejit.errors import CompilationError
from tracejit.runtime.cache import DiskCache, cache_key
from tracejit.runtime.executable import Executable
from tracejit.runtime.kernel_bench import agree, epsilon
from tracejit.runtime.measuring import SECONDS, captured, timed, without_donation
from tracejit.runtime.progress import Progress
from tracejit.runtime.stopwatch import Stopwatch
from tracejit.runtime.tuning import LEAST_SHARE, TURN_SECONDS, Budget, Search
from tracejit.runtime.tuning_notes import Tuning, read

MOST_BYTES = 1 << 30
"""Kernels with more memory are left as they are: it would be taken twice."""

CALLS_AT_THE_END = 10
"""Whole calls in which the tuned program is compared with the untuned one."""


class TunedPrograms:
    """One program, given by its key in the cache, and its kernels, compiled with ``options``."""

    def __init__(
        self, cache: DiskCache, key: str, options: str, stopwatch: Stopwatch | None = None
    ) -> None:
        self._cache = cache
        self._options = options
        self._key = cache_key(key, "tuned")
        self._stopwatch = stopwatch or Stopwatch()
        self._kernels: dict[str, Measured | None] = {}

    def find(self, seconds: float, untuned: Callable[[], Executable]) -> Executable | None:
        """The tuned program, if ``seconds`` would not find a better one: that is ``untuned``, too.

        None if it was not tuned, or has candidates left and was given less time.
        """
        found = read(Tuning, self._cache.recall(self._key))
        if found is None or not (found.complete or found.seconds >= seconds):
            return None
        executable = self._cache.find(found.program) if found.kept else untuned()
        if executable is not None:
            executable.tuning = found
        return executable

    def tune(
        self,
        untuned: Executable,
        candidates: Candidates,
        arguments: Sequence[object],
        seconds: float,
        progress: Progress,
    ) -> Executable:
        """The program with those kernels that are quicker than before, measured on ``arguments``.

        It is ``untuned`` itself if none is, or if the whole is no quicker, or makes other results.
        Raises what a callback raises, and `ArgumentError` for arguments that do not fit.
        """
        budget = Budget(seconds, self._stopwatch)
        arrays = untuned.conformed(arguments)
        search = Search(candidates, budget, progress)
        complete = self._search(untuned, candidates.kernels, arrays, search)
        changed = [self._known(k.text) for k in candidates.kernels if self._changed(k)]
        made, program, before, after = untuned, "", 0.0, 0.0
        if changed:
            # Named by what it is: a library that lies where another lay would be taken for that.
            program = cache_key(self._key, repr(changed))
            built = self._cache.add(program, candidates.build(self._known))
            before, after = self._whole(untuned, built, arrays)
            if after <= before:
                made = built
            else:
                program, after = "", before
        made.tuning = Tuning(seconds, search.measured, complete, program, before, after)
        self._cache.remember(self._key, asdict(made.tuning))
        return made

    def _search(
        self,
        untuned: Executable,
        kernels: Sequence[Tunable],
        arrays: Sequence[np.ndarray],
        search: Search,
    ) -> bool:
        """Measures the heaviest kernels; whether all of their candidates were looked at."""
        told = Explanation.from_json(untuned.artifact.explanation)
        timing = timed(untuned, told, arrays, min(SECONDS, search.budget.seconds / 10), fewest=1)
        spent = timing.seconds
        reserve = CALLS_AT_THE_END * timing.whole
        numbers = {facts.name: number for number, facts in enumerate(told.kernels)}
        shares = {k.name: spent[numbers[k.name]] / (sum(spent) or 1) for k in kernels}
        heavy = [
            kernel
            for kernel in sorted(kernels, key=lambda k: -shares[k.name])
            if shares[kernel.name] >= LEAST_SHARE
            and sum(kernel.sizes) <= MOST_BYTES
            and not self._is_settled(kernel)
        ]
        search.planned = sum(len(names) - 1 for k in heavy for names in k.questions.values())
        complete = True
        for place, kernel in enumerate(heavy):
            rest = sum(shares[each.name] for each in heavy[place:])
            left = search.budget.left - reserve
            if left <= 0:
                return False
            until = reserve + left * (1 - shares[kernel.name] / rest)
            number = numbers[kernel.name]
            contents = captured(untuned, told, arrays, number, kernel.sizes)
            if contents is None:
                continue
            known = self._known(kernel.text)
            start = kernel.taken if known is None else known.taken
            try:
                found = search.kernel(kernel, contents, until, start)
            except CompilationError:  # it can only be compiled with its neighbours
                continue
            self._learn(kernel, found)
            complete = complete and found.complete
        return complete

    def _whole(
        self, untuned: Executable, tuned: Executable, arrays: Sequence[np.ndarray]
    ) -> tuple[float, float]:
        """Seconds of a whole call of both; infinite where results differ by more than rounding."""
        wanted, made = (e(without_donation(e, arrays)) for e in (untuned, tuned))
        calls = {
            "untuned": lambda: untuned(without_donation(untuned, arrays)),
            "tuned": lambda: tuned(without_donation(tuned, arrays)),
        }
        times = self._stopwatch.times(calls, 2 * TURN_SECONDS)
        before, after = min(times["untuned"]), min(times["tuned"])
        pairs = zip(wanted, made, strict=True)
        equal = all(agree(a, b, _program_ulps(a)) for a, b in pairs)
        return before, after if equal else math.inf

    def _is_settled(self, kernel: Tunable) -> bool:
        known = self._known(kernel.text)
        return known is not None and known.complete

    def _changed(self, kernel: Tunable) -> bool:
        known = self._known(kernel.text)
        return known is not None and dict(known.taken) != dict(kernel.taken)

    def _known(self, text: str) -> Measured | None:
        """What was measured of a kernel, now or before."""
        if text not in self._kernels:
            self._kernels[text] = read(Measured, self._cache.recall(self._kernel_key(text)))
        return self._kernels[text]

    def _learn(self, kernel: Tunable, found: Measured) -> None:
        self._kernels[kernel.text] = found
        self._cache.remember(self._kernel_key(kernel.text), asdict(found))

    def _kernel_key(self, text: str) -> str:
        return cache_key(text, f"{self._options},kernel")


def _program_ulps(wanted: np.ndarray) -> float:
    """Roundings, which later steps may have made larger, leave half of the digits."""
    if wanted.dtype.kind in "biu":
        return 0.0
    return 1 / math.sqrt(epsilon(wanted))
