"""Calls that crash or hang do so in a copy of the process."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tracejit.backends.tunable import Library, Tunable, Variant
from tracejit.runtime import kernel_bench
from tracejit.runtime.kernel_bench import Run, Workbench
from tracejit.runtime.sandbox import survivors

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")


def crash() -> None:
    ctypes.string_at(0)


def fail() -> None:
    raise ValueError("on purpose")


def leave() -> None:
    raise SystemExit(1)


def call(action: Callable[[], object]) -> None:
    action()


def hang() -> None:
    time.sleep(60)


def test_those_that_come_back() -> None:
    assert survivors([], 5.0) == []
    assert survivors([dict, fail, dict], 5.0) == [True] * 3


def test_those_that_do_not(capfd: pytest.CaptureFixture[str]) -> None:
    assert survivors([dict, crash, fail, leave, dict], 5.0) == [True, False, True, False, True]
    assert capfd.readouterr() == ("", "")


def test_crashes_print_nothing_where_tvm_is_loaded() -> None:
    """TVM prints the stack of a process that crashes."""
    program = (
        "import ctypes, tvm\n"
        "from tracejit.runtime.sandbox import survivors\n"
        "assert survivors([lambda: ctypes.string_at(0)], 5.0) == [False]\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert (result.stdout, result.stderr) == (b"", b"")


def test_those_that_take_too_long() -> None:
    begin = time.monotonic()
    assert survivors([dict, hang, dict], 0.2) == [True, False, True]
    assert time.monotonic() - begin < 5


def test_what_is_done_there_is_not_done_here() -> None:
    done = np.zeros(3)
    assert survivors([lambda: done.fill(1)], 5.0) == [True]
    assert not done.any()


def test_without_copies_of_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracejit.runtime.sandbox.CAN_COPY", False)
    assert survivors([crash], 5.0) == [True]


def test_without_room_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room() -> int:
        raise OSError("Cannot allocate memory")

    monkeypatch.setattr(os, "fork", no_room)
    assert survivors([dict, dict], 5.0) == [False, False]


def test_candidates_that_crash_or_hang_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel as it was is no candidate: it has run before."""
    actions: dict[str, Callable[[], object]] = {
        "as it was": dict, "crashes": crash, "hangs": hang, "works": dict,
    }  # fmt: skip

    class Bench(Workbench):
        def runs(self, library: Library) -> list[Run]:
            return [Run(v, partial(call, actions[v.function])) for v in library.variants]

    monkeypatch.setattr(kernel_bench, "TRIAL_SECONDS", 0.3)
    bench = Bench(Tunable("k", "", {}, {}, [8], 0, [np.dtype(np.float64)]), [np.zeros(8, np.uint8)])

    def loaded(*names: str) -> list[str]:
        library = Library(Path("none.so"), [Variant({}, {}, name) for name in names])
        return [run.variant.function for run in bench.load(library)]

    assert loaded("as it was") == ["as it was"]
    assert loaded("crashes", "works", "hangs") == ["works"]
