"""Compiled code computes for every sample what the interpreter computes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.samples.base import Sample
from tests.samples.cases import draw_joint, every_sample, joint_module
from tests.samples.comparing import SINGLE, compare
from tests.samples.comparing import special as takes_special
from tests.samples.values import element_types
from tracejit.api import executable
from tracejit.backends.numpy import evaluate
from tracejit.graph import OPS
from tracejit.shapes import ElementType, element_type_of


def flat(value: object) -> list[np.ndarray]:
    """The arrays of a value, tuples taken apart."""
    if isinstance(value, tuple):
        return [leaf for element in value for leaf in flat(element)]
    return [np.asarray(value)]


def check(sample: Sample, types: Sequence[ElementType], special: bool) -> None:
    module = joint_module(sample, types)
    arrays = draw_joint(sample, types, special, OPS[sample.op].family in SINGLE)
    before = [array.copy() for array in arrays]
    actual = executable(module)(arrays)
    for array, copy in zip(arrays, before, strict=True):
        assert array.tobytes() == copy.tobytes(), "compiled code wrote to its input"
    expected = flat(evaluate(module.entry, arrays))
    problems = []
    for position, (ours, theirs) in enumerate(zip(actual, expected, strict=True)):
        found = compare(sample, ours, theirs)
        if found:
            problems.append(f"result {position}, {element_type_of(theirs.dtype)}: {found}")
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("sample", every_sample())
def test_compiled_sample(sample: Sample) -> None:
    check(sample, element_types(sample), special=False)


@pytest.mark.parametrize("sample", every_sample(takes_special))
def test_compiled_sample_at_special_values(sample: Sample) -> None:
    check(sample, element_types(sample), special=True)
