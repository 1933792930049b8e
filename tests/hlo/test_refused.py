"""What is not HLO text is refused with line and column, soon, whatever its depth."""

from __future__ import annotations

import pytest

from tests.hlo.test_damage import refusal
from tests.hlo.test_parser import entry
from tracejit.errors import HloParseError
from tracejit.hlo import parse

WRONG = [
    ("", 1, 1, "expected 'HloModule' or a computation"),
    ("a b c", 1, 1, "expected 'HloModule' or a computation"),
    ("HloModule", 1, 10, "expected the name of the module, found the end"),
    ("HloModule m", 1, 12, "a module needs at least one computation"),
    ("HloModule m, color=red", 1, 14, "attribute color of the module is not known"),
    ("HloModule m, replica_count=0", 1, 28, "replica_count must be at least 1"),
    ("HloModule m, is_scheduled=true, is_scheduled=true", 1, 33, "is given twice"),
    (
        entry("x = f32[] parameter(0)") + ", color=red",
        6,
        3,
        "attribute color of a computation is not known",
    ),
    (
        entry("x = f32[2] parameter(0)", "y = f32[2] negate(f32[3] x)"),
        5,
        28,
        "operand x is f32[2], not f32[3]",
    ),
    (
        entry("x = f32[2] parameter(0)").replace("%main {", "%main (x: f32[2]) -> f32[3] {"),
        3,
        7,
        "computation main returns f32[2], not f32[3]",
    ),
    (entry("x = f32[2] parameter(0)", "y = iota(), iota_dimension=0"), 5, 3, "needs the shape of"),
    (entry("x = constant(1)"), 4, 3, "a constant needs its shape"),
    (entry("x = f33[] parameter(0)"), 4, 7, "element type f33 is not known"),
    (entry("x = f6e2m3fn[4] parameter(0)"), 4, 7, "element type f6e2m3fn is not known"),
    (entry("x = (f32[], opaque[]) parameter(0)"), 4, 15, "element type opaque is not supported"),
    (entry("x = b(f32[]) parameter(0)"), 4, 7, "buffers, written b(...), are not supported"),
    (entry("x = (s32[], b(f32[])) parameter(0)"), 4, 15, "buffers, written b(...), are not"),
    (
        entry("x = f32[] parameter(0)", "y = f32[] negate(b(f32[]) x)"),
        5,
        20,
        "buffers, written b(...), are not supported",
    ),
    (entry("x = f32[2 parameter(0)"), 4, 13, "expected ',', found 'parameter'"),
    (entry("x = f32[-2] parameter(0)"), 4, 13, "size -2 is negative"),
    (entry("x = f32[?] parameter(0)"), 4, 11, "dimensions without a bound are not supported"),
    (entry("x = f32[2]{1} parameter(0)"), 4, 13, "layout {1} does not fit rank 1"),
    (entry("x = f32[] frobnicate()"), 4, 13, "opcode frobnicate is not known"),
    (entry("x = f32[] parameter(a)"), 4, 23, "expected the parameter's number, an integer"),
    (entry("x = f32[] parameter(1)"), 3, 7, "has the parameters [1]; they must be numbered from 0"),
    (
        entry("x = f32[] parameter(0)", "y = f32[] parameter(0)", "ROOT z = f32[] add(x, y)"),
        5,
        3,
        "there are two parameters 0",
    ),
    (entry("x = f32[] add(y, y)"), 4, 17, "operand y is not defined before"),
    (
        entry("x = f32[] parameter(0)", "x = f32[] negate(x)"),
        5,
        3,
        "x is defined twice",
    ),
    (
        entry("ROOT x = f32[] parameter(0)", "ROOT y = f32[] negate(x)"),
        5,
        8,
        "there are two ROOT instructions",
    ),
    (entry(), 5, 1, "a computation needs at least one instruction"),
    (
        entry("x = f32[2] parameter(0)", "ROOT y = f32[3] negate(x)"),
        5,
        8,
        "negate makes f32[2] of these operands, not f32[3]",
    ),
    (
        entry("x = f32[2] parameter(0)", "y = s32[2] parameter(1)", "ROOT z = f32[2] add(x, y)"),
        6,
        8,
        "add: element types must be equal; lhs f32[2], rhs s32[2]",
    ),
    (entry("x = f32[] parameter(0)", "y = f32[] add(x)"), 5, 3, "add does not take 1 operands"),
    (entry("x = f32[] parameter(0), color=red"), 4, 27, "attribute color of parameter is not"),
    (
        entry("x = f32[2,3] parameter(0)", "y = f32[3,2] transpose(x)"),
        5,
        3,
        "transpose needs the attribute dimensions",
    ),
    (
        entry("x = f32[2] parameter(0)", "y = f32[2] reverse(x), dimensions={0}, dimensions={0}"),
        5,
        42,
        "attribute dimensions is given twice",
    ),
    (
        entry("x = f32[2] parameter(0)", "y = f32[2] reverse(x), dimensions={zero}"),
        5,
        38,
        "expected a number of the list, an integer, found 'zero'",
    ),
    (
        entry("x = f32[] parameter(0)", "y = f32[] call(x), to_apply=%f"),
        5,
        3,
        "computation f is not defined",
    ),
    (
        entry("x = f32[] parameter(0)", "y = f32[] call(x), to_apply=%main"),
        3,
        7,
        "computation main calls itself",
    ),
    (entry("c = f32[2] constant({1})"), 4, 22, "f32[2] needs 2 elements, the constant has 1"),
    (entry("c = f32[2] constant({1, 2}"), 4, 22, "'(' is never closed"),
    (entry("c = (f32[]) constant({1})"), 4, 23, "a tuple needs parentheses of its own"),
    (entry("x = f32[] parameter(0), metadata={a"), 5, 1, "expected '=', found '}'"),
    (entry("x = f32[] parameter(0), sharding={[}"), 4, 38, "'}' closes nothing"),
    (entry("x = f32[] parameter(0)") + "ENTRY g { x = f32[] parameter(0) }", 6, 1, "two ENTRY"),
    (
        entry("x = f32[] parameter(0)", before="%main { y = f32[] parameter(0) }\n"),
        4,
        1,
        "computation main is defined twice",
    ),
    (
        entry(
            "x = f32[9] parameter(0)",
            "i = f32[] constant(0)",
            "ROOT y = f32[] reduce(x, i), dimensions={0}, to_apply=f",
            before="f {\n p = f32[] parameter(0)\n q = f32[] parameter(1)\n"
            " c = f32[] constant({...})\n ROOT r = f32[] add(p, c)\n}\n",
        ),
        12,
        8,
        "a constant is left out in f, which reduce applies",
    ),
    (
        entry("x = f32[9] parameter(0)", "y = f32[11] pad(x, x), padding=1-1"),
        5,
        34,
        "'1-1' is not a padding such as 0_1x2_0_1",
    ),
    (entry("x = f32[99999999999999999999] parameter(0)"), 4, 11, "expected a size, an integer"),
]


