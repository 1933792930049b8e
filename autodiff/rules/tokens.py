"""Tokens and queues: what passes a dependency passes its cotangent; the host has none."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.autodiff.reverse import Nested, differentiate
from tracejit.graph import Instruction
from tracejit.ops.tokens import ADD_DEPENDENCY, AFTER_ALL, INFEED, OUTFEED

differentiate.decline(AFTER_ALL, "holds no data")
differentiate.decline(INFEED, "reads what the host gives")
differentiate.decline(OUTFEED, "makes nothing but a token")


@differentiate.attach(ADD_DEPENDENCY)
def add_dependency(instruction: Instruction, cotangent: Nested) -> Sequence[Nested]:
    return [cotangent, None]
