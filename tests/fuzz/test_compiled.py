"""Compiled random graphs compute what the interpreter computes."""

from __future__ import annotations

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from tests.backends_tvm.compiled import check
from tests.fuzz.arguments import arguments
from tests.fuzz.graphs import Case, cases

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


@settings(suppress_health_check=SLOW)
@given(case=cases(graphs=3, steps=12), seed=st.integers(0, 1000))
def test_small_graphs(case: Case, seed: int) -> None:
    module = case.module
    note(str(module))
    check(module.entry, arguments(module.entry, seed))


@settings(suppress_health_check=SLOW, max_examples=8)
@given(case=cases(graphs=1, steps=20, elements=60_000), seed=st.integers(0, 1000))
def test_arrays_that_threads_share(case: Case, seed: int) -> None:
    module = case.module
    note(str(module))
    check(module.entry, arguments(module.entry, seed))
