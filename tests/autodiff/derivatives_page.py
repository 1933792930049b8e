"""The last table of docs/derivatives.md: which operations have no derivative, and why.

python -m tests.autodiff.derivatives_page          writes it anew
"""

from __future__ import annotations

from itertools import groupby

from tests.project import checkout
from tracejit.autodiff.reverse import differentiate
from tracejit.graph import OPS

PAGE = checkout.ROOT / "docs" / "derivatives.md"
HEADING = "## Operations without a derivative\n"


def table() -> str:
    """A row for each reason, with the operations in the table's order."""
    reasons = [(differentiate.reason(op), name) for name, op in OPS.items()]
    declined = sorted((reason, name) for reason, name in reasons if reason is not None)
    count = len(OPS) - len(declined)
    lines = [
        f"Of {len(OPS)} operations {count} have one. These end the path of a gradient:",
        "",
        "| reason | operations |",
        "|---|---|",
    ]
    for reason, group in groupby(declined, key=lambda pair: pair[0]):
        lines.append(f"| {reason} | {', '.join(f'`{name}`' for _, name in group)} |")
    return "\n".join(lines) + "\n"


def page(text: str) -> str:
    """The page with the table as it should be."""
    return f"{text[: text.index(HEADING)]}{HEADING}\n{table()}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
