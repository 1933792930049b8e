"""Tuning: which way to write a kernel is quickest here, found by measuring.

    search = Search(candidates, budget, progress)
    measured = search.kernel(kernel, contents, share=0.7)

Questions are settled one after the other, in the order in which they come up: everything else as it
is best so far, each candidate is compiled, its results are compared, and it is timed in turns with
the others. What is not clearly quicker is not taken.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tracejit.backends.scratch import roomy_folders
from tracejit.backends.tunable import Candidates, Measured, Taken, Tunable
from tracejit.errors import CompilationError
from tracejit.runtime.kernel_bench import Run, Workbench
from tracejit.runtime.progress import Progress
from tracejit.runtime.stopwatch import Stopwatch, winner

AT_ONCE = 4
"""Candidates that are compiled together: on all threads, while nothing is timed."""

TURN_SECONDS = 0.15
"""How long the candidates that were compiled together are timed, and a winner again."""

LEAST_SHARE = 0.02
"""Kernels with less than this share of the time are left as they are."""


class Budget:
    """The seconds that a tuning may take, from now on."""

    def __init__(self, seconds: float, stopwatch: Stopwatch) -> None:
        self.seconds = seconds
        self.stopwatch = stopwatch
        self._start = stopwatch.now()

    @property
    def spent(self) -> float:
        return self.stopwatch.now() - self._start

    @property
    def left(self) -> float:
        return self.seconds - self.spent


@dataclass
class Search:
    """The search through the candidates of one program's kernels.

    ``measured`` counts candidates so far, and ``planned`` those that there are.
    """

    candidates: Candidates
    budget: Budget
    progress: Progress
    planned: int = 0
    measured: int = 0
    _dearest: float = field(default=0.0, init=False)

    def kernel(
        self, kernel: Tunable, contents: Sequence[np.ndarray], until: float, start: Taken
    ) -> Measured:
        """The quickest way to write a kernel that is found while ``until`` seconds are left.

        ``contents`` are the bytes of its parameters before it runs; ``start`` is a way that was
        found before. Raises `CompilationError` where the kernel cannot be compiled on its own.
        """
        room = next(roomy_folders(), None)
        if room is None:
            raise CompilationError("no temporary folder has room for candidates; see TMPDIR")
        with tempfile.TemporaryDirectory(prefix="tracejit-", dir=room) as folder:
            search = _KernelSearch(self, kernel, contents, Path(folder), until)
            return search.run(start)

    def may_begin(self, until: float) -> bool:
        """Whether there is time for candidates that take as long as those before."""
        return self.budget.left - self._dearest > until

    def took(self, seconds: float) -> None:
        """Learns how long compiling and timing some candidates takes."""
        self._dearest = seconds

    def count(self, candidates: int) -> None:
        """Count ``candidates`` more measurements."""
        self.measured += candidates
        self.planned = max(self.planned, self.measured)
        self.progress(self.measured, self.planned)


class _KernelSearch:
    def __init__(
        self,
        search: Search,
        kernel: Tunable,
        contents: Sequence[np.ndarray],
        folder: Path,
        until: float,
    ) -> None:
        self._search = search
        self._kernel = kernel
        self._bench = Workbench(kernel, contents)
        self._folder = folder
        self._until = until
        self._libraries = 0

    def run(self, start: Taken) -> Measured:
        found = self._compiled([self._kernel.taken])
        if not found:
            raise CompilationError(f"kernel {self._kernel.name} cannot be compiled on its own")
        best = modelled = found[0]
        if dict(start) != dict(self._kernel.taken):
            best = self._better(best, [start])
        settled: set[str] = set()
        complete = True
        while complete and (open_ := [q for q in best.variant.questions if q not in settled]):
            settled.add(open_[0])
            best, complete = self._settle(best, open_[0])
        before, after = self._compare(modelled, best)
        if best is modelled or after >= before:
            return Measured(self._kernel.taken, before, before, complete)
        return Measured(best.variant.taken, before, after, complete)

    def _settle(self, best: Run, question: str) -> tuple[Run, bool]:
        """The best answer to a question, and whether all of its candidates were looked at."""
        taken = best.variant.taken
        names = [name for name in best.variant.questions[question] if name != taken[question]]
        for first in range(0, len(names), AT_ONCE):
            if not self._search.may_begin(self._until):
                return best, False
            ways = [{**taken, question: name} for name in names[first : first + AT_ONCE]]
            best = self._better(best, ways)
        return best, True

    def _better(self, best: Run, ways: Sequence[Taken]) -> Run:
        """One of these ways to write the kernel, if it is clearly quicker than ``best``."""
        stopwatch = self._search.budget.stopwatch
        begin = stopwatch.now()
        current = _label(best)
        runs = {current: best, **{_label(run): run for run in self._compiled(ways)}}
        if len(runs) > 1:
            calls = {label: run.call for label, run in runs.items()}
            found = winner(stopwatch.times(calls, TURN_SECONDS), current)
            if found != current:
                # The best of many is so by chance too: it has to win again, alone.
                pair = {label: calls[label] for label in (current, found)}
                found = winner(stopwatch.times(pair, TURN_SECONDS), current)
            best = runs[found]
        self._search.took(stopwatch.now() - begin)
        self._search.count(len(ways))
        return best

    def _compare(self, modelled: Run, best: Run) -> tuple[float, float]:
        """The least seconds of both."""
        calls = {_label(run): run.call for run in (modelled, best)}
        times = self._search.budget.stopwatch.times(calls, TURN_SECONDS)
        return min(times[_label(modelled)]), min(times[_label(best)])

    def _compiled(self, ways: Sequence[Taken]) -> list[Run]:
        folder = self._folder / str(self._libraries)
        folder.mkdir()
        self._libraries += 1
        library = self._search.candidates.library(self._kernel.name, ways, folder)
        return self._bench.load(library)


def _label(run: Run) -> str:
    """What a stopwatch calls a way to write the kernel."""
    return ", ".join(f"{question}: {answer}" for question, answer in run.variant.taken.items())
