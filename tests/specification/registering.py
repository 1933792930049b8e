"""What a registered op gives in every way there is to run it."""

from __future__ import annotations

from typing import Any

import numpy as np

import tracejit as tj
from tests.judge import parse_xla


def expect(op: Any, arguments: list[Any], expected: Any) -> None:
    """The op gives ``expected`` at once, interpreted, compiled, and read back from its text."""
    expected = np.asarray(expected)
    arrays = [np.asarray(a) for a in arguments]
    lowered = tj.jit(op).lower(*arrays)
    text = lowered.as_text("hlo")
    parse_xla(text)
    parsed = tj.hlo.parse(text)
    assert str(parsed) == text
    ways = [op(*arrays), tj.jit(op)(*arrays), tj.interpret(parsed, *arrays)]
    for made in [*ways, tj.compile(parsed)(*arrays)]:
        np.testing.assert_array_equal(made, expected)
        assert made.dtype == expected.dtype
