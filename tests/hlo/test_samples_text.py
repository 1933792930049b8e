"""Every sample's text is taken by the real XLA and read back, from us and from XLA, as it was."""

from __future__ import annotations

import pytest

from tests.judge import parse_xla
from tests.samples.base import Sample
from tests.samples.cases import every_sample, joint_module
from tests.samples.values import element_types
from tracejit.equality import same_graph
from tracejit.hlo import parse, to_text
from tracejit.verifier import verify


@pytest.mark.parametrize("sample", every_sample())
def test_text_of_sample(sample: Sample) -> None:
    module = joint_module(sample, element_types(sample))
    text = to_text(module)
    again = verify(parse(text))
    assert same_graph(again, module)
    assert to_text(again) == text
    by_xla = parse_xla(text)
    assert same_graph(verify(parse(by_xla)), module)
