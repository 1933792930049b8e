"""The element types that ops admit, as their samples say."""

from __future__ import annotations

import functools

from tests.samples.cases import all_samples
from tests.samples.values import BEYOND_XLA, operand_type
from tracejit.shapes import ElementType


@functools.cache
def admitted(name: str) -> tuple[ElementType, ...]:
    """The element types with which some sample of the op ``name`` is tried, in order.

    All where it has no samples.
    """
    found = {
        operand_type(operand, element_type)
        for sample in all_samples()
        if sample.op == name
        for element_type in sample.element_types
        for operand in sample.operands
    } | {t for sample in all_samples() if sample.op == name for t in sample.element_types}
    judged = [t for t in ElementType if t not in BEYOND_XLA]
    return tuple(t for t in judged if t in found or not found)
