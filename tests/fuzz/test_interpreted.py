"""Random graphs compute what the real XLA computes of them, or of their ops one by one."""

from __future__ import annotations

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from tests.fuzz.graphs import Case, cases
from tests.fuzz.judging import judge_graph
from tests.fuzz.test_compiled import SLOW


@pytest.mark.exhaustive
@settings(suppress_health_check=SLOW)
@given(case=cases(graphs=2, steps=8), seed=st.integers(0, 1000))
def test_against_xla(case: Case, seed: int) -> None:
    note(str(case.module))
    outcome = judge_graph(case.module, seed)
    assert not outcome.failed, outcome.text
