"""Measures every chosen case with every engine that is here, the engines taking turns."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.case import ENGINES, Case
from tests.benchmarks.compare import compare
from tests.benchmarks.instructions import ENVIRONMENTS
from tests.benchmarks.process import AbsentError, FailedError, Process
from tests.benchmarks.records import Cell, Memories, Memory, Report, Start, Starts
from tests.benchmarks.timing import summarise


@dataclass(frozen=True)
class Settings:
    """How to measure: ``seconds`` of steady calls of each engine in each of ``rounds``."""

    engines: Sequence[str] = ENGINES
    table: str = "tests.benchmarks.cases"
    threads: int = 2
    rounds: int = 3
    seconds: float = 0.3
    tiny: bool = False
    processor: str = "native"

    def cases(self) -> list[Case]:
        """The whole table."""
        found: list[Case] = import_module(self.table).CASES
        return found


class Session:
    """The workers of one run: one for each engine, and a new one after one has failed."""

    def __init__(self, settings: Settings, report: Report, folder: Path) -> None:
        self.settings = settings
        self.report = report
        self.folder = folder
        self.processes: dict[str, Process] = {}
        self.closing = ExitStack()

    def find_engines(self) -> None:
        """Starts every engine; those that cannot be used are noted, with the reason."""
        for engine in self.settings.engines:
            try:
                self.report.versions[engine] = self.process(engine).version
            except AbsentError as error:
                self.report.absent[engine] = str(error)
            except FailedError as error:
                self.report.broken[engine] = str(error)

    def start(self, engine: str, **environment: str) -> Process:
        held = ENVIRONMENTS[self.settings.processor]
        settings = self.settings
        return Process(engine, settings.table, settings.threads, {**held, **environment})

    def process(self, engine: str) -> Process:
        """The running worker of an engine, warmed up: its compiler is loaded."""
        running = self.processes.get(engine)
        if running is None or not running.alive:
            running = self.start(engine, TRACEJIT_CACHE="0")
            self.closing.callback(running.close)
            self.processes[engine] = running
            running.ask(do="warm")
        return running

    def ask(self, engine: str, cell: Cell, **request: Any) -> dict[str, Any]:
        """Asks; a worker that ends leaves its last words in the cell, and no answer."""
        try:
            return self.process(engine).ask(**request)
        except FailedError as error:
            cell.error = str(error)
            return {}

    def measure(self, case: Case) -> None:
        """First calls; comparison of their results; then steady calls of those that agree."""
        self.report.targets[case.name] = case.target
        asked = [name for name in self.report.engines if case.implementation(name) is not None]
        row = self.report.cells[case.name] = {name: Cell() for name in asked}
        results = {name: self.first(case, name, cell) for name, cell in row.items()}
        compare(row, results, case.tolerance)
        samples: dict[str, list[float]] = {name: [] for name in row}
        for _ in range(self.settings.rounds if case.measure == "run" else 0):
            for name, cell in row.items():
                if not cell.error:
                    answer = self.ask(name, cell, do="sample", seconds=self.settings.seconds)
                    samples[name] += answer.get("samples", [])
        for name, cell in row.items():
            if samples[name] and not cell.error:
                cell.times = summarise(samples[name])

    def first(self, case: Case, engine: str, cell: Cell) -> list[np.ndarray]:
        """The results of the first call, which is timed; no results if it failed."""
        saved = self.folder / f"{engine}.npz"
        request = {"case": case.name, "tiny": self.settings.tiny, "results": str(saved)}
        answer = self.ask(engine, cell, do="first", **request)
        if not cell.error and self.process(engine).compiles:
            answer |= self.ask(engine, cell, do="trace")
        if cell.error:
            return []
        cell.first, cell.trace = answer["first"], answer.get("trace")
        with np.load(saved) as arrays:
            return [arrays[name] for name in arrays.files]

    def measure_starts(self, case: Case) -> None:
        """For each engine that compiles: two new processes in turn, sharing an empty folder.

        Two more for one that has something else answer while it compiles.
        """
        row = self.report.starts[case.name] = {}
        for engine, cell in self.report.cells[case.name].items():
            if cell.error or not self.process(engine).compiles:
                continue
            for tiered in (False, True)[: 1 + self.process(engine).has_tiers]:
                with tempfile.TemporaryDirectory(dir=self.folder) as cache:
                    cold, cached = (self.start_new(case, engine, cache, tiered) for _ in range(2))
                row[f"{engine}, tiered" if tiered else engine] = Starts(cold, cached)

    def measure_memory(self, case: Case) -> None:
        """For each engine, in new processes: two in turn that share a folder if it compiles.

        On tiny inputs one is enough to see that it works.
        """
        row: dict[str, Memories] = {}
        for engine, cell in self.report.cells[case.name].items():
            if cell.error:
                continue
            with tempfile.TemporaryDirectory(dir=self.folder) as cache:
                turns = 2 if self.process(engine).compiles and not self.settings.tiny else 1
                found = [self.memory_in_new(case, engine, cache) for _ in range(turns)]
            if None not in found:
                cold, cached = found[0], found[-1]
                assert cold is not None
                assert cached is not None
                row[engine] = Memories(cold, cached)
        if row:
            self.report.memories[case.name] = row

    def memory_in_new(self, case: Case, engine: str, cache: str) -> Memory | None:
        """The memory of a process that does nothing else; None where the system does not say."""
        with self.start(engine, **kept_in(cache)) as process:
            said = process.ask(do="memory", case=case.name, tiny=self.settings.tiny)
        return None if said["peak"] is None else Memory(**said)

    def start_new(self, case: Case, engine: str, cache: str, tiered: bool) -> Start:
        """Loads an engine and calls once, nothing warmed up; compiled code is kept in ``cache``."""
        request = {"case": case.name, "tiny": self.settings.tiny, "tiered": tiered}
        with self.start(engine, **kept_in(cache)) as process:
            return Start(process.start_seconds, process.ask(do="start", **request)["first"])


def kept_in(cache: str) -> dict[str, str]:
    """The environment of a process that keeps what it compiles in this folder."""
    return {
        "JAX_COMPILATION_CACHE_DIR": cache,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "TRACEJIT_CACHE_DIR": cache,
    }


def run(
    settings: Settings, chosen: Sequence[Case], report: Report, progress: Callable[[str], None]
) -> None:
    """Measures the chosen cases of the table, filling in the report."""
    with tempfile.TemporaryDirectory(prefix="tracejit-benchmarks-") as folder:
        session = Session(settings, report, Path(folder))
        with session.closing:
            session.find_engines()
            for case in chosen:
                progress(case.name)
                session.measure(case)
            for case in chosen:
                if case.start:
                    progress(f"{case.name}, in a new process")
                    session.measure_starts(case)
            for case in chosen:
                if case.memory:
                    progress(f"{case.name}, its memory")
                    session.measure_memory(case)
