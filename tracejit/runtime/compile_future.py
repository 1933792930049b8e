"""A program that another process compiles, until it is there."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from tracejit.backends.artifact import ArtifactError
from tracejit.backends.machine import thread_count
from tracejit.backends.target import Target
from tracejit.errors import CompilationError
from tracejit.loading import load
from tracejit.runtime.cache import DiskCache
from tracejit.runtime.executable import Executable
from tracejit.runtime.job_files import LEFT, Answer, Job

if TYPE_CHECKING:
    from tracejit.runtime.compile_workers import Builders


class Pending:
    """A program to come; threads may share it, and the children of a fork go on with it.

    It is there at once if it is in ``cache`` under ``key``. ``graph`` is its text, or None for one
    that means something in this process alone. ``compile`` compiles here, and raises what there is
    to raise: it is called where no other process can do it, and where one tried in vain, which
    either has an error to tell, told thereby in its own words, or was ended.
    """

    def __init__(
        self,
        title: str,
        graph: str | None,
        target: Target,
        key: str,
        cache: DiskCache,
        compile: Callable[[], Executable],
    ) -> None:
        self._title = title
        self._key = key
        self._cache = cache
        self._compile = compile
        # The thread that compiles here, for each process: the child of a fork has none of those of
        # its parent.
        self._busy: dict[int, int] = {}
        self._builders: Builders | None = None
        self._job: Job | None = None
        self._answer: Answer | None = None
        self._made = cache.find(key)
        if self._made is None and graph is None:
            self._answer = LEFT
        elif self._made is None and graph is not None:
            folder = None if cache.folder is None else str(cache.folder.absolute())
            self._job = Job(
                key, graph, target.name, target.fast_math, thread_count(), folder, cache.limit
            )
            self._ask(self._job)

    def is_built(self) -> bool:
        """Whether `poll` has the program at hand."""
        self._look()
        answer = self._answer
        return self._made is not None or (answer is not None and answer.kind in ("kept", "built"))

    def poll(self) -> Executable | None:
        """The program if it is there; compiled here if it will not come otherwise.

        None as long as another process, or another thread, is at it. Raises `CompilationError` for
        a program that the compiler has died of, and what compiling raises.
        """
        self._look()
        answer = self._answer
        if self._made is not None or answer is None:
            return self._made
        if answer.kind == "crashed":
            name = signal.Signals(answer.number).name
            raise CompilationError(
                f"{self._title}: the compiler, in a process of its own, died of it ({name})"
            )
        found = self._loaded(answer)
        if found is not None:
            self._made = found
        else:
            self._compile_here()
        return self._made

    def _ask(self, job: Job) -> None:
        """Has the builders of this process do the job."""
        self._builders = load("tracejit.runtime.compile_workers").builders()
        assert self._builders is not None
        try:
            self._builders.ask(job)
        except OSError:  # there is no room for a file or a process
            self._answer = LEFT

    def _look(self) -> None:
        """Finds out what there is to know of a program that was asked for."""
        if self._made is not None or self._builders is None or self._job is None:
            return
        if not self._builders.are_ours():  # but those of the process that this one was forked from
            self._made = self._cache.find(self._key)
            if self._made is not None:
                return
            # Whatever the parent was told: compiling in a child is safe only elsewhere.
            self._answer = None
            self._ask(self._job)
        if self._answer is None:
            self._answer = self._builders.answer(self._key)

    def _loaded(self, answer: Answer) -> Executable | None:
        if answer.kind == "kept":
            return self._cache.find(self._key)
        if answer.kind == "built":
            try:
                return self._cache.add(self._key, answer.program)
            except ArtifactError:  # the disk between us lost a part of it
                return None
        return None

    def _compile_here(self) -> None:
        process, thread = os.getpid(), threading.get_ident()
        if self._busy.setdefault(process, thread) != thread:
            return
        try:
            if self._made is None:
                self._made = self._compile()
        finally:
            del self._busy[process]
