"""Layouts in HLO text: of arguments and results, of copies, and under a Bitcast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.judge import parse_xla, run_xla
from tracejit.errors import HloParseError

X = np.arange(6, dtype=np.float32).reshape(2, 3)
Y = np.arange(12, dtype=np.float32).reshape(3, 4)
COLUMNS = np.asfortranarray(X)

PRODUCT = """
HloModule product, entry_computation_layout={(f32[2,3]{0,1}, f32[3,4]{1,0})->(f32[2,4]{0,1}, f32[2,3]{1,0})}

ENTRY %main (x: f32[2,3], y: f32[3,4]) -> (f32[2,4], f32[2,3]) {
  %x = f32[2,3]{1,0} parameter(0)
  %y = f32[3,4]{1,0} parameter(1)
  %dot = f32[2,4]{1,0} dot(%x, %y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %negate = f32[2,3]{1,0} negate(%x)
  ROOT %tuple = (f32[2,4]{1,0}, f32[2,3]{1,0}) tuple(%dot, %negate)
}
"""  # noqa: E501


def test_arguments_and_results_lie_as_the_header_says() -> None:
    compiled = tj.compile(tj.hlo.parse(PRODUCT))
    for argument in (COLUMNS, X, np.repeat(X, 2, axis=0)[::2]):
        product, negated = compiled(argument, Y)
        np.testing.assert_array_equal(product, X @ Y)
        np.testing.assert_array_equal(negated, -X)
        assert product.flags.f_contiguous
        assert negated.flags.c_contiguous


def test_column_major_arguments_are_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = tj.compile(tj.hlo.parse(PRODUCT))
    passed: list[np.ndarray] = []
    run = compiled.program.run

    def spy(arguments: Sequence[Any]) -> list[np.ndarray] | None:
        passed.extend(arguments)
        return run(arguments)

    monkeypatch.setattr(compiled.program, "run", spy)
    product, _ = compiled(COLUMNS, Y)
    assert len(passed) == 2  # taken at once, none had to be made to fit
    assert np.shares_memory(passed[0], COLUMNS)
    assert passed[1] is Y
    np.testing.assert_array_equal(product, X @ Y)


def test_any_order_of_dimensions() -> None:
    text = """
    HloModule turned

    ENTRY main {
      x = f32[2,3,4]{0,2,1} parameter(0)
      ROOT y = f32[2,3,4]{1,0,2} negate(x)
    }
    """
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    result = tj.compile(tj.hlo.parse(text))(x)
    np.testing.assert_array_equal(result, -x)
    assert result.transpose(2, 0, 1).flags.c_contiguous


def test_a_parameter_that_is_returned_otherwise_is_copied() -> None:
    text = """
    HloModule turned, entry_computation_layout={(f32[2,3]{1,0})->f32[2,3]{0,1}}

    ENTRY main {
      ROOT x = f32[2,3] parameter(0)
    }
    """
    module = tj.hlo.parse(text)
    assert "ROOT %copy.1 = f32[2,3]{0,1} copy(" in str(module)
    result = tj.compile(module)(X)
    np.testing.assert_array_equal(result, X)
    assert result.flags.f_contiguous


def test_text_keeps_layouts_both_ways() -> None:
    ours = str(tj.hlo.parse(PRODUCT))
    assert str(tj.hlo.parse(ours)) == ours
    header = PRODUCT.strip().splitlines()[0]
    assert header in ours
    assert header in parse_xla(ours)


def test_constants_are_written_by_index_whatever_their_layout() -> None:
    text = """
    HloModule constants

    ENTRY main {
      ROOT c = s32[2,3]{0,1} constant({ {1, 2, 3}, {4, 5, 6} })
    }
    """
    module = tj.hlo.parse(text)
    wanted = np.array([[1, 2, 3], [4, 5, 6]], np.int32)
    np.testing.assert_array_equal(tj.interpret(module), wanted)
    np.testing.assert_array_equal(tj.compile(module)(), wanted)
    assert "s32[2,3]{0,1} constant({ {1, 2, 3}, {4, 5, 6} })" in str(module)


@pytest.mark.parametrize(
    ("source", "target", "wanted"),
    [
        ("f32[2,3]{1,0}", "f32[3,2]{1,0}", [[0, 1], [2, 3], [4, 5]]),
        ("f32[2,3]{0,1}", "f32[3,2]{1,0}", [[0, 3], [1, 4], [2, 5]]),
        ("f32[2,3]{0,1}", "f32[3,2]{0,1}", [[0, 4], [3, 2], [1, 5]]),
        ("f32[2,3]{1,0}", "f32[6]{0}", [0, 1, 2, 3, 4, 5]),
        ("f32[2,3]{0,1}", "f32[6]{0}", [0, 3, 1, 4, 2, 5]),
    ],
)
def test_a_bitcast_reads_memory(source: str, target: str, wanted: list[Any]) -> None:
    text = f"""
    HloModule cast

    ENTRY main {{
      x = {source} parameter(0)
      b = {target} bitcast(x)
      ROOT n = {target} add(b, b)
    }}
    """
    module = tj.hlo.parse(text)
    expected = 2 * np.array(wanted, np.float32)
    np.testing.assert_array_equal(tj.interpret(module, X), expected)
    np.testing.assert_array_equal(tj.compile(module)(X), expected)
    np.testing.assert_array_equal(tj.interpret(tj.hlo.parse(str(module)), X), expected)


def test_other_values_do_not_depend_on_layouts() -> None:
    text = """
    HloModule mixed

    ENTRY main {
      x = f32[2,3]{0,1} parameter(0)
      t = f32[3,2]{0,1} transpose(x), dimensions={1,0}
      r = f32[6]{0} reshape(t)
      c = f32[3,2]{1,0} copy(t)
      s = f32[3,2]{0,1} add(t, c)
      ROOT out = (f32[6]{0}, f32[3,2]{0,1}) tuple(r, s)
    }
    """
    module = tj.hlo.parse(text)
    wanted = X.T.reshape(6), 2 * X.T
    for results in (
        tj.interpret(module, X),
        tj.compile(module)(X),
        run_xla(module, X),
    ):
        for result, expected in zip(results, wanted, strict=True):
            np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    "layout",
    [
        "{(f32[3,2]{1,0})->f32[2,3]{1,0}}",
        "{(f32[2,3]{1,0})->f32[3,2]{1,0}}",
        "{(f32[2,3]{1,0}, s32[])->f32[2,3]{1,0}}",
        "{(f32[2,3]{1,1})->f32[2,3]{1,0}}",
        "{(f32[2,3]{1,0}) f32[2,3]{1,0}}",
        "{f32[2,3]{1,0}->f32[2,3]{1,0}}",
    ],
)
def test_headers_that_do_not_fit_are_refused(layout: str) -> None:
    entry = "ENTRY e { x = f32[2,3] parameter(0) }"
    with pytest.raises(HloParseError, match="line 1, column"):
        tj.hlo.parse(f"HloModule m, entry_computation_layout={layout}\n{entry}")
