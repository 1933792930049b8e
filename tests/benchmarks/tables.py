"""The report as Markdown tables.

A ratio is the time of the first column's engine over the peer's: below one, it is faster than
the peer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.benchmarks.case import Target
from tests.benchmarks.records import Cell, Report

ABSENT = "absent"
FAILED = "failed"
NOTHING = ""


def seconds(value: float) -> str:
    """Three digits and a unit: `1.20 us`, `45.0 ms`.

    >>> seconds(0.0000012), seconds(0.045), seconds(123.0)
    ('1.20 us', '45.0 ms', '123 s')
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size * 0.9995 or unit == "us":
            scaled = value / size
            digits = max(0, 2 - (scaled >= 9.995) - (scaled >= 99.95))
            return f"{scaled:.{digits}f} {unit}"
    raise AssertionError("the last unit takes everything")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Markdown; the first column to the left, the others to the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cell_text(cell: Cell | None, base: Cell | None, value: Callable[[Cell], float | None]) -> str:
    """Time, and the ratio of the base's time to it."""
    if cell is None:
        return NOTHING
    if cell.error:
        return FAILED
    time = value(cell)
    if time is None:
        return NOTHING
    ours = value(base) if base is not None and base is not cell and not base.error else None
    return seconds(time) if ours is None else f"{seconds(time)} ({ours / time:.2f})"


def median(cell: Cell) -> float | None:
    return cell.times.median if cell.times else None


def compared(report: Report, name: str, value: Callable[[Cell], float | None]) -> str:
    """One time of each engine for each case that has any; engines without any come last."""
    rows = []
    for case, row in report.cells.items():
        if not any(value(cell) is not None for cell in row.values()):
            continue
        base = row.get(report.engines[0])
        texts = [cell_text(row.get(engine), base, value) for engine in report.engines]
        rows.append([case, *texts, *[ABSENT] * len(report.absent), *[FAILED] * len(report.broken)])
    return table([name, *report.engines, *report.absent, *report.broken], rows)


def run_times(report: Report) -> str:
    """Steady calls, medians."""
    return compared(report, "a call", median)


@dataclass(frozen=True)
class Standing:
    """The first engine's time over a peer's: the fastest peer's, or that of the target's peer."""

    case: str
    peer: str
    ratio: float
    target: Target

    @property
    def reached(self) -> bool:
        return self.ratio <= self.target.ratio


def standings(report: Report) -> Iterator[Standing]:
    """For each case that the first engine and the peer in question were timed on."""
    base, *peers = report.engines
    for case, row in report.cells.items():
        target = report.targets[case]
        asked = peers if target.against == "best" else [target.against]
        times = {engine: cell.times.median for engine, cell in row.items() if cell.times}
        if base in times and any(peer in times for peer in asked):
            peer = min((p for p in asked if p in times), key=times.__getitem__)
            yield Standing(case, peer, times[base] / times[peer], target)


def targets(report: Report) -> str:
    """How far each case is from its target."""
    rows = [
        (s.case, s.peer, f"{s.ratio:.2f}", str(s.target), "yes" if s.reached else "no")
        for s in standings(report)
    ]
    return table(["a call", "peer", f"{report.engines[0]} / peer", "target", "reached"], rows)


def spread(report: Report) -> str:
    """The 20th to the 80th percentile of steady calls."""
    rows = []
    for case, row in report.cells.items():
        texts = [
            f"{seconds(cell.times.low)} to {seconds(cell.times.high)}" if cell.times else NOTHING
            for cell in (row.get(engine, Cell()) for engine in report.engines)
        ]
        if any(texts):
            rows.append([case, *texts])
    return table(["20th to 80th percentile", *report.engines], rows)


def compiling(report: Report) -> list[str]:
    """The engines that were seen to trace."""
    rows = report.cells.values()
    return [e for e in report.engines if any(e in row and row[e].trace is not None for row in rows)]


def first_calls(report: Report) -> str:
    """Tracing and compiling, for the engines that do."""
    engines = compiling(report)
    head = ["first call", *[f"{e}: {part}" for e in engines for part in ("trace", "compile")]]
    rows = []
    for case, row in report.cells.items():
        base = row.get(engines[0])
        rows.append(
            [
                case,
                *[
                    cell_text(row.get(engine), base, part)
                    for engine in engines
                    for part in (lambda cell: cell.trace, lambda cell: cell.compile)
                ],
            ]
        )
    return table(head, rows)


def new_processes(report: Report) -> str:
    """The first call in a new process: loading the library, then the call; cold and cached."""
    rows = [
        [
            f"{case}, {engine}",
            seconds(starts.cold.load),
            seconds(starts.cold.first),
            seconds(starts.cached.load),
            seconds(starts.cached.first),
        ]
        for case, row in report.starts.items()
        for engine, starts in row.items()
    ]
    head = ["in a new process", "load", "first call", "load, cached", "first call, cached"]
    return table(head, rows)


def memory(report: Report) -> str:
    """The most memory a process holds, and what calls add to it, with ratios to the peers.

    Each process does nothing but load its library, make the inputs and call twenty times. It
    compiles, or finds what another has compiled before. The memory is that resident at once, as
    Linux counts it: the peak, and the peak less what was resident before the first call.
    """
    rows = []
    for case, row in report.memories.items():
        for state in ("cold", "cached"):
            for part in ("peak", "added"):
                values = {e: float(getattr(getattr(m, state), part)) for e, m in row.items()}
                texts = [megabytes(values, e, report.engines[0]) for e in report.engines]
                label = "whole process" if part == "peak" else "added by the calls"
                rows.append([f"{case}, {label}{', cached' * (state == 'cached')}", *texts])
    return table(["memory", *report.engines], rows)


def megabytes(values: Mapping[str, float], engine: str, base: str) -> str:
    """`12.3 MB`, and the ratio of the base's to it."""
    if engine not in values:
        return NOTHING
    text = f"{values[engine] / 1e6:.1f} MB"
    if engine == base or base not in values or not values[engine]:
        return text
    return f"{text} ({values[base] / values[engine]:.2f})"


def markdown(report: Report) -> str:
    """The whole report."""
    notes = [*[f"- {key}: {value}" for key, value in report.machine.items() if value]]
    notes += [f"- {version}" for version in report.versions.values()]
    notes += [f"- {name} is absent: {why}" for name, why in report.absent.items()]
    notes += [f"- failed: {error}" for error in report.errors()]
    parts = ["\n".join(notes), run_times(report)]
    if report.engines[0] == "tracejit":
        parts.append(targets(report))
    parts.append(spread(report))
    if compiling(report):
        parts.append(first_calls(report))
    if report.starts:
        parts.append(new_processes(report))
    if report.memories:
        parts.append(memory(report))
    return "\n\n".join(parts) + "\n"
