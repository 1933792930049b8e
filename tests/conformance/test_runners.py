"""The runners of others' tests notice what passes, what differs and what cannot be run."""

from __future__ import annotations

from pathlib import Path

from tests.conformance import hlo
from tests.conformance.stablehlo import outcomes
from tests.conformance.stablehlo_modules import modules

CHECKS = """func.func @right() {
  %0 = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %1 = stablehlo.add %0, %0 : tensor<2xi32>
  check.expect_eq_const %1, dense<[2, 4]> : tensor<2xi32>
  check.expect_eq %0, %0 : tensor<2xi32>
  func.return
}

// -----

func.func @wrong() {
  %0 = stablehlo.constant dense<1.5> : tensor<f32>
  check.expect_almost_eq_const %0, dense<2.5> : tensor<f32>
  func.return
}

// -----

func.func @nothing() {
  func.return
}

// -----

func.func @no_mlir() {
  %0 = frobnicate
}
"""


def test_stablehlo(tmp_path: Path) -> None:
    (tmp_path / "checks.mlir").write_text(CHECKS)
    found = [list(outcomes(source, compiled=False)) for source in modules([tmp_path])]
    assert found[0] == [("interpreted", "")]
    assert found[1][0][1].startswith("differs from what is expected, as XLA does: 1 of 1")
    assert found[2] == [("not usable", "checks nothing")]
    assert found[3][0][0] == "not usable"


def test_hlo(tmp_path: Path) -> None:
    body = "ENTRY e {\n  x = f32[] parameter(0)\n}\n"
    (tmp_path / "one.hlo").write_text(f"HloModule m\n\n{body}")
    (tmp_path / "two_test.cc").write_text(f'x = R"({body})"; y = R"hlo(HloModule m\nf)hlo";')
    found = {name: hlo.refusal(text) for name, text in hlo.texts([tmp_path])}
    assert list(found) == ["one.hlo", "two_test.cc#0", "two_test.cc#1"]
    assert [bool(reason) for reason in found.values()] == [False, False, True]
