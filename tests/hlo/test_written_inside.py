"""Text that people write: operands and bodies in place, tuples of constants, things left out."""

from __future__ import annotations

import numpy as np
import pytest

from tests.judge import parse_xla
from tracejit import interpret
from tracejit.equality import same_graph
from tracejit.errors import HloParseError
from tracejit.hlo import parse, to_text

X = np.arange(4, dtype=np.float32)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (
            "ROOT r = add(f32[4] parameter(0), multiply(f32[4] parameter(1), f32[4] parameter(2)))",
            7,
        ),
        ("a = f32[4] parameter(0)\n ROOT r = add(a, add(a, add(a, a)))", 4),
        ("ROOT r = f32[4] broadcast(f32[] constant(3))", 3),
        ("ROOT r = f32[] constant(3)", 3),
        (
            "p = f32[4] parameter(0)\n ROOT r = dot(p, p), lhs_contracting_dims={0}, "
            "rhs_contracting_dims={0}, operand_precision={HIGH,Highest}",
            4,
        ),
        (
            "p = f32[4,4] broadcast(f32[] constant(1))\n "
            "q = f32[4,1,4] broadcast(f32[] constant(1))\n"
            " ROOT r = dot(p, q), lhs_batch_dims={1}, lhs_contracting_dims={0}, "
            "rhs_batch_dims={2}, rhs_contracting_dims={0}",
            4,
        ),
        (
            "ROOT r = f32[4] map(f32[4] parameter(0)), to_apply={"
            "ROOT n = negate(f32[] parameter(0))}",
            -1,
        ),
        ('ROOT r = f32[] constant(3), metadata={source_line=5, op_type="const"}', 3),
        (
            "ROOT r = get-tuple-element((f32[4], s32[]) tuple(f32[4] parameter(0), s32[] "
            "constant(1))), index=0",
            1,
        ),
        (
            "c = (f32[2,1], (s32[], f32[])) constant(( { {1}, {2} }, (4, 5) ))\n"
            "t = (s32[], f32[]) get-tuple-element(c), index=1\n"
            "ROOT r = f32[] get-tuple-element(t), index=1",
            5,
        ),
        (
            "c = (pred[], ()) constant((true, ()))\n"
            "p = pred[] get-tuple-element(c), index=0\n ROOT r = f32[] convert(p)",
            1,
        ),
        (
            "ROOT r = f32[4] map(f32[4] parameter(0)), dimensions={0}, to_apply={\n"
            " ROOT n = negate(f32[] parameter(0))\n}",
            -1,
        ),
        (
            "ROOT r = f32[4] conditional(s32[] constant(1), f32[4] parameter(0), "
            "f32[4] parameter(1)), branch_computations={{ROOT n = negate(f32[4] parameter(0))}, "
            "{x = f32[4] parameter(0)\n ROOT n = add(x, x)}}",
            4,
        ),
    ],
)
def test_what_is_written_inside(entry: str, expected: int) -> None:
    text = f"HloModule inside:\nENTRY e {{\n {entry}\n}}"
    module = parse(text)
    assert same_graph(parse(to_text(module)), module)
    assert same_graph(parse(parse_xla(text)), module)
    arrays = [np.full(4, i + 1, np.float32) for i in range(len(module.entry.parameters))]
    assert np.unique(interpret(module, *arrays)).tolist() == [expected]


def test_an_async_op_may_call_a_body_that_has_no_name() -> None:
    text = """HloModule m
    ENTRY main {
      p0 = f32[4] parameter(0)
      s = ((f32[4]), f32[4], s32[]) call-start(p0), to_apply={
        ROOT n = negate(f32[4] parameter(0))
      }
      ROOT d = f32[4] call-done(s)
    }"""
    np.testing.assert_array_equal(interpret(parse(text), X), -X)
    np.testing.assert_array_equal(interpret(parse(to_text(parse(text))), X), -X)


def test_async_ops_of_one_name_in_two_computations() -> None:
    """What they call is made for each, though their names are the same."""
    text = """HloModule m
    negated {
      p = f32[4] parameter(0)
      s = ((f32[4]), f32[4], s32[]) negate-start(p)
      ROOT d = f32[4] negate-done(s)
    }
    ENTRY main {
      p = f32[4] parameter(0)
      s = ((f32[4]), f32[4], s32[]) abs-start(p)
      d = f32[4] abs-done(s)
      ROOT c = f32[4] call(d), to_apply=negated
    }"""
    module = parse(text)
    np.testing.assert_array_equal(interpret(module, X), -X)
    np.testing.assert_array_equal(interpret(parse(to_text(module)), X), -X)


def test_an_outfeed_sends_what_it_is_given() -> None:
    text = """HloModule m
    ENTRY main {
      p = f32[4] parameter(0)
      t = token[] after-all()
      ROOT o = token[] outfeed(p, t)
    }"""
    assert "outfeed_shape=f32[4]{0}" in to_text(parse(text))


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (
            "ROOT r = add(f32[4] parameter(0), plus(f32[4] parameter(1)))",
            "opcode plus is not known",
        ),
        ("ROOT r = f32[4] transpose(transpose(f32[4] parameter(0)))", "needs the attribute"),
        ("ROOT r = f32[4] broadcast(f32[2] parameter(0))", "broadcast"),
        ("ROOT r = (f32[], f32[]) constant((1))", "a tuple of 2 elements is not"),
        ("ROOT r = (f32[], f32[]) constant({1, 2})", "parentheses of its own"),
        ("ROOT r = (f32[], f32[]) constant((1, {2}))", "braces of the constant do not nest"),
        ("ROOT r = token[] constant(1)", "a constant of shape token"),
        ("ROOT r = f32[] " + "negate(" * 60 + "f32[] constant(1)" + ")" * 60, "more than 50 deep"),
    ],
)
def test_what_is_refused_inside(entry: str, reason: str) -> None:
    with pytest.raises(HloParseError, match=reason):
        parse(f"HloModule m\nENTRY e {{\n {entry}\n}}")
