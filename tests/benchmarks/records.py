"""What was measured, as plain records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from tests.benchmarks.case import ENGINES, Target
from tests.benchmarks.timing import Times


@dataclass
class Cell:
    """One case with one engine: seconds, or in one line what went wrong."""

    first: float | None = None
    trace: float | None = None
    times: Times | None = None
    error: str = ""

    @property
    def compile(self) -> float | None:
        """What the first call took beyond tracing and one quick steady call.

        None if there is nothing left: the call is too long for compiling to be seen beside it.
        """
        if self.first is None or self.trace is None:
            return None
        rest = self.first - self.trace - (self.times.low if self.times else 0.0)
        return rest if rest > 0.0 else None


@dataclass(frozen=True)
class Start:
    """A first call in a new process: seconds to load the library, then of the call itself."""

    load: float
    first: float


@dataclass(frozen=True)
class Starts:
    """The first call in a new process, and in the next one, which finds what that left on disk."""

    cold: Start
    cached: Start


@dataclass(frozen=True)
class Memory:
    """Bytes that a process held when the inputs were made, and the most it held up to its end."""

    before: int
    peak: int

    @property
    def added(self) -> int:
        """What the calls added: code, workspaces and results, and the compiler if it was used."""
        return self.peak - self.before


@dataclass(frozen=True)
class Memories:
    """Of a process that compiles, and of the next, which finds the compiled program on disk.

    They are the same for an engine that does not compile.
    """

    cold: Memory
    cached: Memory


@dataclass
class Report:
    """All that was measured; ``cells``, ``starts`` and ``memories`` by case, then by engine.

    An engine with tiers has two ``starts``, with and without.
    """

    machine: dict[str, str]
    versions: dict[str, str] = field(default_factory=dict)
    # Engines that are not installed, or that fail at next to nothing, and why.
    absent: dict[str, str] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    targets: dict[str, Target] = field(default_factory=dict)
    cells: dict[str, dict[str, Cell]] = field(default_factory=dict)
    starts: dict[str, dict[str, Starts]] = field(default_factory=dict)
    memories: dict[str, dict[str, Memories]] = field(default_factory=dict)

    @property
    def engines(self) -> list[str]:
        """Those that are here, in the order of the columns."""
        return [name for name in ENGINES if name in self.versions]

    def errors(self) -> Iterator[str]:
        """One line for each engine or cell that has no times because something went wrong."""
        for engine, why in self.broken.items():
            yield f"{engine}: {why}"
        for case, row in self.cells.items():
            for engine, cell in row.items():
                if cell.error:
                    yield f"{case}, {engine}: {cell.error}"

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)
