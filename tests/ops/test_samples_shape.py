"""Every sample builds, for every element type it lists, a graph that the verifier accepts."""

from __future__ import annotations

import pytest

from tests.samples.base import Sample
from tests.samples.cases import every_sample, sample_module
from tests.samples.values import element_types
from tracejit.graph import OPS
from tracejit.traversal import called_computations, instructions


@pytest.mark.parametrize("sample", every_sample())
def test_sample_builds_a_graph_that_verifies(sample: Sample) -> None:
    assert element_types(sample)
    for element_type in element_types(sample):
        module = sample_module(sample, element_type)
        found = {i.op for c in called_computations(module) for i in instructions(c)}
        assert OPS[sample.op] in found, f"{element_type}: no {sample.op} in {module}"
