"""`jit(f, tune=seconds)`: what is measured, taken, kept on disk and found again."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.runtime.processes import python
from tracejit.backends.tunable import Measured
from tracejit.errors import ArgumentError
from tracejit.runtime import tuned
from tracejit.runtime.explaining import Report
from tracejit.runtime.stopwatch import Stopwatch, Times
from tracejit.runtime.tuning_notes import Tuning, read
from tracejit.shapes import ElementType, Shape

RNG = np.random.default_rng(0)
X, Y = (RNG.standard_normal((48, 48)).astype(np.float32) for _ in range(2))


def sums(x: Any, y: Any) -> Any:
    return np.tanh(x + y).sum(1)


class Clock(Stopwatch):
    """Finds every candidate twice as quick as what was best before it; time stands still."""

    measured: list[set[str]]
    tuned = 0.5

    def __init__(self) -> None:
        self.level: dict[str, float] = {}

    def now(self) -> float:
        return 0.0

    def times(self, runs: Mapping[str, Callable[[], object]], seconds: float) -> Times:
        self.measured.append(set(runs))
        for run in runs.values():
            run()
        if runs.keys() == {"untuned", "tuned"}:
            return {"untuned": [1.0], "tuned": [self.tuned]}
        for label in runs:
            self.level.setdefault(label, 0.5 ** len(self.level))
        return {label: [self.level[label]] for label in runs}


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> type[Clock]:
    """A clock of its own for each test, and a cache."""

    class Own(Clock):
        measured: list[set[str]] = []  # noqa: RUF012

    monkeypatch.setattr(tuned, "Stopwatch", Own)
    # Compiling takes most of the time, and two candidates of a question show what becomes of many.
    monkeypatch.setattr("tracejit.backends.tvm.tune.knobs.MOST_CANDIDATES", 2)
    monkeypatch.setenv("TRACEJIT_CACHE_DIR", str(tmp_path))
    return Own


def explained(function: Any, *arguments: Any) -> Report:
    made = function.lower(*arguments).compile().explain()
    assert isinstance(made, Report)
    return made


def test_the_quickest_candidates_are_taken_and_told() -> None:
    function = tj.jit(sums, tune=1.0)
    result = function(X, Y)
    np.testing.assert_allclose(result, sums(X, Y), rtol=1e-4, atol=1e-4)
    report = explained(function, X, Y)
    assert report.tuning is not None
    assert (report.tuning.kept, report.tuning.complete) == (True, True)
    assert report.tuning.candidates > 2
    changed = [kernel for kernel in report.kernels if kernel.changes]
    assert changed
    for kernel in changed:
        assert kernel.gain is not None
        assert kernel.gain[1] < kernel.gain[0]
    text = str(report)
    assert "    tuned from 1.00 s to " in text
    assert "tuned for 1 s: a call took 1.00 s and takes 500.00 ms; " in text
    (question, old, new), *_ = changed[0].changes
    assert f"{question}: {new} (was {old})" in text


def test_untuned_programs_stay_as_they_are() -> None:
    tj.jit(sums, tune=1.0)(X, Y)
    report = explained(tj.jit(sums), X, Y)
    assert report.tuning is None
    assert not any(kernel.changes for kernel in report.kernels)
    assert "tuned" not in str(report)


def test_what_was_found_is_found_again(clock: type[Clock]) -> None:
    first = tj.jit(sums, tune=1.0)(X, Y)
    count = len(clock.measured)
    assert count
    again = tj.jit(sums, tune=1.0)
    np.testing.assert_array_equal(again(X, Y), first)
    assert tj.jit(sums, tune=100.0)(X, Y) is not None
    assert len(clock.measured) == count
    assert explained(again, X, Y).tuning == explained(tj.jit(sums, tune=2.0), X, Y).tuning


def test_a_kernel_that_was_measured_is_not_measured_again(clock: type[Clock]) -> None:
    def alone(x: Any) -> Any:
        return np.sort(x, 1)

    def among_others(x: Any) -> Any:
        return np.sort(x, 1).sum(0)

    tj.jit(alone, tune=1.0)(X)
    clock.measured.clear()
    report = explained(tj.jit(among_others, tune=1.0), X)
    assert not any("algorithm" in label for labels in clock.measured for label in labels)
    assert next(k.name for k in report.kernels if k.changes).endswith("sort")


def test_a_program_that_is_no_quicker_is_not_taken(
    monkeypatch: pytest.MonkeyPatch, clock: type[Clock]
) -> None:
    monkeypatch.setattr(clock, "tuned", 1.25)
    function = tj.jit(sums, tune=1.0)
    np.testing.assert_array_equal(function(X, Y), tj.jit(sums)(X, Y))
    report = explained(function, X, Y)
    assert report.tuning is not None
    assert not report.tuning.kept
    assert not any(kernel.changes for kernel in report.kernels)
    assert "tuned for 1 s: nothing was clearly quicker; " in str(report)
    count = len(clock.measured)
    tj.jit(sums, tune=1.0)(X, Y)
    assert len(clock.measured) == count


def test_time_runs_out_and_more_of_it_goes_on(
    monkeypatch: pytest.MonkeyPatch, clock: type[Clock]
) -> None:
    times = iter(range(10_000))
    monkeypatch.setattr(clock, "now", lambda _: float(next(times)))
    first = explained(tj.jit(sums, tune=10.0), X, Y).tuning
    assert first is not None
    assert not first.complete
    assert explained(tj.jit(sums, tune=9.0), X, Y).tuning == first
    second = explained(tj.jit(sums, tune=1e4), X, Y).tuning
    assert second is not None
    assert (second.complete, second.seconds) == (True, 1e4)
    assert "some were left out" not in str(explained(tj.jit(sums, tune=1.0), X, Y))


def test_an_interruption_leaves_what_was_compiled(
    monkeypatch: pytest.MonkeyPatch, clock: type[Clock]
) -> None:
    def interrupted(self: Clock, runs: object, seconds: float) -> Times:
        raise KeyboardInterrupt

    function = tj.jit(sums, tune=1.0)
    with monkeypatch.context() as patched:
        patched.setattr(clock, "times", interrupted)
        with pytest.raises(KeyboardInterrupt):
            function(X, Y)
    np.testing.assert_array_equal(function(X, Y), tj.jit(sums)(X, Y))
    assert not clock.measured
    # Another function is tuned.
    tj.jit(sums, tune=1.0)(X, Y)
    assert clock.measured


@pytest.mark.parametrize("damage", [b"{", b'{"taken": 3}'])
def test_damaged_notes_are_none(damage: bytes, tmp_path: Path, clock: type[Clock]) -> None:
    tj.jit(sums, tune=1.0)(X, Y)
    notes = [*tmp_path.glob("[0-9a-f]*.json")]
    assert len(notes) >= 2
    for note in notes:
        note.write_bytes(damage)
    clock.measured.clear()
    report = explained(tj.jit(sums, tune=1.0), X, Y)
    assert clock.measured
    assert report.tuning is not None
    assert report.tuning.kept


def test_answers_that_nobody_gives_are_the_models(tmp_path: Path, clock: type[Clock]) -> None:
    tj.jit(sums, tune=1.0)(X, Y)
    for note in tmp_path.glob("[0-9a-f]*.json"):
        noted = json.loads(note.read_bytes())
        if "taken" in noted:
            note.write_text(json.dumps({**noted, "taken": {"tile": "a small one", "x": "y"}}))
        else:
            note.unlink()
    result = tj.jit(sums, tune=1.0)(X, Y)
    np.testing.assert_allclose(result, sums(X, Y), rtol=1e-4, atol=1e-4)


def test_without_a_cache_it_is_tuned_each_time(
    monkeypatch: pytest.MonkeyPatch, clock: type[Clock]
) -> None:
    monkeypatch.setenv("TRACEJIT_CACHE", "0")
    for _ in range(2):
        clock.measured.clear()
        assert tj.jit(sums, tune=1.0)(X, Y).shape == (48,)
        assert clock.measured


def test_arguments_of_all_kinds_are_not_written() -> None:
    def step(state: dict[str, Any], x: Any, rate: float) -> Any:
        return {"w": state["w"] - rate * (x.T @ x)}, x.sum()

    state, before = {"w": X.copy()}, X.copy()
    function = tj.jit(step, tune=1.0)
    # Columns first, as a transposed array lies; and a number.
    made, total = function(state, Y.T, 0.5)
    np.testing.assert_array_equal(state["w"], before)
    np.testing.assert_allclose(made["w"], before - 0.5 * (Y @ Y.T), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(total, Y.sum(), rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(function(state, Y.T, 0.5)[0]["w"], made["w"])


def test_donated_arguments_are_given_away_once() -> None:
    function = tj.jit(lambda w, x: w + x @ x, donate_argnums=0, tune=1.0)
    given, wanted = X.copy(), X + Y @ Y
    np.testing.assert_allclose(function(given, Y), wanted, rtol=1e-3, atol=1e-3)


def test_loops_are_tuned() -> None:
    def powers(x: Any) -> Any:
        return tj.lax.fori_loop(0, 5, lambda _, y: np.tanh(y @ x), x)

    function = tj.jit(powers, tune=1.0)
    np.testing.assert_allclose(function(X), tj.jit(powers)(X), rtol=1e-3, atol=1e-3)
    assert any("loop" in k.where and k.changes for k in explained(function, X).kernels)


def test_shapes_are_enough_to_lower() -> None:
    shape = Shape(ElementType.F32, (48, 48))
    lowered = tj.jit(lambda x, i: (x @ x)[i], tune=1.0).lower(shape, Shape(ElementType.S32, (7,)))
    compiled = lowered.compile()
    report = compiled.explain()
    assert report.tuning is not None
    places = np.arange(7, dtype=np.int32)
    np.testing.assert_allclose(compiled(X, places), (X @ X)[:7], rtol=1e-3, atol=1e-3)


def test_notes_are_read_as_they_were_written_or_not_at_all() -> None:
    tuning = Tuning(1.0, 3, True, "", 0.5, 0.25)
    measured = Measured({"tile": "4 x 4"}, 2.0, 1.0, False)
    notes: list[Tuning | Measured] = [tuning, measured]
    for note in notes:
        noted = json.loads(json.dumps(asdict(note)))
        assert read(type(note), noted) == note
        assert read(type(note), {**noted, "more": 1}) is None
        assert read(type(note), {**noted, "before": "soon"}) is None
    assert read(Measured, asdict(tuning)) is None
    assert read(Measured, {**asdict(measured), "taken": {"tile": 4}}) is None
    assert read(Tuning, {**asdict(tuning), "complete": 1}) is None
    assert all(read(Tuning, noted) is None for noted in (None, [1], 3, "x", {"seconds": 1.0}))


def test_nothing_to_choose() -> None:
    function = tj.jit(lambda x: x, tune=1.0)
    np.testing.assert_array_equal(function(X), X)


def test_side_effects_are_not_repeated(clock: type[Clock]) -> None:
    seen: list[float] = []

    def noisy(x: Any) -> Any:
        tj.debug.callback(lambda total: seen.append(float(total)), x.sum())
        return x @ x

    function = tj.jit(noisy, tune=1.0)
    with pytest.warns(RuntimeWarning, match="noisy: tune has no effect on a function with side"):
        function(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        function(X)
    assert len(seen) == 2
    assert not clock.measured


@pytest.mark.parametrize("seconds", [0, -1.0, True, float("nan"), float("inf"), 10**400, "3", 1j])
def test_seconds_are_positive(seconds: Any) -> None:
    with pytest.raises(ArgumentError, match="tune must be a positive number of seconds, not"):
        tj.jit(sums, tune=seconds)


@pytest.mark.parametrize("other", ["check", "tiered"])
def test_what_does_not_go_together(other: str) -> None:
    with pytest.raises(ArgumentError, match=f"tune= does not go with {other}=True"):
        tj.jit(sums, tune=1.0, check=other == "check", tiered=other == "tiered")


def test_decorators_and_mutating_functions_are_tuned(clock: type[Clock]) -> None:
    @tj.jit(tune=1, mutates="x")
    def update(x: Any, y: Any) -> None:
        x[:] = x @ y

    given = X.copy()
    update(given, Y)
    np.testing.assert_allclose(given, X @ Y, rtol=1e-3, atol=1e-3)
    assert clock.measured


PROCESS = """
    import sys
    import numpy as np
    import tracejit as tj

    def f(x):
        return np.tanh(x @ x).sum(0)

    x = np.random.default_rng(0).standard_normal((96, 96)).astype(np.float32)
    function = tj.jit(f, tune=0.7)
    print(function(x).tobytes().hex()[:64], "tvm" in sys.modules)
    print(function.lower(x).compile().explain().tuning)
"""


def test_another_process_measures_nothing(tmp_path: Path) -> None:
    """The real clock decides: whatever it found is found again, without the compiler."""

    def run() -> list[str]:
        # Without a server, the compiler is loaded where it is asked.
        printed = python(PROCESS, TRACEJIT_CACHE_DIR=str(tmp_path), TRACEJIT_COMPILE_SERVER="0")
        return printed.splitlines()

    (first, tuning), (again, same) = run(), run()
    assert first.split()[1] == "True"
    assert again.split() == [first.split()[0], "False"]
    assert tuning == same
