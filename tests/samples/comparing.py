"""How the results of a sample are compared, whoever has computed them."""

from __future__ import annotations

import numpy as np

from tests.samples.base import Sample
from tests.samples.values import takes_special
from tests.tolerances import differences, same_bits
from tracejit.graph import OPS
from tracejit.shapes import element_type_of

# Families whose results are sums: errors are proportional to the terms, not to the result.
SUMMING = {
    "contraction",
    "convolution",
    "indexing",
    "linalg",
    "normalisation",
    "reduction",
    "windows",
}
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


def compare(sample: Sample, actual: np.ndarray, expected: np.ndarray) -> str:
    """In words how the results differ; empty where they are as close as the sample asks."""
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


def special(sample: Sample) -> bool:
    """Whether infinities, NaN and extremes have one right answer, whatever the order."""
    return OPS[sample.op].family in SINGLE | COMBINING and takes_special(sample)
