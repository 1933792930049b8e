"""Times competing functions alternately, so that disturbances affect all of them.

times = Stopwatch().times({"old": old, "new": new}, seconds=0.2)
winner(times, "old")                        # "new" if it is clearly quicker
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median

MARGIN = 0.03
"""By how much a winner is quicker, at least; less may be chance."""

LEAST_TURNS, MOST_TURNS = 3, 60
SAMPLE_SECONDS = 50e-6
"""A shorter run is repeated within one sample, so that the clock does not count."""

HOPELESS = 1.4
"""The ratio to the best time beyond which a function is not timed again."""

Times = Mapping[str, Sequence[float]]


class Stopwatch:
    """The real clock."""

    def now(self) -> float:
        """Seconds since some moment."""
        return time.perf_counter()

    def times(self, runs: Mapping[str, Callable[[], object]], seconds: float) -> Times:
        """What each run takes, measured in turns for about ``seconds``, and a few times at least.

        Those that are hopelessly slow get fewer turns.
        """
        taken: dict[str, list[float]] = {label: [] for label in runs}
        repeats = {label: self._repeats(run) for label, run in runs.items()}
        end = self.now() + seconds
        going = dict(runs)
        turn = 0
        while turn < LEAST_TURNS or (turn < MOST_TURNS and self.now() < end):
            for label, run in going.items():
                begin = self.now()
                for _ in range(repeats[label]):
                    run()
                taken[label].append((self.now() - begin) / repeats[label])
            turn += 1
            if turn == 2:
                limit = HOPELESS * min(map(min, taken.values()))
                going = {label: run for label, run in going.items() if min(taken[label]) <= limit}
        return taken

    def _repeats(self, run: Callable[[], object]) -> int:
        """How often a run is repeated in one sample; it is run once to see, which also warms up."""
        begin = self.now()
        run()
        took = self.now() - begin
        return max(1, min(1000, round(SAMPLE_SECONDS / max(took, 1e-9))))


def winner(times: Times, current: str) -> str:
    """What is clearly quicker than ``current``, at best and as a rule; else ``current``."""
    best = min(times, key=lambda label: min(times[label]))
    goal = 1 - MARGIN
    at_best = min(times[best]) < goal * min(times[current])
    as_a_rule = median(times[best]) < goal * median(times[current])
    return best if at_best and as_a_rule else current
