"""Reports as HTML: tables with bars of kernels and compilations, memory over the steps."""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from html import escape
from itertools import pairwise

from tracejit.display.graphs import measured_times
from tracejit.display.page import bars, folded, paragraph, table
from tracejit.display.programs import graph_html, ops_text
from tracejit.passes.memory_report import MemoryReport
from tracejit.runtime.explaining import Report
from tracejit.runtime.memory_analysis import MemoryAnalysis
from tracejit.runtime.units import bytes_text, count_text, time_text
from tracejit.sources import Source
from tracejit.transforms.jit.cache_report import CacheReport
from tracejit.transforms.why_zero import WhyZero

WIDTH, HEIGHT, TOP = 640, 140, 18
MOST_VALUES = 50
"""Values alive at the peak that a memory report lists."""


def report_html(report: Report) -> str:
    """A table of kernels with bars: bytes, flops, the least time, and what was measured."""
    kernels = report.kernels
    is_timed = report.seconds is not None
    moved = [k.bytes_read + k.bytes_written for k in kernels]
    flops = [k.flops + k.transcendentals for k in kernels]
    heads = ["kernel", "computes", "bound by", "threads", "bytes", "flops", "at least", "share"]
    columns: list[Sequence[str | tuple[str, float]]] = [
        [k.name for k in kernels],
        [ops_text(k.ops) for k in kernels],
        [k.bound + (f", in {k.where}" if k.where else "") for k in kernels],
        [str(k.threads) for k in kernels],
        bars(moved, [bytes_text(value) for value in moved]),
        bars(flops, [count_text(value) for value in flops]),
        bars([k.bound_seconds for k in kernels], [time_text(k.bound_seconds) for k in kernels]),
        [(f"{k.share:.0%}", k.share) for k in kernels],
    ]
    if is_timed:
        seconds = [k.seconds or 0.0 for k in kernels]
        heads += ["calls", "time", "of the roofline"]
        columns += [
            [str(k.calls or 0) for k in kernels],
            bars(seconds, [time_text(value) for value in seconds]),
            ["" if k.attained is None else (f"{k.attained:.0%}", k.attained) for k in kernels],
        ]
    said = [
        f"{len(kernels)} kernel{'s' * (len(kernels) != 1)}",
        f"{bytes_text(report.bytes_read)} read",
        f"{bytes_text(report.bytes_written)} written",
        f"{count_text(report.flops)} flops",
        f"at least {time_text(report.bound_seconds)}",
    ]
    if report.call_seconds is not None:
        said.append(f"a call took {time_text(report.call_seconds)}")
    shown = paragraph(*said) + table(heads, zip(*columns, strict=True))
    if not is_timed or report.module is None:
        return shown
    times = measured_times(report.module, kernels)
    return shown + folded("the graph, by time", graph_html(report.module, times))


def memory_html(report: MemoryReport) -> str:
    """Bytes in memory over the steps, and the values alive at the peak."""
    said = paragraph(
        f"peak {bytes_text(report.peak_bytes)}",
        f"in step {report.peak_step} of {len(report.timeline)}",
        f"arguments {bytes_text(report.argument_bytes)}",
        f"constants {bytes_text(report.constant_bytes)}",
        f"results {bytes_text(report.output_bytes)}",
    )
    shown = report.alive[:MOST_VALUES]
    sizes = bars([value.nbytes for value in shown], [bytes_text(v.nbytes) for v in shown])
    rows = [
        (size, value.shape, value.op, _line(value.source))
        for size, value in zip(sizes, shown, strict=True)
    ]
    alive = table(["alive at the peak", "shape", "made by", "line"], rows) if rows else ""
    left = len(report.alive) - len(shown)
    return said + _timeline(report) + alive + (paragraph(f"and {left} more") if left else "")


def sizes_html(analysis: MemoryAnalysis) -> str:
    """The bytes of a compiled program, by what they hold."""
    rows = {
        "arguments": analysis.argument_size_in_bytes,
        "results": analysis.output_size_in_bytes,
        "of these, written over arguments": analysis.alias_size_in_bytes,
        "constants": analysis.constant_size_in_bytes,
        "workspace": analysis.temp_size_in_bytes,
    }
    sizes = bars([*rows.values()], [bytes_text(value) for value in rows.values()])
    said = paragraph(f"{bytes_text(analysis.total_size_in_bytes)} together")
    return said + table(["memory of", "bytes"], zip(rows, sizes, strict=True))


def _timeline(report: MemoryReport) -> str:
    """An area over the steps, of at most `WIDTH` columns, each the most of its steps."""
    steps, most = report.timeline, report.peak_bytes
    if not steps or not most:
        return ""
    count = min(len(steps), WIDTH)
    edges = [n * len(steps) // count for n in range(count + 1)]
    heights = [max(steps[a:b]) / most for a, b in pairwise(edges)]
    bottom = TOP + HEIGHT
    path = f"M0 {bottom}" + "".join(
        f"V{bottom - height * HEIGHT:.1f}H{(n + 1) * WIDTH / count:.1f}"
        for n, height in enumerate(heights)
    )
    fixed = (report.argument_bytes + report.constant_bytes) / most
    level = f"{bottom - fixed * HEIGHT:.1f}"
    return (
        f'<svg viewBox="0 0 {WIDTH} {bottom + 18}" width="{WIDTH}" role="img" '
        f'aria-label="Bytes in memory over the steps"><path d="{path}V{bottom}Z"/>'
        f'<line x1="0" x2="{WIDTH}" y1="{level}" y2="{level}" stroke-dasharray="4 3"/>'
        f'<text x="0" y="12">{bytes_text(most)}</text>'
        f'<text x="{WIDTH}" y="12" text-anchor="end">dashed: arguments and constants</text>'
        f'<text x="0" y="{bottom + 14}">step 0</text>'
        f'<text x="{WIDTH}" y="{bottom + 14}" text-anchor="end">{len(steps)}</text></svg>'
    )


def cache_html(report: CacheReport) -> str:
    """The compilations of a function: arguments, times and changes."""
    times = "time" if report.count == 1 else "times"
    said = paragraph(
        report.title, f"compiled {report.count} {times}", f"{report.kept} kept to be called at once"
    )
    made = report.compilations
    if not made:
        return said
    first = report.count - len(made) + 1
    seconds = bars([one.seconds for one in made], [f"{one.seconds:.3f} s" for one in made])
    rows = [
        (
            str(number),
            time,
            ", ".join(f"{name} {text}" for name, text in one.arguments.items()),
            "; ".join(one.changes),
            one.answered_by,
        )
        for number, time, one in zip(range(first, first + len(made)), seconds, made, strict=True)
    ]
    return said + table(["", "compiling", "arguments", "what was new", "answered by"], rows)


def why_zero_html(answer: WhyZero) -> str:
    """Where the path of a gradient ends, with the lines."""
    verb = "is" if answer.is_zero else "is not"
    said = paragraph(f"the gradient in {answer.argument} {verb} zero")
    rows = [(ending.op, ending.reason, _line(ending.source)) for ending in answer.endings]
    return said + (table(["op", "why", "line"], rows) if rows else "")


def _line(source: Source | None) -> str:
    """The user's line as text: where it stands, and what."""
    if source is None:
        return ""
    return f"{source}  {linecache.getline(source.file, source.line).strip()}"[:120]


def text_html(text: str) -> str:
    """A plain text."""
    return f"<p><code>{escape(text)}</code></p>"
