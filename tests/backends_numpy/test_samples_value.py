"""The interpreter computes for every sample what the real XLA computes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.judge import run_xla
from tests.samples.base import Sample
from tests.samples.cases import draw_joint, every_sample, joint_module
from tests.samples.comparing import SINGLE, compare, special
from tests.samples.values import element_types
from tracejit.backends.numpy import evaluate
from tracejit.graph import OPS
from tracejit.shapes import ElementType, element_type_of


def check(sample: Sample, types: Sequence[ElementType], special: bool) -> None:
    module = joint_module(sample, types)
    extremes = OPS[sample.op].family in SINGLE
    arrays = draw_joint(sample, types, special, extremes)
    before = [array.copy() for array in arrays]
    actual = evaluate(module.entry, arrays)
    for array, copy in zip(arrays, before, strict=True):
        assert array.tobytes() == copy.tobytes(), "the interpreter wrote to its input"
    expected = run_xla(module, *arrays)
    problems = []
    for position, (ours, theirs) in enumerate(zip(actual, expected, strict=True)):
        found = compare(sample, np.asarray(ours), theirs)
        if found:
            problems.append(f"result {position}, {element_type_of(theirs.dtype)}: {found}")
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("sample", every_sample())
def test_value_of_sample(sample: Sample) -> None:
    check(sample, element_types(sample), special=False)


@pytest.mark.parametrize("sample", every_sample(special))
def test_value_of_sample_at_special_values(sample: Sample) -> None:
    check(sample, element_types(sample), special=True)
