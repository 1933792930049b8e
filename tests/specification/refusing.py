"""What is built to be refused: parameters on the way, some computations, and the check.

("sizes", lambda m: m.b.dot(m("f32[3]"), m("f32[4]")), "contracting dimensions must ...")
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from tests.specification.running import F32, S32, computation, scalars
from tracejit.builder import XlaBuilder
from tracejit.errors import TracejitError
from tracejit.graph import Instruction
from tracejit.hlo.shapes import parse_shape
from tracejit.ops import DotDimensionNumbers
from tracejit.shapes import Shape


@dataclass
class Maker:
    """A builder that makes parameters on the way: ``m("f32[2,3]")``."""

    b: XlaBuilder = field(default_factory=lambda: XlaBuilder("refused"))
    count: int = 0

    def __call__(self, text: str) -> Instruction:
        self.count += 1
        return self.b.parameter(self.count - 1, parse_shape(text))


Refusal = tuple[str, Callable[[Maker], object], str]
"""A name, what builds it, and what the error says."""

ADD = scalars(lambda b, x, y: b.add(x, y), F32, F32)
LESS = scalars(lambda b, x, y: b.lt(x, y), F32, F32)
ADD_S32 = scalars(lambda b, x, y: b.add(x, y), S32, S32)
DOUBLE = scalars(lambda b, x: b.add(x, x), F32)
WIDE = computation(lambda b, x: b.add(x, x), Shape(F32, (2,)))
PAIR = scalars(lambda b, x, y: b.tuple([x, y]), F32, F32)
TRUE = computation(lambda b, x: b.constant(True), Shape(F32, (2,)))
MATMUL = DotDimensionNumbers((1,), (0,))


def each(*lists: Sequence[Refusal]) -> pytest.MarkDecorator:
    """One test for each row, named after it; no name twice."""
    rows = [row for rows in lists for row in rows]
    names = [row[0] for row in rows]
    assert len(set(names)) == len(names), "a name stands for two rows"
    return pytest.mark.parametrize(("build", "message"), [row[1:] for row in rows], ids=names)


def check(build: Callable[[Maker], object], message: str, file: str) -> None:
    """``build`` raises an error of ours that says ``message`` and names a line of ``file``."""
    with pytest.raises(TracejitError, match=re.escape(message)) as caught:
        build(Maker())
    assert re.search(rf"\({re.escape(file)}:\d+\)$", str(caught.value))
