"""Every differentiable sample's derivatives, of order 1 and 2, against finite differences."""

from __future__ import annotations

from typing import Any

import pytest

from tests.autodiff.gradients import check_gradients
from tests.samples.base import Sample
from tests.samples.cases import all_samples, every_sample, seeded
from tests.samples.values import draw
from tracejit.shapes import ElementType


def cases() -> list[Any]:
    """Each sample with each of the two element types that finite differences can judge."""
    return [
        pytest.param(sample, element_type, id=f"{parameter.id}-{element_type}")
        for parameter in every_sample(lambda sample: sample.differentiable)
        for (sample,) in [parameter.values]
        for element_type in (ElementType.F64, ElementType.C128)
        if element_type in sample.element_types
    ]


@pytest.mark.parametrize(("sample", "element_type"), cases())
def test_gradient_of_sample(sample: Sample, element_type: ElementType) -> None:
    arrays = draw(sample, element_type, seeded(sample))
    fixed = [i for i, operand in enumerate(sample.operands) if not operand.differentiate]
    check_gradients(sample.build, arrays, fixed=fixed)


def test_samples_that_are_not_differentiated_say_why() -> None:
    silent = [f"{s.op} {s.label}" for s in all_samples() if not s.differentiable and not s.why]
    assert not silent
