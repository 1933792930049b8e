"""The runners of others' tests notice what passes, what differs and what cannot be run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conformance import autograd, hlo, npbench, pyhpc
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
    assert hlo.xla_reads(f"HloModule m\n\n{body}")
    assert not hlo.xla_reads("HloModule m\nf")


PROGRAMS = {
    "scaled": "def kernel(n, alpha, A):\n    A[:n] *= alpha\n",
    "drawn": "import numpy as np\n\n\ndef kernel(n, alpha, A):\n    return A + np.random.rand()\n",
    "chosen": "def kernel(n, alpha, A):\n    return A[A > alpha]\n",
}


def test_npbench(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bench_info").mkdir()
    for name, source in PROGRAMS.items():
        info = {
            "relative_path": name,
            "module_name": name,
            "func_name": "kernel",
            "parameters": {"S": {"n": 3}},
            "init": {
                "func_name": "initialize",
                "input_args": ["n"],
                "output_args": ["alpha", "A"],
            },
            "input_args": ["n", "alpha", "A"],
            "array_args": ["A"],
            "output_args": [],
        }
        (tmp_path / "bench_info" / f"{name}.json").write_text(json.dumps({"benchmark": info}))
        folder = tmp_path / "npbench" / "benchmarks" / name
        folder.mkdir(parents=True)
        initialize = "def initialize(n):\n    return 2.5, np.arange(2.0 * n)\n"
        (folder / f"{name}.py").write_text(f"import numpy as np\n\n\n{initialize}")
        (folder / f"{name}_numpy.py").write_text(source)
    assert npbench.main([str(tmp_path), "--seconds", "0.01"]) == 1
    lines = capsys.readouterr().out.splitlines()
    outcomes = dict(line.split()[:2] for line in lines[1:4])
    assert outcomes == {"scaled": "equal", "drawn": "differs", "chosen": "refused"}
    assert lines[4] == "3 programs: 1 refused, 1 differs, 1 equal"


AUTOGRAD_TEST = """
import autograd.numpy as np
from autograd import grad
from autograd.extend import primitive
from autograd.test_util import check_grads

def test_right():
    check_grads(lambda x: np.sum(np.sin(x) ** 2))(np.ones((2, 3)))
    assert grad(np.tanh)(0.0) == 1.0

def test_wrong():
    check_grads(lambda x: np.sum(np.abs(x)))(np.zeros(3))

def test_internal():
    primitive(np.sin)
"""


def test_autograd(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = {
        "util": "",
        "wrap_util": "def unary_to_nary(op):\n    return lambda f, *a: lambda x: op(f, x, *a)\n",
        "test_util": "from .core import make_jvp, make_vjp, vspace\n\n\n"
        "def check_grads(f):\n    def check(x):\n        space = vspace(x)\n"
        "        v = space.ones()\n        pull, y = make_vjp(f, x)\n"
        "        near = (f(space.add(x, v * 1e-6)) - f(space.add(x, v * -1e-6))) / 2e-6\n"
        "        assert abs(make_jvp(f, x)(v)[1] - near) < 1e-6\n"
        "        assert abs(space.inner_prod(pull(1.0), v) - near) < 1e-6\n"
        "    return check\n",
    }
    (tmp_path / "autograd").mkdir()
    for name, source in names.items():
        (tmp_path / "autograd" / f"{name}.py").write_text(source)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_some.py").write_text(AUTOGRAD_TEST)
    assert autograd.main([str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("failed: test_some.py::test_wrong: ")
    assert lines[-2:] == [
        "not applicable, 1 tests: autograd.extend.primitive",
        "1 passed, 1 failed, 1 not applicable",
    ]


def test_pyhpc(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program whose NumPy file cannot be traced, and whose JAX file can."""
    folder = tmp_path / "benchmarks" / "equation_of_state"
    folder.mkdir(parents=True)
    (tmp_path / "benchmarks" / "__init__.py").touch()
    (folder / "__init__.py").write_text(
        "import numpy\ndef generate_inputs(n):\n    return (numpy.arange(float(n)),)\n"
    )
    (folder / "eos_numpy.py").write_text(
        "import numpy as np\ndef run(x, device='cpu'):\n"
        "    return np.array([float(v) for v in x]) * 2\n"
    )
    (folder / "eos_jax.py").write_text(
        "import jax\nimport jax.numpy as jnp\n"
        "@jax.jit\ndef gsw_dHdT(x):\n    return jnp.zeros_like(x).at[:].set(x) * 2\n"
    )
    monkeypatch.setattr(pyhpc, "PROGRAMS", ["equation_of_state"])
    assert pyhpc.main([str(tmp_path), "--size", "8", "--seconds", "0.01"]) == 0
    printed = capsys.readouterr().out
    assert "tracejit: refused" in printed
    assert "as jax:" not in printed


@pytest.mark.parametrize("arguments", [npbench.arguments, pyhpc.arguments, autograd.arguments])
def test_a_path_that_is_no_checkout(
    arguments: Callable[[list[str]], Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path, says in ((tmp_path, "is no checkout"), (tmp_path / "missing", "there is no")):
        with pytest.raises(SystemExit, match="2"):
            arguments([str(path)])
        assert says in capsys.readouterr().err


def test_a_program_that_npbench_has_not_got(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bench_info").mkdir()
    (tmp_path / "bench_info" / "gemm.json").touch()
    with pytest.raises(SystemExit, match="2"):
        npbench.arguments([str(tmp_path), "--only", "gemm", "gem"])
    assert "no programs called gem" in capsys.readouterr().err
