"""``input_output_alias``: which results may take over the memory of which parameters."""

from __future__ import annotations

import jaxlib._hlo as xla
import pytest

import tracejit as tj
from tracejit.attributes import OutputAlias
from tracejit.equality import same_graph
from tracejit.errors import HloParseError, VerificationError
from tracejit.verifier import verify

TEXT = """HloModule m, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {1}, must-alias) }

ENTRY e {
  a = f32[3] parameter(0)
  p = (s32[], f32[3]) parameter(1)
  b = f32[3] get-tuple-element(p), index=1
  c = f32[3] add(a, b)
  ROOT t = (f32[3], f32[3]) tuple(c, b)
}
"""


def with_aliases(aliases: str) -> str:
    return TEXT.replace(TEXT[TEXT.index("={ ") + 1 : TEXT.index("\n")], aliases)


def test_read_and_printed() -> None:
    module = verify(tj.hlo.parse(TEXT))
    assert module.input_output_alias == (
        OutputAlias((0,), 0, (), "may-alias"),
        OutputAlias((1,), 1, (1,), "must-alias"),
    )
    text = str(module)
    assert same_graph(tj.hlo.parse(text), module)
    theirs = xla.hlo_module_from_text(text).to_string()
    assert tj.hlo.parse(theirs).input_output_alias == module.input_output_alias


def test_of_a_result_that_is_no_tuple() -> None:
    text = """HloModule m, input_output_alias={ {}: (0, {}) }

    ENTRY e {
      a = f32[3] parameter(0)
      ROOT b = f32[3] negate(a)
    }
    """
    assert verify(tj.hlo.parse(text)).input_output_alias == (OutputAlias((), 0),)


def test_graphs_differ_by_their_aliases() -> None:
    assert not same_graph(tj.hlo.parse(TEXT), tj.hlo.parse(with_aliases("{}")))


@pytest.mark.parametrize(
    ("aliases", "fault"),
    [
        ("{ {0}: (2, {}) }", "of no parameter"),
        ("{ {2}: (0, {}) }", "of another shape"),
        ("{ {0}: (1, {}) }", "of another shape"),
        ("{ {0}: (1, {0}) }", "of another shape"),
        ("{ {0}: (0, {}), {1}: (0, {}) }", "twice"),
        ("{ {0}: (0, {}), {0}: (1, {1}) }", "twice"),
    ],
)
def test_impossible_aliases(aliases: str, fault: str) -> None:
    with pytest.raises(VerificationError, match=fault):
        verify(tj.hlo.parse(with_aliases(aliases)))


def test_damaged_aliases() -> None:
    with pytest.raises(HloParseError):
        tj.hlo.parse(with_aliases("{ {0}: 0 }"))
