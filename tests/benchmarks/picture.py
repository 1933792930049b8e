"""The report as a picture: times, and compiling against graph length."""

from __future__ import annotations

import re
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from tests.benchmarks.records import Report

INCHES_OF_A_CASE = 0.19
COLOURS = {"tracejit": "#d62728", "numpy": "#1f77b4", "jax": "#2ca02c", "torch": "#ff7f0e"}


def draw_ratios(axes: Axes, report: Report) -> None:
    """A row for each case; a mark to the right of the line is a peer that takes longer."""
    base, *peers = report.engines
    timed = [
        (case, row, ours.times.median)
        for case, row in report.cells.items()
        if (ours := row.get(base)) is not None and ours.times and not ours.error
    ]
    for peer in peers:
        points = [
            (row[peer].times, position, ours)
            for position, (_, row, ours) in enumerate(timed)
            if peer in row and not row[peer].error
        ]
        axes.plot(
            [times.median / ours for times, _, ours in points if times],
            [position for times, position, _ in points if times],
            "o",
            label=peer,
            color=COLOURS[peer],
        )
    axes.axvline(1.0, color=COLOURS[base])
    axes.set_xscale("log")
    axes.set_yticks(range(len(timed)), [case for case, _, _ in timed])
    axes.set_ylim(len(timed), -1)
    axes.grid(axis="x", alpha=0.3)
    axes.set_xlabel(f"time of a call over {base}'s: right of the line, {base} is faster")
    legend(axes)


def draw_lengths(axes: Axes, report: Report) -> None:
    """Tracing and compiling, over the number of operations."""
    for engine in report.engines:
        lengths, traces, compiles = [], [], []
        for case, row in report.cells.items():
            named = re.fullmatch(r"graph of (\d+) operations", case)
            cell = row.get(engine)
            if named and cell and cell.trace is not None and cell.compile is not None:
                lengths.append(int(named[1]))
                traces.append(cell.trace)
                compiles.append(cell.compile)
        if lengths:
            axes.plot(lengths, traces, "o--", color=COLOURS[engine], label=f"{engine}: trace")
            axes.plot(lengths, compiles, "o-", color=COLOURS[engine], label=f"{engine}: compile")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.grid(alpha=0.3)
    axes.set_xlabel("operations in the graph")
    axes.set_ylabel("seconds")
    legend(axes)


def draw_sizes(axes: Axes, report: Report) -> None:
    """A call, over the number of elements: one line style for each computation."""
    styles = dict(zip(computations(report), ("o-", "s--", "^:", "d-."), strict=False))
    for engine in report.engines:
        for name, style in styles.items():
            points = [
                (int(named[1]), cell.times.median)
                for case, row in report.cells.items()
                if (named := re.fullmatch(rf"{re.escape(name)}, (\d+) elements", case))
                and (cell := row.get(engine))
                and cell.times
            ]
            if points:
                label = f"{engine}: {name}"
                axes.plot(*zip(*points, strict=True), style, color=COLOURS[engine], label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.grid(alpha=0.3)
    axes.set_xlabel("elements")
    axes.set_ylabel("seconds of a call")
    legend(axes)


def computations(report: Report) -> list[str]:
    """The names of what was measured for several numbers of elements."""
    named = (re.fullmatch(r"(.*), \d+ elements", case) for case in report.cells)
    found = [name[1] for name in named if name]
    return sorted({name for name in found if found.count(name) > 1})


def legend(axes: Axes) -> None:
    """A legend, if there is anything to name in it."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend()


def draw(report: Report, path: Path) -> None:
    """Writes the picture, a PNG."""
    height = max(7.0, INCHES_OF_A_CASE * len(report.cells))
    figure = Figure(figsize=(14, height), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, width_ratios=[2, 1])
    (draw_sizes if computations(report) else draw_ratios)(left, report)
    draw_lengths(right, report)
    figure.savefig(path, dpi=120)
