"""The frame of every display: style, search box, escaped text, and the page as a file.

The HTML asks for nothing outside of itself, and takes its colours from JupyterLab or VS Code where
it is shown there, else from the reader's choice of light or dark.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from tracejit.display import graphs

STYLE = """
.tracejit{--f:#1c1c1c;--b:#fff;--m:#666;--l:#d5d5d5;--s:#f3f3f3;--a:#0b62a8;--c:#8db8e2;
--tf:var(--jp-content-font-color1,var(--vscode-editor-foreground,var(--f)));
--tm:var(--jp-content-font-color2,var(--vscode-descriptionForeground,var(--m)));
--tb:var(--jp-layout-color0,var(--vscode-editor-background,var(--b)));
--tl:var(--jp-border-color2,var(--vscode-panel-border,var(--l)));
--ts:var(--jp-layout-color2,var(--vscode-editorWidget-background,var(--s)));
--ta:var(--jp-content-link-color,var(--vscode-textLink-foreground,var(--a)));
color:var(--tf);background:var(--tb);font:13px/1.45 system-ui,sans-serif;overflow-x:auto;
padding:.5em;box-sizing:border-box}
body>.tracejit{min-height:100vh}
@media (prefers-color-scheme:dark){
.tracejit{--f:#e4e4e4;--b:#161616;--m:#a0a0a0;--l:#444;--s:#262626;--a:#7db8ef;--c:#2f5f8f}}
.tracejit code{font:12px/1.5 ui-monospace,Menlo,Consolas,monospace;background:none;color:inherit;
white-space:pre-wrap;overflow-wrap:anywhere}
.tracejit p{margin:.4em 0}
.tracejit summary{cursor:pointer;padding:.15em 0}
.tracejit details details{margin-left:1em}
.tracejit small{color:var(--tm);font-size:12px}
.tracejit a{color:var(--ta);text-decoration:none}
.tracejit a:hover{text-decoration:underline}
.tracejit table{border-collapse:collapse;table-layout:auto;
margin:.3em 0 .3em 1em;color:inherit;font-size:12px}
.tracejit th,.tracejit td{text-align:left;vertical-align:top;padding:.15em .6em;
border-bottom:1px solid var(--tl)}
.tracejit th{color:var(--tm);font-weight:600}
.tracejit tr{background:none}
.tracejit tr:target{background:var(--ts)}
.tracejit .n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
.tracejit .bar{background:linear-gradient(90deg,var(--c) var(--w),transparent 0) no-repeat;
min-width:5em}
.tracejit input{font:inherit;color:inherit;background:var(--tb);border:1px solid var(--tl);
padding:.2em .5em;width:22em;max-width:90%}
.tracejit svg{max-width:100%;height:auto;display:block}
.tracejit svg text{fill:var(--tm);font:11px system-ui,sans-serif}
.tracejit svg path{fill:var(--c);stroke:var(--ta)}
.tracejit svg rect{fill:var(--ta)}
.tracejit svg .frame{fill:none;stroke:var(--tl)}
.tracejit svg line{stroke:var(--tf)}
"""

FIND = """<p class="find" hidden><input type="search" aria-label="Find instructions"
placeholder="Find an op, a shape, a line …"> <output></output></p>"""
"""The search box, which `SCRIPT` shows where scripts run."""

SCRIPT = """<script>
for(const box of document.querySelectorAll(".tracejit .find[hidden]")){
box.hidden=false;
const root=box.closest(".tracejit"),input=box.querySelector("input");
let timer=0;
const find=()=>{
const words=input.value.toLowerCase().split(" ").filter(Boolean),hits=[];
for(const table of root.querySelectorAll("table.hlo")){
let line="",any=false;
for(const row of table.rows){
line=row.cells[2].textContent||line;
const text=(row.cells[0].textContent+" "+line).toLowerCase();
row.hidden=!words.every(word=>text.includes(word));
if(!row.hidden){any=true;hits.push(row)}
}
table.closest("details").hidden=!any;
}
if(words.length)for(const row of hits.slice(0,500))
for(let at=row.closest("details");at;at=at.parentElement.closest("details"))at.open=true;
box.querySelector("output").textContent=words.length?hits.length+" found":"";
};
input.addEventListener("input",()=>{clearTimeout(timer);timer=setTimeout(find,150)});
}
</script>"""
"""Filters rows of instructions by the words in the search box."""


def framed(body: str) -> str:
    """A piece of HTML with its style, as notebooks display it."""
    style, script = (
        (STYLE + graphs.STYLE, SCRIPT + graphs.script()) if FIND in body else (STYLE, "")
    )
    return f'<div class="tracejit"><style>{style}</style>{body}{script}</div>'


class Page:
    """A display: itself in a notebook, its ``text`` in a terminal, and a file by `save`."""

    def __init__(self, title: str, text: str, html: str) -> None:
        self.title, self.text, self.html = title, text, html

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.html

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes one HTML file that needs no other. Raises `OSError`."""
        Path(path).write_text(self.document(), encoding="utf-8")

    def document(self) -> str:
        """The whole file."""
        return (
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width">'
            '<meta name="color-scheme" content="light dark">'
            f"<title>{escape(self.title)}</title></head>\n"
            f'<body style="margin:0">{self.html}</body></html>\n'
        )


Cell = str | tuple[str, float]
"""A cell of a table: text, or a number's text and how long its bar is, from 0 to 1."""


def table(heads: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """A table of texts, which are escaped, and of numbers with bars."""
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _cell(cell: Cell) -> str:
    if isinstance(cell, str):
        return f"<td>{escape(cell)}</td>"
    text, length = cell
    return f'<td class="n bar" style="--w:{100 * min(max(length, 0), 1):.0f}%">{escape(text)}</td>'


def bars(values: Sequence[float], texts: Sequence[str]) -> list[Cell]:
    """A cell for each value, the largest with the longest bar."""
    most = max(values, default=0) or 1
    return [(text, value / most) for text, value in zip(texts, values, strict=True)]


def folded(summary: str, body: str, is_open: bool = False, anchor: str = "") -> str:
    """A part that opens when it is clicked; both are HTML already."""
    named = f' id="{escape(anchor)}"' if anchor else ""
    return (
        f"<details{named}{' open' if is_open else ''}><summary>{summary}</summary>{body}</details>"
    )


def paragraph(*parts: str) -> str:
    """Texts, which are escaped, one behind the other; the first is bold."""
    first, *rest = map(escape, parts)
    return f"<p>{' · '.join([f'<b>{first}</b>', *rest])}</p>"
