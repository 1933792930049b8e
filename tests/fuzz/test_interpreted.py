"""The interpreter computes for random graphs what the real XLA computes."""

from __future__ import annotations

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from tests.fuzz.arguments import arguments
from tests.fuzz.comparing import leaves
from tests.fuzz.graphs import Case, cases
from tests.fuzz.noise import disagreements
from tests.fuzz.test_compiled import SLOW
from tests.judge import run_xla
from tracejit.backends.numpy import evaluate


@pytest.mark.exhaustive
@settings(suppress_health_check=SLOW)
@given(case=cases(graphs=2, steps=8), seed=st.integers(0, 1000))
def test_against_xla(case: Case, seed: int) -> None:
    module = case.module
    note(str(module))
    given_arrays = arguments(module.entry, seed)
    expected = leaves(run_xla(module, *given_arrays))
    actual = leaves(evaluate(module.entry, given_arrays))
    found = disagreements(module.entry, given_arrays, actual, expected)
    assert not found, "\n".join(f"result {n}: {text}" for n, text in found.items())
