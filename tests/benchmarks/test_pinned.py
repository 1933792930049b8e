"""Processes that are spoken to line by line."""

from __future__ import annotations

from contextlib import closing

from tests.benchmarks.pinned import Pinned


def test_lines_that_come_at_once_are_heard_one_by_one() -> None:
    with closing(Pinned(["this"], 1, {})) as process:
        lines = []
        while line := process.hear(30):
            lines.append(line)
        assert lines[0] == "The Zen of Python, by Tim Peters\n"
        assert len(lines) == 21
        assert process.ends()
        assert process.last_words() == "ended with exit status 0"


def test_silence_and_last_words() -> None:
    with closing(Pinned(["code", "-q"], 1, {"PYTHONSTARTUP": ""})) as process:
        assert process.hear(0.01) == ""
        process.say("raise SystemExit('enough')")
        assert process.ends()
        assert process.last_words() == "enough"