@pytest.mark.parametrize(
    ("text", "line", "column", "message"), WRONG, ids=[message for *_, message in WRONG]
)
def test_refused_with_its_place(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(HloParseError) as caught:
        parse(text)
    assert message in str(caught.value)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert str(caught.value).startswith(f"HLO text, line {line}, column {column}: ")


@pytest.mark.parametrize(
    "text",
    [
        entry("x = " + "(" * 100_000 + " parameter(0)"),
        entry("x = " + "(" * 60 + "f32[]" + ")" * 60 + " parameter(0)"),
        entry("x = f32[] parameter(0), sharding=" + "{" * 100_000),
        entry("x = f32[] parameter(0), sharding=" + "{" * 10_000 + "}" * 10_000),
        entry("c = f32[] constant(" + "(" * 100_000 + ")"),
        entry("c = f32[1] constant(" + "{" * 100_000 + "1" + "}" * 100_000 + ")"),
        entry("x = f32[] parameter(0) /* " + "*" * 100_000),
        entry('x = f32[] parameter(0), metadata={op_name="' + "\\" * 100_001),
        "HloModule m, a=" + "{" * 100_000,
        "HloModule m" + ", a=1" * 50_000,
        " " * 1_000_000,
        "\n" * 100_000 + "x",
    ],
    ids=range(12),
)
def test_deep_and_long_texts_end(text: str) -> None:
    error = refusal(text)
    assert error is None or len(str(error)) < 1000
