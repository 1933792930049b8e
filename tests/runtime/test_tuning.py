"""The search through candidates, by a clock and measurements of its own: nothing is compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from tracejit.backends.artifact import InProcess
from tracejit.backends.tunable import Find, Library, Measured, Taken, Tunable, Variant
from tracejit.errors import CompilationError
from tracejit.runtime import stopwatch, tuning
from tracejit.runtime.kernel_bench import Run
from tracejit.runtime.stopwatch import Stopwatch, Times, winner
from tracejit.runtime.tuning import Budget, Search

QUESTIONS = {"product": ("tiles", "dots"), "tile": ("8 x 8", "4 x 4", "2 x 2")}
KERNEL = Tunable("k0", "text", {"product": "tiles", "tile": "8 x 8"}, QUESTIONS, [4], 0, [])


class Ways:
    """A kernel whose tile is only asked for where it is made of tiles."""

    def __init__(self, broken: Sequence[str] = ()) -> None:
        self.kernels = [KERNEL]
        self.broken = broken
        self.compiled: list[Taken] = []

    def library(self, kernel: str, ways: Sequence[Taken], folder: Path) -> Library:
        variants = []
        for way in ways:
            questions = QUESTIONS if way["product"] == "tiles" else {"product": ("tiles", "dots")}
            taken = {question: way[question] for question in questions}
            self.compiled.append(taken)
            if not set(self.broken) & set(taken.values()):
                variants.append(Variant(taken, questions))
        return Library(folder / "none.so", variants)

    def build(self, find: Find) -> bytes | InProcess:
        raise AssertionError("not asked for here")


class Bench:
    """Runs nothing; every variant is right."""

    def __init__(self, kernel: Tunable, contents: Sequence[np.ndarray]) -> None:
        pass

    def load(self, library: Library) -> list[Run]:
        return [Run(variant, lambda: None) for variant in library.variants]


class Clock(Stopwatch):
    """Measures what it was told, the tenth of a second each time, by what a label contains."""

    def __init__(self, seconds: Mapping[str, float]) -> None:
        self.seconds = dict(seconds)
        self.time = 100.0
        self.current = 1.0

    def now(self) -> float:
        return self.time

    def times(self, runs: Mapping[str, Callable[[], object]], seconds: float) -> Times:
        self.time += 0.1 * len(runs)
        return {label: [self.of(label)] * 3 for label in runs}

    def of(self, label: str) -> float:
        return min((s for part, s in self.seconds.items() if part in label), default=self.current)


@pytest.fixture(autouse=True)
def bench(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "Workbench", Bench)


def searched(
    clock: Clock, ways: Ways | None = None, seconds: float = 100.0, start: Taken = KERNEL.taken
) -> tuple[Measured, list[tuple[int, int]]]:
    shown: list[tuple[int, int]] = []
    search = Search(ways or Ways(), Budget(seconds, clock), lambda *state: shown.append(state))
    return search.kernel(KERNEL, [], 0.0, start), shown


def test_the_quickest_candidate_is_taken() -> None:
    found, shown = searched(Clock({"2 x 2": 0.5}))
    assert found.taken == {"product": "tiles", "tile": "2 x 2"}
    assert found.complete
    assert shown == [(1, 1), (3, 3)]


def test_what_is_not_clearly_quicker_is_not_taken() -> None:
    found, _ = searched(Clock({"2 x 2": 0.98, "dots": 0.99}))
    assert found == Measured(KERNEL.taken, 1.0, 1.0, True)


def test_a_winner_has_to_win_again() -> None:
    class Chance(Clock):
        def times(self, runs: Mapping[str, Callable[[], object]], seconds: float) -> Times:
            # Among many it was lucky.
            self.seconds = {"4 x 4": 0.5} if len(runs) > 2 else {}
            return super().times(runs, seconds)

    found, _ = searched(Chance({}))
    assert found.taken == KERNEL.taken


def test_questions_are_those_of_the_way_that_is_best() -> None:
    ways = Ways()
    found, _ = searched(Clock({"dots": 0.5}), ways)
    assert found.taken == {"product": "dots"}
    assert all("tile" not in way for way in ways.compiled if way["product"] == "dots")


def test_what_does_not_hold_at_the_end_is_not_taken() -> None:
    class Chance(Clock):
        def times(self, runs: Mapping[str, Callable[[], object]], seconds: float) -> Times:
            found = super().times(runs, seconds)
            self.pairs += len(runs) == 2
            if self.pairs == 2:
                self.seconds = {}
            return found

        pairs = 0

    found, _ = searched(Chance({"dots": 0.5}))
    assert found == Measured(KERNEL.taken, 1.0, 1.0, True)


def test_seconds_before_and_after_are_told() -> None:
    found, _ = searched(Clock({"dots": 0.5}))
    assert found == Measured({"product": "dots"}, 1.0, 0.5, True)


def test_candidates_that_fail_are_left_out() -> None:
    found, _ = searched(Clock({"2 x 2": 0.5, "4 x 4": 0.7}), Ways(broken=["2 x 2"]))
    assert found.taken == {"product": "tiles", "tile": "4 x 4"}


def test_a_kernel_that_cannot_stand_alone_is_an_error() -> None:
    with pytest.raises(CompilationError, match="k0 cannot be compiled on its own"):
        searched(Clock({}), Ways(broken=["tiles"]))


def test_the_search_ends_with_the_budget() -> None:
    ways = Ways()
    # One question takes 0.2 seconds; there is no time for another.
    found, shown = searched(Clock({}), ways, seconds=0.3)
    assert not found.complete
    assert shown == [(1, 1)]
    assert found.taken == KERNEL.taken


def test_the_search_goes_on_where_another_stopped() -> None:
    ways = Ways()
    start = {"product": "tiles", "tile": "2 x 2"}
    found, _ = searched(Clock({"2 x 2": 0.5, "dots": 0.9}), ways, start=start)
    assert ways.compiled[1] == start
    assert found.taken["tile"] == "2 x 2"


def test_a_winner_is_quicker_at_best_and_as_a_rule() -> None:
    assert winner({"old": [2.0, 2.0, 2.0], "new": [1.0, 1.0, 1.0]}, "old") == "new"
    assert winner({"old": [1.0, 2.0, 2.0], "new": [1.0, 1.0, 1.0]}, "old") == "old"
    assert winner({"old": [2.0, 2.0, 2.0], "new": [1.0, 3.0, 3.0]}, "old") == "old"
    margin = 1 - stopwatch.MARGIN / 2
    assert winner({"old": [1.0], "new": [margin]}, "old") == "old"


class Ticking(Stopwatch):
    """The stopwatch itself, with a clock that every run moves."""

    def __init__(self) -> None:
        self.time = 0.0
        self.runs: list[str] = []

    def now(self) -> float:
        return self.time

    def run(self, name: str, seconds: float) -> Callable[[], None]:
        def call() -> None:
            self.runs.append(name)
            self.time += seconds

        return call


def test_runs_take_turns_and_slow_ones_leave() -> None:
    watch = Ticking()
    runs = {"a": watch.run("a", 0.01), "b": watch.run("b", 0.011), "slow": watch.run("slow", 0.02)}
    times = watch.times(runs, seconds=0.2)
    assert watch.runs[3:9] == ["a", "b", "slow", "a", "b", "slow"]
    assert len(times["slow"]) == 2
    assert len(times["a"]) == len(times["b"]) > stopwatch.LEAST_TURNS
    assert times["a"] == pytest.approx([0.01] * len(times["a"]))
    assert watch.time < 0.4


def test_short_runs_are_repeated() -> None:
    watch = Ticking()
    times = watch.times({"a": watch.run("a", 1e-6)}, seconds=1e-4)
    assert len(watch.runs) == 1 + 50 * len(times["a"])
    assert times["a"] == pytest.approx([1e-6] * len(times["a"]))
