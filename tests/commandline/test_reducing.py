"""``reduce``, ``bisect`` and ``to-c``: on faults that are planted, and on what they refuse."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from pathlib import Path
from shutil import which

import numpy as np
import pytest

import tracejit as tj
from tests.commandline.test_commandline import TEXT
from tracejit import api
from tracejit.commandline import main
from tracejit.graph import Computation, Module
from tracejit.passes.delta_debugging import minimal, reduced
from tracejit.traversal import called_computations, instructions

Capture = pytest.CaptureFixture[str]

PROGRAM = """HloModule program

body {
  s = (s32[], f32[4,6]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[4,6] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  c = f32[4,6] cosine(x)
  e = f32[4,6] exponential(c)
  ROOT t = (s32[], f32[4,6]) tuple(j, e)
}

condition {
  s = (s32[], f32[4,6]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT p = pred[] compare(i, n), direction=LT
}

ENTRY main {
  x = f32[4,6] parameter(0)
  y = f32[4,6] parameter(1)
  zero = s32[] constant(0)
  m = f32[4,6] multiply(x, y)
  state = (s32[], f32[4,6]) tuple(zero, m)
  loop = (s32[], f32[4,6]) while(state), condition=condition, body=body
  last = f32[4,6] get-tuple-element(loop), index=1
  a = f32[4,6] abs(last)
  ROOT l = f32[4,6] log(a)
}
"""


def opcodes(module: Module) -> list[str]:
    return [i.op.opcode for c in called_computations(module) for i in instructions(c)]


def test_a_part_inside_of_a_loop_is_found() -> None:
    asked: list[Module] = []

    def has_cosine(module: Module) -> bool:
        asked.append(module)
        return "cosine" in opcodes(module)

    made = reduced(tj.hlo.parse(PROGRAM), has_cosine)
    assert opcodes(made) == ["parameter", "cosine"]
    assert made.entry.root.array_shape.dimensions == (1, 1)
    assert len(asked) < 60


def test_minimal_parts_are_found_wherever_they_are() -> None:
    items = instructions(tj.hlo.parse(PROGRAM).entry)
    for wanted in ({0}, {7}, {1, 6}, {0, 4, 8}):
        parts = [items[n] for n in wanted]
        assert set(minimal(items, {*parts}.issubset)) == set(parts)


def test_bisect_prints_the_part_that_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    file = tmp_path / "program.hlo"
    file.write_text(PROGRAM)
    right = api.interpret

    def wrong(module: Module | Computation, *arrays: np.ndarray) -> object:
        made = right(module, *arrays)
        if isinstance(module, Computation):
            return made
        if "abs" in opcodes(module):
            made = tj.tree.map(lambda leaf: leaf + 1, made)
        return made

    monkeypatch.setattr(api, "interpret", wrong)
    assert main(["bisect", str(file), "-o", str(tmp_path / "part.hlo")]) == 0
    assert "the smallest part that differs from the interpreter" in capsys.readouterr().out
    part = tj.hlo.parse((tmp_path / "part.hlo").read_text())
    assert opcodes(part) == ["parameter", "abs"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reduce", "--while", "false"], "the command exits with 1 on"),
        (["reduce", "--while", "sleep 9;", "--timeout", "1"], "took longer than 1 seconds on"),
        (["bisect", "--against", "abacus"], "target must be 'cpu'"),
        (["to-c", "--name", "for"], "'for' cannot be the name of a function in C"),
    ],
)
def test_what_cannot_be(
    arguments: Sequence[str], message: str, tmp_path: Path, capsys: Capture
) -> None:
    file = tmp_path / "example.hlo"
    file.write_text(TEXT)
    command, *options = arguments
    assert main([command, str(file), *options]) == 1
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_ops_without_loops_are_named(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "eigen.hlo"
    lowered = tj.jit(lambda matrix: np.linalg.eigvals(matrix)).lower(np.eye(4))
    file.write_text(lowered.as_text())
    assert main(["to-c", str(file)]) == 1
    assert "linalg.eig" in capsys.readouterr().err


@pytest.mark.skipif(not which("cc"), reason="there is no C compiler")
@pytest.mark.parametrize("text", [TEXT, PROGRAM], ids=["reduction", "loop"])
def test_c_computes_what_the_interpreter_computes(text: str, tmp_path: Path) -> None:
    source, library = tmp_path / "program.c", tmp_path / "program.so"
    (tmp_path / "program.hlo").write_text(text)
    assert main(["to-c", str(tmp_path / "program.hlo"), "-o", str(source)]) == 0
    flags = ["-std=gnu11", "-O2", "-Wall", "-Wno-unused-variable", "-shared", "-fPIC"]
    done = subprocess.run(
        ["cc", *flags, source, "-o", library, "-lm"], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    module = tj.hlo.parse(text)
    rng = np.random.default_rng(0)
    arrays = [
        rng.standard_normal(p.array_shape.dimensions).astype(np.float32)
        for p in module.entry.parameters
    ]
    expected = tj.interpret(module, *arrays)
    made = np.empty_like(expected)
    addresses = [array.ctypes.data_as(ctypes.c_void_p) for array in (*arrays, made)]
    assert ctypes.CDLL(str(library)).program(*addresses) == 0
    np.testing.assert_allclose(made, expected, rtol=1e-6)


def test_special_numbers_are_drawn(tmp_path: Path) -> None:
    file, output = tmp_path / "e.hlo", tmp_path / "e.npy"
    file.write_text("HloModule e\n\nENTRY f {\n  ROOT x = f32[1000] parameter(0)\n}\n")
    assert main(["run", str(file), "--random", "special", "-o", str(output)]) == 0
    drawn = np.load(output)
    assert all(found.any() for found in (np.isnan(drawn), np.isposinf(drawn), drawn == 0))
    assert np.isfinite(drawn).sum() > 700
