"""The text of random graphs: HLO that reads back as it was, StableHLO that MLIR verifies."""

from __future__ import annotations

from hypothesis import given, note, settings

from tests.fuzz.graphs import Case, cases
from tests.fuzz.test_compiled import SLOW
from tests.hlo.mlir import verify_stablehlo
from tests.judge import parse_xla
from tracejit.equality import same_graph
from tracejit.errors import UnsupportedError
from tracejit.hlo import parse, to_stablehlo, to_text
from tracejit.verifier import verify


@settings(suppress_health_check=SLOW, max_examples=20)
@given(case=cases(graphs=2, steps=12))
def test_hlo(case: Case) -> None:
    text = to_text(case.module)
    note(text)
    again = verify(parse(text))
    assert same_graph(again, case.module)
    assert to_text(again) == text
    assert same_graph(parse(parse_xla(text)), case.module)


@settings(suppress_health_check=SLOW, max_examples=20)
@given(case=cases(graphs=2, steps=12))
def test_stablehlo(case: Case) -> None:
    """MLIR accepts it; XLA is not asked, which divides integer constants by zero on the way."""
    note(to_text(case.module))
    try:
        text = to_stablehlo(case.module)
    except UnsupportedError as error:
        note(str(error))
        return
    verify_stablehlo(text)
