"""The processes that compile for this one while it goes on: `jit(f, tiered=True)`.

    builders().ask(job)              # nothing waits
    builders().answer(job.key)       # an Answer once there is one

They are fresh interpreters, so that no lock, thread or memory of the compiler's is in this process:
it may fork, end, or be interrupted at any time. They end when they have had nothing to do for a
while, and with this process. The child of a fork has builders of its own.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

from tracejit.backends.machine import usable_cores
from tracejit.runtime.job_files import (
    LEFT,
    Answer,
    Job,
    answered,
    is_answered,
    is_asked,
    is_taken,
    put,
)
from tracejit.system import after_fork
from tracejit.system.processes import CRASHES

STARTS = 2
"""How many builders are started for a job that none of them takes."""

_SECONDS_TO_END = 1.0

# Isolated, then with our own path: the current folder and the environment do not affect the
# builder's imports.
_CODE = "import sys; sys.path[:] = sys.argv[3:]; from tracejit.background import main; main()"


class Builders:
    """The builders of one process, and the folder that their jobs are in; threads may share it.

    At most half of the cores are given a builder, which itself compiles on several threads.
    """

    def __init__(self) -> None:
        self._process = os.getpid()
        self._limit = max(1, usable_cores() // 2)
        self._lock = threading.Lock()
        self._folder: Path | None = None
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._ended: dict[int, int] = {}
        self._starts: dict[str, int] = {}
        self._undone: set[str] = set()
        self._is_over = False

    def ask(self, job: Job) -> None:
        """Has a job done that may have been asked for before.

        Raises `OSError` where no process can be started or no file written.
        """
        with self._lock:
            if job.key in self._starts:
                return
            folder = self._folder = self._folder or self._new_folder()
            put(folder, job)
            self._starts[job.key] = 0
            self._undone = {key for key in self._undone if not is_answered(folder, key)} | {job.key}
            self._look_after()
            if len(self._running) < min(self._limit, len(self._undone)):
                self._start(folder)
            self._starts[job.key] = 1

    def answer(self, key: str) -> Answer | None:
        """What came of a job that was asked for, None as long as somebody is at it.

        A job whose builder ended before it was done is "left" or has "crashed"; one that none has
        taken is offered to new ones, `STARTS` in all.
        """
        folder = self._folder
        if folder is None:
            return None
        with self._lock:
            self._look_after()
            # After that: a builder answers before it ends.
            return answered(folder, key) or self._without_answer(folder, key)

    def are_ours(self) -> bool:
        """Whether they are of this process, and not of the one that it was forked from."""
        return _by_process.get(os.getpid()) is self

    def processes(self) -> list[int]:
        """The builders that run."""
        with self._lock:
            self._look_after()
            return list(self._running)

    def _without_answer(self, folder: Path, key: str) -> Answer | None:
        for process, status in self._ended.items():
            if is_taken(folder, key, process):
                crashed = -status in CRASHES
                return Answer("crashed", number=-status) if crashed else LEFT
        if self._running:
            return None
        if self._starts[key] == STARTS or not is_asked(folder, key):  # somebody removed the files
            return LEFT
        self._starts[key] += 1
        try:
            self._start(folder)
        except OSError:
            return LEFT
        return None

    def _look_after(self) -> None:
        for number, process in list(self._running.items()):
            status = process.poll()
            if status is not None:
                del self._running[number]
                self._ended[number] = status

    def _start(self, folder: Path) -> None:
        if not sys.executable or hasattr(sys, "frozen"):
            raise OSError("no Python is known that could be started")
        options = ["-I", "-B"] if sys.dont_write_bytecode else ["-I"]
        command = [sys.executable, *options, "-c", _CODE, str(folder), str(self._process)]
        process = subprocess.Popen(
            [*command, *map(os.path.abspath, sys.path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            # What it leaves behind when it is ended goes with the folder.
            env={**os.environ, "TMPDIR": str(folder)},
            # The keys that interrupt this process are not meant for it.
            start_new_session=True,
        )
        self._running[process.pid] = process

    def _new_folder(self) -> Path:
        """A folder that goes with this process."""
        if self._is_over:
            raise OSError("the process ends")
        folder = Path(tempfile.mkdtemp(prefix="tracejit-builders-"))
        atexit.register(self._end)
        util = sys.modules.get("multiprocessing.util")
        if util is not None:  # whose processes end without doing what `atexit` was told
            util.Finalize(None, self._end, exitpriority=0)
        return folder

    def _end(self) -> None:
        """At the end of the process, but not of a child that it forked."""
        folder, self._folder = self._folder, None
        if folder is None or not self.are_ours():
            return
        self._is_over = True
        running = list(self._running.values())
        for process in running:
            process.kill()
        for process in running:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_SECONDS_TO_END)
        shutil.rmtree(folder, ignore_errors=True)


_by_process: dict[int, Builders] = {}


def builders() -> Builders:
    """Those of this process."""
    process = os.getpid()
    return _by_process.get(process) or _by_process.setdefault(process, Builders())


after_fork(_by_process.clear)
