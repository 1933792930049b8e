"""The line that is shown while a long compilation runs, and that is shown to nobody else."""

from __future__ import annotations

import io
import sys
import threading
import time
from types import SimpleNamespace

import pytest

import tracejit as tj
from tests.runtime.processes import python
from tracejit.runtime import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        super().isatty()  # which refuses to answer once it is closed
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    made = Terminal()
    # Not the real one, which pytest exchanges between a fixture and its test.
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=made, modules=sys.modules))
    monkeypatch.setattr(progress, "DELAY_SECONDS", 0.02)
    monkeypatch.setattr(progress, "INTERVAL_SECONDS", 0.01)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("TRACEJIT_PROGRESS", raising=False)
    return made


def wait_for(terminal: Terminal, text: str) -> None:
    deadline = time.monotonic() + 20
    while text not in terminal.getvalue():
        assert time.monotonic() < deadline, terminal.getvalue()
        time.sleep(0.005)


def test_a_long_compilation_shows_a_line_that_goes_away(terminal: Terminal) -> None:
    with progress.reported("step") as advance:
        wait_for(terminal, "\rcompiling step: 0 s")
        advance(3, 40)
        wait_for(terminal, "\rcompiling step: 3 of 40 parts, 0 s")
    shown = terminal.getvalue()
    assert "\n" not in shown
    last = max(len(each) for each in shown.split("\r"))
    assert shown.endswith("\r" + " " * last + "\r")
    assert not [t for t in threading.enumerate() if t.name == "tracejit-progress"]


def test_a_short_one_shows_nothing(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "DELAY_SECONDS", 60)
    with progress.reported("step") as advance:
        advance(1, 2)
    assert terminal.getvalue() == ""


def test_an_error_ends_the_line_and_passes(terminal: Terminal) -> None:
    def fail() -> None:
        with progress.reported("step"):
            wait_for(terminal, "compiling step")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert terminal.getvalue().endswith(" \r")


def test_a_stream_that_closes_disturbs_nobody(terminal: Terminal) -> None:
    with progress.reported("step"):
        terminal.close()
        time.sleep(0.05)
    assert not progress.is_wanted(terminal)


@pytest.mark.parametrize(("chosen", "wanted"), [("", True), ("0", False), ("No", False)])
def test_terminals(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, chosen: str, wanted: bool
) -> None:
    monkeypatch.setenv("TRACEJIT_PROGRESS", chosen)
    assert progress.is_wanted(terminal) is wanted
    monkeypatch.setenv("TERM", "dumb")
    assert not progress.is_wanted(terminal)


@pytest.mark.parametrize(("chosen", "wanted"), [("", False), ("1", True), (" ON ", True)])
def test_files_and_pipes(monkeypatch: pytest.MonkeyPatch, chosen: str, wanted: bool) -> None:
    monkeypatch.setenv("TRACEJIT_PROGRESS", chosen)
    assert progress.is_wanted(io.StringIO()) is wanted
    assert not progress.is_wanted(None)


def test_notebooks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel's stderr is no terminal; IPython in a terminal has no kernel."""
    monkeypatch.delenv("TRACEJIT_PROGRESS", raising=False)
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert progress.is_wanted(io.StringIO())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert not progress.is_wanted(io.StringIO())


def test_jit_reports_its_modules(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEJIT_CACHE", "0")
    monkeypatch.setattr(progress, "DELAY_SECONDS", 0.0)

    def halved(x: float) -> float:
        return x * 0.125

    tj.jit(halved)(3.0)
    assert "\rcompiling halved: " in terminal.getvalue()


def test_processes_without_a_terminal_are_silent() -> None:
    python("import tracejit as tj; tj.jit(lambda x: x * 0.5)(1.0)", TRACEJIT_CACHE="0")


def test_tuning_shows_candidates_and_the_time_there_is(terminal: Terminal) -> None:
    with progress.reported("step", tuning=10.0) as advance:
        wait_for(terminal, "\rtuning step: 0 s of 10")
        advance(12, 40)
        wait_for(terminal, "\rtuning step: 12 of 40 candidates, 0 s of 10")


def test_tracing_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TRACEJIT_PROGRESS", "1")
    monkeypatch.setattr(progress, "DELAY_SECONDS", 0.0)
    started = threading.Event()

    def count() -> int:
        started.set()
        return 1234

    with progress.reported("step", tracing=count):
        assert started.wait(60)
    assert "tracing step: 1,234 operations, 0 s" in stream.getvalue()


def test_a_long_call_shows_a_line_that_goes_away(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "CALL_SECONDS", 0.02)

    def run(arguments: list[int]) -> int:
        wait_for(terminal, "\rrunning simulate: 0 s")
        return sum(arguments)

    assert progress.noted(run, "simulate")([1, 2]) == 3
    assert terminal.getvalue().endswith(" \r")

    def fail(_: object) -> None:
        terminal.truncate(0)
        wait_for(terminal, "\rrunning fail: 0 s")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        progress.noted(fail, "fail")([])
    assert terminal.getvalue().endswith(" \r")


def test_short_calls_show_nothing(terminal: Terminal) -> None:
    run = progress.noted(lambda arguments: arguments, "simulate")
    assert [run(number) for number in range(1000)] == [*range(1000)]
    assert terminal.getvalue() == ""


def test_calls_that_nobody_watches_are_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=io.StringIO(), modules={}))
    assert progress.noted(len, "length") is len


def test_long_programs_are_noted() -> None:
    """A loop of unknown length for one; others have nothing to show."""
    said = python(
        """
import sys, time
import tracejit as tj
from tracejit.runtime import progress

shown = []
sys.stderr.isatty = lambda: True
sys.stderr.write = shown.append
progress.CALL_SECONDS = progress.INTERVAL_SECONDS = 0.01

@tj.jit
def wait_for_it(n):
    return tj.lax.while_loop(lambda i: i < n, lambda i: (i * 5 + 1) // 5 + 1, 0)

print(wait_for_it(3 * 10**8))
print(any("running wait_for_it: " in text for text in shown), not shown[-1].strip())
""",
        TERM="xterm",
        TRACEJIT_PROGRESS="1",
    )
    assert said.splitlines() == ["300000000", "True True"]
