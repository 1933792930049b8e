"""Writes the picture and the table of passes into `docs/architecture.md`, from the pipeline.

python -m tests.project.architecture_page
"""

from __future__ import annotations

import inspect
from pathlib import Path

from tests.project import checkout
from tracejit.runtime import importing_tvm

with importing_tvm():
    from tracejit.backends.tvm import pipeline
    from tracejit.backends.tvm.passes.manager import Pass

PAGE = checkout.ROOT / "docs" / "architecture.md"
BEGIN = "<!-- written by tests.project.architecture_page: begin -->\n"
END = "<!-- written by tests.project.architecture_page: end -->\n"

TITLES = {
    "module": "Over the whole program, once",
    "loops": "Inside of `vectorize-loops`, over each loop, innermost first",
    "reroll": "Inside of `reroll`, where a graph is long",
    "fragment": "Over the program, then over each loop body, loop condition and branch",
}


def section() -> str:
    """The picture of the stages, then a table for each list of passes."""
    parts = [_picture()]
    for key, passes in pipeline.LISTS.items():
        rows = [f"| `{p.name}` | {_place(p)} | {p.why} |" for p in passes]
        head = ["| pass | defined in | why there |", "| --- | --- | --- |"]
        parts.append("\n".join([f"### {TITLES[key]}", "", *head, *rows]) + "\n")
    return "\n".join(parts)


def _picture() -> str:
    def box(key: str) -> str:
        return "<br/>".join(each.name for each in pipeline.LISTS[key])

    lines = [
        "```mermaid",
        "flowchart LR",
        '  traced["traced graph"] --> module',
        f'  module["<b>pipeline.MODULE</b><br/>{box("module")}"] --> fragment',
        f'  reroll["<b>pipeline.REROLL</b><br/>{box("reroll")}"] -.-> module',
        f'  fragment["<b>pipeline.FRAGMENT</b><br/>{box("fragment")}"] --> optimised',
        "  fragment -. each loop and branch .-> fragment",
        '  optimised["optimised graph<br/>compiled.as_text()"] --> fusion',
        '  fusion["<b>fusion</b><br/>plan"]',
        '  fusion --> lower["<b>lower</b><br/>kernels, buffers: Program"]',
        '  build["<b>cpu.objects</b><br/>identical code folding,<br/>TIR passes, LLVM, linker"]',
        "  lower --> build",
        '  build --> artifact["artifact"]',
        "```",
    ]
    return "\n".join(lines) + "\n"


def _place(each: Pass) -> str:
    """The file that a pass is defined in, as the page links to it."""
    file = inspect.getsourcefile(inspect.unwrap(each.run))
    assert file is not None
    parts = Path(file).parts
    inner = "/".join(parts[parts.index("backends") :])
    return f"[{inner.removeprefix('backends/tvm/')}](../{inner})"


def page(text: str) -> str:
    """The text of the page with the section written anew."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{section()}\n{END}{after}"


def main() -> None:
    """Writes the page."""
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
