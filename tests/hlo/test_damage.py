"""Whatever text is given, it is read as a module or refused with its place, soon."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given, note
from hypothesis import strategies as st

from tests.building import computation
from tests.hlo.damage import damaged
from tests.hlo.test_dumps import FOLDER, NAMES
from tests.samples.cases import all_samples, joint_module
from tests.samples.values import element_types
from tracejit import ops
from tracejit.equality import same_graph
from tracejit.errors import HloParseError
from tracejit.graph import Module
from tracejit.hlo import parse, to_text
from tracejit.shapes import ElementType, Shape
from tracejit.verifier import verify

SMALL = [to_text(joint_module(s, element_types(s)[:2])) for s in all_samples()[::9]]
DUMPS = [(FOLDER / name).read_text() for name in NAMES if (FOLDER / name).stat().st_size < 12_000]


def refusal(text: str) -> HloParseError | None:
    """The error that ``text`` is refused with, or None when it is a module."""
    try:
        module = verify(parse(text))
    except HloParseError as error:
        return error
    assert same_graph(parse(to_text(module)), module)
    return None


@given(st.sampled_from(SMALL + DUMPS), st.data())
def test_any_damage_is_read_or_refused(text: str, data: st.DataObject) -> None:
    text = damaged(text, data)
    note(text)
    start = time.perf_counter()
    error = refusal(text)
    assert time.perf_counter() - start < 20
    if error is not None:
        assert 1 <= error.line <= text.count("\n") + 1
        assert error.column >= 1
        assert len(str(error)) < 2000


@given(st.text(max_size=200))
@example("HloModule")
@example("ENTRY")
@example("ENTRY e {")
def test_any_text_is_read_or_refused(text: str) -> None:
    refusal(text)


def test_time_grows_with_the_length() -> None:
    """Ten times the text takes about ten times as long."""

    def seconds(count: int) -> float:
        lines = "".join(
            f"  %add.{i + 1} = f32[8,128]{{1,0}} add(%x, %{'add' if i else 'x'}.{i}),"
            f' metadata={{op_name="add" source_file="a.py" source_line={i}}}\n'
            for i in range(count)
        )
        lines = lines.replace("%x.0", "%x")
        text = f"HloModule m\n\nENTRY main {{\n  %x = f32[8,128]{{1,0}} parameter(0)\n{lines}}}\n"
        start = time.perf_counter()
        parse(text)
        return time.perf_counter() - start

    seconds(100)
    assert seconds(10_000) < 40 * max(seconds(1000), 0.02)


@pytest.mark.parametrize("depth", [10, 5000])
def test_a_deep_chain_of_computations(depth: int) -> None:
    scalar = Shape(ElementType.F32)
    inner = computation("innermost", ops.neg, scalar)
    for _ in range(depth):
        inner = computation("next", lambda x, c=inner: ops.call(c, [x]), scalar)
    module = Module("deep", inner)
    assert same_graph(verify(parse(to_text(module))), module)


def test_deep_tuples_are_refused() -> None:
    deep = "(" * 5000 + "f32[]" + ")" * 5000
    error = refusal(f"HloModule m\n\nENTRY e {{\n  x = {deep} parameter(0)\n}}\n")
    assert error is not None
    assert "tuples are nested more than" in str(error)
