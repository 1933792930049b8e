"""The tables of times in the documentation: each ratio is that of the times beside it."""

from __future__ import annotations

import re

import pytest

from tests.project import checkout

PAGES = ("docs/speed.md", "docs/benchmarks.md")
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
CELL = re.compile(r"([\d.]+) (us|ms|s)(?: \(([\d.]+)\))?")


def rows(page: str) -> list[list[str]]:
    """The rows of the tables of calls, each a name and the engines' cells."""
    found, inside = [], False
    for line in (checkout.ROOT / page).read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            inside = False
        elif re.match(r"a call(, .*)?$", cells[0]) and cells[1] == "tracejit":
            inside = True
        elif inside and not cells[0].startswith("---"):
            found.append(cells)
    return found


def rounded(cell: str) -> tuple[float, float]:
    """The least and the greatest time of which a cell is the rounding."""
    found = CELL.fullmatch(cell)
    assert found is not None, cell
    number, unit, _ = found.groups()
    half = 0.5 * 10.0 ** -len(number.partition(".")[2])
    return (float(number) - half) * UNITS[unit], (float(number) + half) * UNITS[unit]


@pytest.mark.parametrize("page", PAGES)
def test_ratios_are_of_the_times_beside_them(page: str) -> None:
    """A table of other figures, first calls say, would be another page's."""
    table = rows(page)
    assert len(table) > 20
    for name, own, *others in table:
        least, most = rounded(own)
        for other in filter(None, others):
            found = CELL.fullmatch(other)
            assert found is not None, (name, other)
            assert found[3] is not None, (name, "no ratio")
            low, high = rounded(other)
            assert least / high - 0.006 <= float(found[3]) <= most / low + 0.006, (name, other)
