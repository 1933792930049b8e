"""Modules as HTML: HLO by computation, beside each instruction its size and the user's line."""

from __future__ import annotations

import linecache
import re
import zlib
from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from tracejit.backends.explanation import Explanation
from tracejit.display.graphs import picture_html
from tracejit.display.page import FIND, bars, folded, paragraph, table
from tracejit.graph import Instruction, Module
from tracejit.hlo.literals import write_literal
from tracejit.hlo.printer import Listing, listing, to_text
from tracejit.ops.constants import CONSTANT
from tracejit.passes.cost_analysis import size_in_bytes
from tracejit.runtime.units import bytes_text, count_text
from tracejit.sources import Source
from tracejit.traversal import called_computations, instructions

OPEN = 100
"""A computation with more instructions is folded."""
PIECE = 200
"""A longer computation is folded piece by piece."""
LONGEST = 400
"""Characters of an instruction that are shown, and a quarter of them of a line of Python."""
LITERAL = 16
"""Constants with more elements are elided."""

_NAMES = re.compile(r"%([A-Za-z0-9_.-]+)")


def module_text(module: Module) -> str:
    """The HLO text, large constants elided."""
    return to_text(module, literal=_literal)


def _literal(array: np.ndarray) -> str:
    return write_literal(array) if array.size <= LITERAL else "{...}"


def headline(module: Module) -> list[str]:
    """What stands first: the name, how many instructions, and sizes."""
    computations = called_computations(module)
    listed = [i for computation in computations for i in instructions(computation)]
    arguments = sum(size_in_bytes(p.shape) for p in module.entry.parameters)
    constants = sum(size_in_bytes(i.shape) for i in listed if i.op is CONSTANT)
    several = f" in {len(computations)} computations" if len(computations) > 1 else ""
    return [
        module.name,
        f"{len(listed)} instructions{several}",
        f"arguments {bytes_text(arguments)}",
        f"results {bytes_text(size_in_bytes(module.entry.root.shape))}",
        f"constants {bytes_text(constants)}",
    ]


def module_html(module: Module) -> str:
    """The headline, a search box, and the entry followed by the computations that it calls."""
    return paragraph(*headline(module)) + graph_html(module)


def graph_html(module: Module, times: Mapping[Instruction, float] | None = None) -> str:
    """The picture, the search box and the computations, the entry first.

    ``times`` of instructions were measured.
    """
    listed = list(listing(module, literal=_literal))
    prefix = f"tj{zlib.crc32(''.join(part.head for part in listed).encode()):08x}-"
    picture = picture_html(listed, prefix, times)
    return picture + FIND + "".join(_computation(part, prefix) for part in reversed(listed))


def _computation(part: Listing, prefix: str) -> str:
    body, count = part.instructions, len(part.instructions)
    summary = f"<code>{escape(_cut(part.head.removesuffix(' {'), LONGEST))}</code>"
    summary += f" <small>{count} instruction{'s' * (count != 1)}</small>"
    if count <= PIECE:
        inside = _rows(body, part.root, prefix)
    else:
        inside = "".join(
            folded(_piece(piece, n), _rows(piece, part.root, prefix))
            for n in range(0, count, PIECE)
            for piece in [body[n : n + PIECE]]
        )
    anchor = f"{prefix}c-{part.name}"
    return folded(summary, inside, part.is_entry and not OPEN < count <= PIECE, anchor)


def _piece(body: Sequence[tuple[Instruction, str]], first: int) -> str:
    """The title of a folded piece of a long computation: its instructions and their lines."""
    said = f"instructions {first} to {first + len(body) - 1}"
    sources = dict.fromkeys(str(i.source) for i, _ in body if i.source is not None)
    if sources:
        names = list(sources)
        lines = names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}"
        said += f" <small>{escape(lines)}</small>"
    return said


def _rows(body: Sequence[tuple[Instruction, str]], root: Instruction, prefix: str) -> str:
    rows, before = [], None
    for instruction, text in body:
        source = "" if instruction.source == before else _line(instruction.source)
        before = instruction.source
        name = escape(_name(text))
        size = bytes_text(size_in_bytes(instruction.shape))
        rows.append(
            f'<tr id="{prefix}{name}"><td><code>{"ROOT " if instruction is root else ""}'
            f"{_linked(instruction, text, prefix)}</code></td>"
            f'<td class="n">{size}</td><td>{source}</td></tr>'
        )
    return f'<table class="hlo">{"".join(rows)}</table>'


def _name(text: str) -> str:
    found = _NAMES.search(text)
    assert found is not None, f"no name in {text}"
    return found[1]


def _linked(instruction: Instruction, text: str, prefix: str) -> str:
    """The text of an instruction with links to its operands and to what it calls."""
    made, at, text = [], 0, _cut(text, LONGEST)
    for number, found in enumerate(_NAMES.finditer(text)):
        operands = len(instruction.operands)
        if number == 0 or number > operands + len(instruction.computations):
            continue
        place = prefix if number <= operands else f"{prefix}c-"
        made.append(escape(text[at : found.start()]))
        made.append(f'<a href="#{place}{found[1]}">{found[0]}</a>')
        at = found.end()
    return "".join([*made, escape(text[at:])])


def _line(source: Source | None) -> str:
    """The user's line: where it stands, and what."""
    if source is None:
        return "<small>unknown</small>"
    code = _cut(linecache.getline(source.file, source.line).strip(), LONGEST // 4)
    return f"<small>{escape(str(source))}</small> <code>{escape(code)}</code>"


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def kernels_html(told: Explanation) -> str:
    """The kernels of a compiled program, with what each computes, moves and counts."""
    kernels = told.kernels
    moved = [k.bytes_read + k.bytes_written for k in kernels]
    flops = [k.flops + k.transcendentals for k in kernels]
    columns = zip(
        [k.name for k in kernels],
        [ops_text(k.ops) for k in kernels],
        [k.schedule for k in kernels],
        [str(k.threads) for k in kernels],
        bars(moved, [bytes_text(value) for value in moved]),
        bars(flops, [count_text(value) for value in flops]),
        strict=True,
    )
    return table(["kernel", "computes", "schedule", "threads", "bytes", "flops"], columns)


def ops_text(ops: Sequence[str]) -> str:
    """The opcodes of a kernel, each once with how often it is there."""
    counts = {op: ops.count(op) for op in dict.fromkeys(ops)}
    listed = [f"{count} x {op}" if count > 1 else op for op, count in counts.items()]
    return _cut(", ".join(listed) or "a constant", LONGEST)
