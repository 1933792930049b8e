"""Modules as pictures: the data of a graph, which `graph.js` lays out and draws in the page.

picture_html(module, listed, prefix)    boxes in layers, within boxes of loops, lines and pieces

Instructions are numbered through all computations; a computation that several instructions call is
drawn in each. Consecutive instructions of one line of Python are a group, and long rows of groups
are cut into pieces, so that no open box holds more than `MOST_PARTS` parts. Groups are intervals of
the recorded order, so the edges between them have no cycles.
"""

from __future__ import annotations

import json
import linecache
import math
import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from tracejit.backends.work import work_of
from tracejit.errors import TracejitError
from tracejit.graph import Computation, Instruction, Module
from tracejit.hlo.printer import Listing
from tracejit.ops.constants import PARAMETER
from tracejit.passes.cost_analysis import size_in_bytes
from tracejit.runtime.explaining import KernelReport
from tracejit.sources import Source
from tracejit.traversal import instructions

MOST_PARTS = 40
"""The most boxes in an open box; of a smaller graph every instruction is shown at once."""
MOST_COPIES = 2000
"""The most instructions of computations that are drawn in what calls them."""
LINE = 80
"""Characters of a line of Python that are shown."""

_BYTES_A_SECOND, _FLOPS_A_SECOND, _FUNCTIONS_A_SECOND, _START = 1e10, 1e10, 5e8, 2e-8
"""What the estimate of an instruction's time takes for a core of a usual processor."""

_KINDS = {
    "constants": 0,
    "elementwise": 1,
    "elementwise_unary": 1,
    "comparison": 1,
    "element_types": 1,
    "contraction": 2,
    "convolution": 2,
    "linalg": 2,
    "reduction": 3,
    "windows": 3,
    "normalisation": 3,
    "layout": 4,
    "indexing": 5,
    "control": 6,
}
"""A colour for each family of ops; others share the last one."""
LEGEND = (
    "inputs",
    "elementwise",
    "products",
    "reductions",
    "layout",
    "indexing",
    "control",
    "other",
)

_NAMES = re.compile(r"%([A-Za-z0-9_.-]+)")

ARGUMENTS = -1
"""In place of a line's number, for the parameters."""

Tree = Any
"""An instruction's number, or a list: the kind, the label and the parts of a group."""


def picture_html(
    listed: Sequence[Listing], prefix: str, times: Mapping[Instruction, float] | None = None
) -> str:
    """The picture of the computations of a module, the entry last; hidden where no script runs.

    Where ``times`` were measured it is coloured by them, else by op.
    """
    data = json.dumps(Graph(listed, prefix, times).data(), separators=(",", ":")).replace(
        "<", "\\u003c"
    )
    keys = "".join(f'<i class="k{n}">{text}</i>' for n, text in enumerate(LEGEND))
    buttons = "".join(
        f'<button type="button" data-do="{what}" title="{title}">{text}</button>'
        for what, title, text in (
            ("in", "Zoom in (+)", "+"),
            ("out", "Zoom out (-)", "-"),
            ("fit", "Fit (0)", "fit"),
            ("open", "Open the groups", "open"),
            ("close", "Close the groups", "close"),
        )
    )
    estimated = '<option value="time">time, estimated</option>'
    measured = '<option value="time" selected>time, measured</option>'
    return (
        f'<div class="graph" hidden><p class="tools">{buttons}<label>colour <select>'
        '<option value="op">op</option><option value="bytes">bytes</option>'
        f"{estimated if times is None else measured}</select></label>{keys}</p>"
        '<svg tabindex="0" role="group" aria-label="The graph: arrows move, + and - zoom, Tab '
        'goes from box to box, Enter opens"></svg><p class="told">Click a box for its line of '
        f'Python and its HLO.</p><script type="application/json" class="data">{data}</script></div>'
    )


