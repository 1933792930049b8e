"""The product's docstrings, comments and errors name their subject: see `plain_english`."""

from __future__ import annotations

import pytest

from tests.project.plain_english import all_riddles, riddles


def test_there_are_no_riddles() -> None:
    assert not all_riddles()


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
