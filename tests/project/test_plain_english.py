"""The product's docstrings, comments and errors name their subject: see `plain_english`."""

from __future__ import annotations

import pytest

from tests.project.allowed_riddles import ALLOWED
from tests.project.plain_english import counts, riddles


def test_folders_have_no_new_riddles() -> None:
    found = counts()
    more = {folder: n for folder, n in found.items() if n > ALLOWED.get(folder, 0)}
    assert not more, f"python -m tests.project.plain_english {' '.join(more)} says where"


def test_allowed_folders_have_riddles() -> None:
    none = [folder for folder in ALLOWED if folder not in counts()]
    assert not none, "python -m tests.project.plain_english --write lowers the numbers"


@pytest.mark.parametrize(
    "source",
    [
        '"""Buffers of which so many are kept."""',
        "x = 1  # what it makes of what it reads",
        "# The number that\n# stands for the index.\nx = 1",
        "def f():\n    raise ValueError(f'{1} of which none fits')",
    ],
)
def test_riddles_are_found(source: str) -> None:
    assert list(riddles(source))


@pytest.mark.parametrize(
    "source",
    [
        '"""Keeps ``count`` buffers."""',
        "x = 'made of strings'",
        "# It costs so much that nobody does it.",
        '"""What one can do with it. What it costs."""',
    ],
)
def test_plain_sentences_pass(source: str) -> None:
    assert not list(riddles(source))