class Graph:
    """The numbered instructions of a module, and the tree of their groups."""

    def __init__(
        self,
        listed: Sequence[Listing],
        prefix: str,
        times: Mapping[Instruction, float] | None = None,
    ) -> None:
        self._prefix = prefix
        self._times = times
        self._by_root = {part.root: part for part in listed}
        self._sources: dict[Source, int] = {}
        self._ops: dict[str, int] = {}
        self._shapes: dict[str, int] = {}
        self._rows: dict[str, list[Any]] = {
            name: []
            for name in ("names", "op", "shape", "operands", "source", "bytes", "time", "kind")
        }
        self._calls: dict[int, list[Tree]] = {}
        self._copies = 0
        (entry,) = [part for part in listed if part.is_entry]
        self._tree = self._computation(entry)

    def data(self) -> Mapping[str, Any]:
        """What `graph.js` reads."""
        sources = [
            [str(source), linecache.getline(source.file, source.line).strip()[:LINE]]
            for source in self._sources
        ]
        return {
            "prefix": self._prefix,
            "ops": [*self._ops],
            "shapes": [*self._shapes],
            "sources": sources,
            "calls": self._calls,
            "tree": self._tree,
            **self._rows,
        }

    def _computation(self, part: Listing) -> list[Tree]:
        numbers = {i: len(self._rows["names"]) + n for n, (i, _) in enumerate(part.instructions)}
        for instruction, text in part.instructions:
            self._add(instruction, text, numbers)
        for instruction, number in numbers.items():
            self._add_called(instruction, number)
        return ["computation", part.name, self._grouped(list(numbers.values()))]

    def _add(self, instruction: Instruction, text: str, numbers: dict[Instruction, int]) -> None:
        found = _NAMES.search(text)
        source = instruction.source
        row = {
            "names": found[1] if found is not None else instruction.op.opcode,
            "op": self._ops.setdefault(instruction.op.opcode, len(self._ops)),
            "shape": self._shapes.setdefault(str(instruction.shape), len(self._shapes)),
            "operands": [numbers[operand] for operand in instruction.operands],
            "source": -1
            if source is None
            else self._sources.setdefault(source, len(self._sources)),
            "bytes": size_in_bytes(instruction.shape),
            "time": seconds_of(instruction)
            if self._times is None
            else self._times.get(instruction, 0.0),
            "kind": _KINDS.get(instruction.op.family, len(LEGEND) - 1),
        }
        for name, value in row.items():
            self._rows[name].append(value)

    def _add_called(self, instruction: Instruction, number: int) -> None:
        for called in instruction.computations:
            part = self._by_root.get(called.root)
            if part is None or self._copies + len(part.instructions) > MOST_COPIES:
                continue
            self._copies += len(part.instructions)
            self._calls.setdefault(number, []).append([*self._computation(part), 1])

    def _grouped(self, numbers: list[int]) -> list[Tree]:
        """Groups by lines, then pieces of many groups."""
        if len(numbers) <= MOST_PARTS:
            return [*numbers]
        # Without a line of its own an instruction, as a constant, belongs to the one before.
        lines, line = {}, ARGUMENTS
        for number in numbers:
            line = self._rows["source"][number] if self._rows["source"][number] >= 0 else line
            lines[number] = ARGUMENTS if self._is_parameter(number) else line
        sources = [*self._sources]
        parts: list[Tree] = []
        for source, run in groupby(numbers, key=lines.__getitem__):
            inside = [*run]
            label = "arguments" if source < 0 else _said(sources[source])
            parts += inside if len(inside) == 1 else [["line", label, self._pieces([*inside])]]
        return self._pieces(parts)

    def _is_parameter(self, number: int) -> bool:
        return bool([*self._ops][self._rows["op"][number]] == PARAMETER.opcode)

    def _pieces(self, parts: list[Tree]) -> list[Tree]:
        while len(parts) > MOST_PARTS:
            length = max(math.isqrt(len(parts)), -(-len(parts) // MOST_PARTS))
            cut = [parts[n : n + length] for n in range(0, len(parts), length)]
            parts = [
                piece[0] if len(piece) == 1 else ["piece", self._label(piece), piece]
                for piece in cut
            ]
        return parts

    def _label(self, parts: Sequence[Tree]) -> str:
        """The lines of a piece, the first and the last."""
        sources = [*self._sources]
        numbers = [_first(parts[0]), _last(parts[-1])]
        known = [self._rows["source"][number] for number in numbers]
        names = list(dict.fromkeys(str(sources[n]) for n in known if n >= 0))
        if names:
            return " … ".join(names)
        return " … ".join(self._rows["names"][number] for number in numbers)


def _first(tree: Tree) -> int:
    return tree if isinstance(tree, int) else _first(tree[2][0])


def _last(tree: Tree) -> int:
    return tree if isinstance(tree, int) else _last(tree[2][-1])


def _said(source: Source) -> str:
    """The place of a line, and under it the line's text."""
    return f"{source}\n{linecache.getline(source.file, source.line).strip()[:LINE]}".strip()


def seconds_of(instruction: Instruction) -> float:
    """An estimate of an instruction's time alone, with all operands from memory."""
    if instruction.op.family == "constants":
        return 0.0
    try:
        flops, functions = work_of(instruction)
    except (TracejitError, KeyError, IndexError):
        flops = functions = 0
    moved = sum(size_in_bytes(o.shape) for o in instruction.operands)
    moved += size_in_bytes(instruction.shape)
    work = moved / _BYTES_A_SECOND + flops / _FLOPS_A_SECOND + functions / _FUNCTIONS_A_SECOND
    return float(f"{_START + work:.3g}")


def measured_times(module: Module, kernels: Sequence[KernelReport]) -> dict[Instruction, float]:
    """The time of each kernel, divided among the instructions of its lines by their estimates.

    A kernel's own ops come first among them. Kernels of no line of the user's are left out.
    """
    by_line: dict[Source | None, list[Instruction]] = {}
    for instruction in _own(module.entry):
        by_line.setdefault(instruction.source, []).append(instruction)
    times: dict[Instruction, float] = {}
    for kernel in kernels:
        inside = [i for line in kernel.sources for i in by_line.get(line, ())]
        named = [i for i in inside if i.op.opcode in kernel.ops] or inside
        whole = sum(map(seconds_of, named))
        for instruction in named if whole else ():
            share = (kernel.seconds or 0.0) * seconds_of(instruction) / whole
            times[instruction] = times.get(instruction, 0.0) + share
    return {instruction: float(f"{time:.3g}") for instruction, time in times.items()}


def _own(computation: Computation) -> list[Instruction]:
    """The instructions of a computation and of the bodies of its loops and branches."""
    found = [*instructions(computation)]
    for instruction in [*found]:
        if instruction.op.family == "control":
            for called in instruction.computations:
                found += _own(called)
    return found


def script() -> str:
    """The script that draws all pictures of a page."""
    text = Path(__file__).with_name("graph.js").read_text(encoding="utf-8")
    return f"<script>{text}</script>"


STYLE = """
.tracejit .graph .tools{display:flex;flex-wrap:wrap;gap:.4em .6em;align-items:center}
.tracejit .graph button,.tracejit .graph select{font:inherit;color:inherit;background:var(--ts);
border:1px solid var(--tl);border-radius:3px;padding:.1em .6em;cursor:pointer}
.tracejit .graph label{color:var(--tm)}
.tracejit .graph .tools i{font-style:normal;font-size:11px;padding:0 .5em;border-radius:3px}
.tracejit .graph>svg{width:100%;height:min(70vh,560px);border:1px solid var(--tl);
border-radius:4px;cursor:grab;touch-action:none;user-select:none}
.tracejit .graph>svg:focus-visible{outline:2px solid var(--ta)}
.tracejit .graph svg text{font:11.5px system-ui,sans-serif;text-anchor:middle;fill:var(--tf);
pointer-events:none}
.tracejit .graph svg .small{fill:var(--tm);font-size:10.5px}
.tracejit .graph svg .port{cursor:pointer}
.tracejit .graph svg .port text{fill:var(--ta);font-size:10.5px;pointer-events:all}
.tracejit .graph svg .edge{fill:none;stroke:var(--tm);stroke-opacity:.55;stroke-width:1.2}
.tracejit .graph svg .edge.near{stroke:var(--ta);stroke-opacity:1;stroke-width:2.2}
.tracejit .graph svg .node{cursor:pointer;outline:none}
.tracejit .graph svg .node rect{fill:var(--bg,var(--ts));stroke:var(--tl)}
.tracejit .graph svg .node.open rect{fill:var(--tb);stroke:var(--tm);stroke-dasharray:4 3}
.tracejit .graph svg .node.group rect{stroke:var(--tm)}
.tracejit .graph svg .node:focus-visible rect,.tracejit .graph svg .node.chosen rect{
stroke:var(--ta);stroke-width:2.4;stroke-dasharray:none}
.tracejit .graph .told{min-height:4.6em}
"""
_COLOURS = ("#e2e2e2", "#cfe3f7", "#f9d4c6", "#d5ecd0", "#fbeec2", "#e6d9f3", "#f6cfe0", "#e8e1d4")
_DARK = ("#3a3a3a", "#1f3f5f", "#663221", "#27502a", "#5a4a12", "#45305f", "#5e2743", "#4a4436")


def _shades() -> str:
    light = "".join(f".tracejit .k{n}{{--bg:{c};background:{c}}}" for n, c in enumerate(_COLOURS))
    dark = "".join(f".tracejit .k{n}{{--bg:{c};background:{c}}}" for n, c in enumerate(_DARK))
    heat = "".join(
        f".tracejit .h{n}{{--bg:color-mix(in srgb,var(--warm) {4 + 9 * n}%,var(--tb))}}"
        for n in range(10)
    )
    return (
        f"{light}.tracejit{{--warm:#e8590c}}{heat}"
        f"@media (prefers-color-scheme:dark){{{dark}}}"
        f'body[data-jp-theme-light="false"] .tracejit{{--warm:#ff8c42}}'
        + dark.replace(".tracejit", 'body[data-jp-theme-light="false"] .tracejit')
        + dark.replace(".tracejit", "body.vscode-dark .tracejit")
    )


STYLE += _shades()
"""How pictures look, in light and dark."""
