"""``python -m tracejit``: what each command prints, saves and refuses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import tracejit as tj
from tests.hlo.mlir import verify_stablehlo
from tracejit.commandline import main
from tracejit.equality import same_graph

TEXT = """HloModule example

ENTRY main {
  x = f32[3] parameter(0)
  y = f32[3] parameter(1)
  zero = f32[] constant(0)
  product = f32[3] multiply(x, y)
  ROOT total = f32[] reduce(product, zero), dimensions={0}, to_apply=add
}

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
"""
PAIR = """HloModule pair

ENTRY main {
  x = bf16[2] parameter(0)
  n = s32[] parameter(1)
  ROOT t = (bf16[2], s32[]) tuple(x, n)
}
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "example.hlo"
    path.write_text(TEXT)
    return str(path)


@pytest.fixture
def pair(tmp_path: Path) -> str:
    path = tmp_path / "pair.hlo"
    path.write_text(PAIR)
    return str(path)


Capture = pytest.CaptureFixture[str]


def test_show_hlo(file: str, capsys: Capture) -> None:
    assert main(["show", file]) == 0
    assert same_graph(tj.hlo.parse(capsys.readouterr().out), tj.hlo.parse(TEXT))


def test_show_stablehlo(file: str, capsys: Capture) -> None:
    assert main(["show", file, "--as", "stablehlo"]) == 0
    verify_stablehlo(capsys.readouterr().out)


def test_show_summary(file: str, capsys: Capture) -> None:
    assert main(["show", file, "--as", "summary"]) == 0
    assert capsys.readouterr().out == (
        "module example\n"
        "parameter 0: f32[3]\n"
        "parameter 1: f32[3]\n"
        "result 0: f32[]\n"
        "argument bytes: 24\n"
        "result bytes: 4\n"
        "constant bytes: 4\n"
        "computations: 2\n"
        "instructions: 8\n"
        "  parameter: 4\n"
        "  add: 1\n"
        "  constant: 1\n"
        "  multiply: 1\n"
        "  reduce: 1\n"
    )


def test_show_graph(file: str, capsys: Capture) -> None:
    assert main(["show", file, "--as", "graph"]) == 0
    drawn = capsys.readouterr().out
    assert drawn.startswith('digraph "example" {')
    assert drawn.count(" -> ") == 7
    assert drawn.count("subgraph") == 2


@pytest.mark.parametrize("flags", [[], ["--interpret"]], ids=["compiled", "interpreted"])
def test_run_on_files(file: str, tmp_path: Path, capsys: Capture, flags: list[str]) -> None:
    np.save(tmp_path / "x.npy", np.array([1, 2, 3], np.float32))
    np.savez(tmp_path / "y.npz", anything=np.array([4, 5, 6], np.float32))
    given = [str(tmp_path / "x.npy"), str(tmp_path / "y.npz")]
    assert main(["run", file, *given, *flags]) == 0
    assert capsys.readouterr().out == "result 0: float32[]\n32.0\n"
    output = str(tmp_path / "out.npy")
    assert main(["run", file, *given, *flags, "-o", output]) == 0
    assert capsys.readouterr().out == ""
    assert np.load(output) == 32


def test_run_on_random_arguments_is_repeatable(pair: str, tmp_path: Path) -> None:
    saved = []
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        output = str(tmp_path / f"{name}.npz")
        assert main(["run", pair, "--interpret", "--seed", seed, "-o", output]) == 0
        saved.append(np.load(output)["result0"].tobytes())
    assert saved[0] == saved[1] != saved[2]


def test_run_on_bfloat16_from_a_file(pair: str, tmp_path: Path) -> None:
    array = np.array([1.5, -2], ml_dtypes.bfloat16)
    np.save(tmp_path / "x.npy", array)
    output = str(tmp_path / "out.npz")
    assert main(["run", pair, str(tmp_path / "x.npy"), "--interpret", "-o", output]) == 0
    assert np.load(output)["result0"].tobytes() == array.tobytes()


def test_grad(file: str, capsys: Capture) -> None:
    assert main(["grad", file, "--wrt", "1", "--value"]) == 0
    made = tj.hlo.parse(capsys.readouterr().out)
    x, y = np.array([1, 2, 3], np.float32), np.array([4, 5, 6], np.float32)
    value, gradient = tj.interpret(made, x, y)
    assert value == 32
    assert list(gradient) == [1, 2, 3]


def test_grad_with_cotangents(pair: str, tmp_path: Path) -> None:
    output = tmp_path / "grad.hlo"
    assert main(["grad", pair, "--cotangents", "-o", str(output)]) == 0
    made = tj.hlo.parse(output.read_text())
    assert [str(p.shape) for p in made.entry.parameters] == ["bf16[2]", "s32[]", "bf16[2]"]


