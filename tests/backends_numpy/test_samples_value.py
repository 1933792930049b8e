"""The interpreter computes for every sample what the real XLA computes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.judge import run_xla
from tests.samples.base import Sample
from tests.samples.cases import draw_joint, every_sample, joint_module
from tests.samples.values import element_types, takes_special
from tests.tolerances import differences, same_bits
from tracejit.backends.numpy import evaluate
from tracejit.graph import OPS
from tracejit.shapes import ElementType, element_type_of

# Families whose results are sums: errors are proportional to the terms, not to the result.
SUMMING = {"contraction", "convolution", "normalisation", "reduction", "windows", "indexing"}
# Families of one right answer at infinities, NaN and extremes; and those that combine several
# elements, in any order, so that an overflow on the way may or may not happen.
SINGLE = {
    "comparison",
    "constants",
    "element_types",
    "elementwise",
    "elementwise_unary",
    "layout",
}
COMBINING = {"indexing", "reduction", "windows"}


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


def compare(sample: Sample, actual: np.ndarray, expected: np.ndarray) -> str:
    if sample.exact:
        return same_bits(actual, expected)
    element_type = element_type_of(expected.dtype)
    given = sample.tolerance
    relative = given.get(element_type) if isinstance(given, dict) else given
    scale = 0.0
    if OPS[sample.op].family in SUMMING and element_type.is_inexact and expected.size:
        sizes = np.abs(expected.astype(np.complex128 if element_type.is_complex else np.float64))
        scale = float(np.max(sizes, initial=0, where=np.isfinite(sizes)))
    return differences(actual, expected, relative, scale)


@pytest.mark.parametrize("sample", every_sample())
def test_value_of_sample(sample: Sample) -> None:
    check(sample, element_types(sample), special=False)


def special(sample: Sample) -> bool:
    return OPS[sample.op].family in SINGLE | COMBINING and takes_special(sample)


@pytest.mark.parametrize("sample", every_sample(special))
def test_value_of_sample_at_special_values(sample: Sample) -> None:
    check(sample, element_types(sample), special=True)