def test_compile_says_how_long_it_took(file: str, capsys: Capture) -> None:
    assert main(["compile", file, "--repeat", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["module", "compiled", "ran", "fastest"]


def test_export(file: str, tmp_path: Path) -> None:
    output = tmp_path / "example.mlir"
    assert main(["export", file, "--to", "stablehlo", "-o", str(output)]) == 0
    verify_stablehlo(output.read_text())


def test_what_is_wrong_is_said_in_one_line(
    file: str, pair: str, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "bad.hlo").write_text("HloModule m\n\nENTRY f {\n  x = f33[] parameter(0)\n}\n")
    (tmp_path / "model.mlir").write_text("module @m {}\n")
    (tmp_path / "bytes.hlo").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "text.npy").write_text("no array")
    np.save(tmp_path / "wrong.npy", np.zeros(4, np.float32))
    wrong = {
        "No such file or directory": ["show", str(tmp_path / "missing.hlo")],
        "line 4, column 7: element type f33 is not known": ["show", str(tmp_path / "bad.hlo")],
        "from_stablehlo: ": ["run", str(tmp_path / "model.mlir")],
        "is not text": ["show", str(tmp_path / "bytes.hlo")],
        "argument 0 must be f32[3]; the file has float32[4]": [
            "run",
            file,
            str(tmp_path / "wrong.npy"),
        ],
        "holds no arrays": ["run", file, str(tmp_path / "text.npy")],
        "takes 2 arguments; 3 arrays": ["run", file, *[str(tmp_path / "wrong.npy")] * 3],
        "must end in .npy or .npz": ["run", pair, "--interpret", "-o", "results.txt"],
        "holds one array, not 2": ["run", pair, "--interpret", "-o", "results.npy"],
        "must return one real number": ["grad", pair],
        "has 2 parameters, and no number 5": ["grad", file, "--wrt", "5"],
        "parameter 1 of module pair is s32[]": ["grad", pair, "--wrt", "1", "--cotangents"],
        "target must be 'cpu', 'cpu:PROCESSOR'": ["compile", file, "--target", "abacus"],
    }
    for message, arguments in wrong.items():
        assert main(arguments) == 1
        captured = capsys.readouterr()
        assert captured.out == ""
        assert message in captured.err
        assert captured.err.startswith("tracejit: ")
        assert captured.err.count("\n") == 1
        assert "test_commandline.py" not in captured.err


@pytest.mark.parametrize(
    "arguments", [[], ["frobnicate"], ["show"], ["compile", "f", "--repeat", "0"]]
)
def test_wrong_usage(arguments: list[str], capsys: Capture) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith("usage: python -m tracejit")


def test_as_a_process() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "tracejit", "show", "-", "--as", "summary"],
        input=TEXT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout.startswith("module example\n")
    refused = subprocess.run(
        [sys.executable, "-m", "tracejit", "show", "-"],
        input="HloModule m {",
        capture_output=True,
        text=True,
        check=False,
    )
    assert (refused.returncode, refused.stderr) == (
        1,
        "tracejit: HLO text, line 1, column 13: expected the name of a computation, found '{'\n",
    )


def test_explain(file: str, capsys: Capture) -> None:
    assert main(["explain", file]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("module example\nkernel")
    assert "computes multiply, reduce" in printed
    assert "24 B" in printed
    assert "5 flops" in printed


def test_explain_measured_on_arrays(file: str, tmp_path: Path, capsys: Capture) -> None:
    np.savez(tmp_path / "in.npz", np.ones(3, np.float32), np.ones(3, np.float32))
    saved = tmp_path / "report.txt"
    assert main(["explain", file, str(tmp_path / "in.npz"), "--measure", "-o", str(saved)]) == 0
    assert "attained" in saved.read_text()
    assert main(["explain", str(tmp_path / "missing.hlo")]) == 1
    assert "missing.hlo" in capsys.readouterr().err


def test_stats(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "example.hlo"
    file.write_text(TEXT)
    assert main(["stats", str(file)]) == 0
    lines = capsys.readouterr().out.splitlines()
    counts = {line.split()[0]: line.split()[1:3] for line in lines[1:] if line}
    assert counts["example"][1] == "5"
    assert counts["Mul"] == ["1", "3"]
    assert counts["Reduce"] == ["1", "2"]
    assert counts["arguments"][0] == "24"
    assert any(line.startswith("peak") for line in lines)


def test_diff(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second, third = (tmp_path / f"{name}.hlo" for name in "abc")
    first.write_text(TEXT)
    second.write_text(TEXT.replace("product", "other"))
    changed = "shifted = f32[3] add(product, y)\n  ROOT total = f32[] reduce(shifted,"
    third.write_text(TEXT.replace("ROOT total = f32[] reduce(product,", changed))
    assert main(["diff", str(first), str(second)]) == 0
    assert capsys.readouterr().out == "the graphs are equal\n"
    assert main(["diff", str(first), str(third)]) == 0
    lines = capsys.readouterr().out.splitlines()[3:]
    added = [line for line in lines if line.startswith("+")]
    assert [line for line in added if " add(" in line]
    assert not [line for line in lines if line[0] in "+-" and "multiply =" in line]


@pytest.mark.parametrize("ending", ["pb", "mlirbc", "mlir"])
def test_a_damaged_file_is_named(ending: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / f"cut.{ending}"
    path.write_bytes(b"ML\xefR\x06 cut")
    assert main(["show", str(path)]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"tracejit: {path}: ")
    assert error.count("\n") == 1
