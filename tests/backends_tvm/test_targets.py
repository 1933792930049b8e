"""Targets: names, what they say of a processor, and that nothing runs where it cannot."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.api import place_of
from tracejit.backends.target import CPU, Target
from tracejit.backends.tvm.cpu import processor as cpu
from tracejit.backends.tvm.cpu.processor import Processor, processor_of
from tracejit.commandline.main import main
from tracejit.errors import AttributeValueError, UnsupportedError
from tracejit.runtime.cache import DiskCache

X = np.array([3, 1, 2], np.float32)


def function(x: Any) -> Any:
    return np.sort(x) + np.tanh(x)


def processor(name: str) -> Processor:
    return processor_of(Target(f"cpu:{name}"))


def foreign() -> str:
    """A processor that this machine is not."""
    return "neoverse-n1" if processor("native").architecture == "x86_64" else "x86-64-v3"


@pytest.mark.parametrize(
    ("name", "architecture", "vector_bytes", "registers", "has_fma", "converts_halves"),
    [
        ("x86-64", "x86_64", 16, 16, False, False),
        ("x86-64-v2", "x86_64", 16, 16, False, False),
        ("sandybridge", "x86_64", 32, 16, False, False),
        ("x86-64-v3", "x86_64", 32, 16, True, True),
        ("haswell", "x86_64", 32, 16, True, True),
        ("znver3", "x86_64", 32, 16, True, True),
        ("alderlake", "x86_64", 32, 16, True, True),
        ("knl", "x86_64", 32, 16, True, True),  # AVX-512 of another kind
        ("x86-64-v4", "x86_64", 64, 32, True, True),
        ("znver4", "x86_64", 64, 32, True, True),
        ("sapphirerapids", "x86_64", 64, 32, True, True),
        ("neoverse-n1", "aarch64", 16, 32, True, True),
        ("neoverse-v1", "aarch64", 16, 32, True, True),
        ("apple-m1", "aarch64", 16, 32, True, True),
        ("riscv64", "riscv64", 16, 32, True, False),
    ],
)
def test_processors(
    name: str,
    architecture: str,
    vector_bytes: int,
    registers: int,
    has_fma: bool,
    converts_halves: bool,
) -> None:
    found = processor(name)
    assert found.architecture == architecture
    assert (found.vector_bytes, found.registers) == (vector_bytes, registers)
    assert (found.has_fma, found.converts_halves) == (has_fma, converts_halves)
    assert (found.machine.vector_bytes, found.machine.registers) == (vector_bytes, registers)


def test_formats_of_programs() -> None:
    assert processor("apple-m1").triple == "arm64-apple-macosx"
    assert processor("neoverse-v1").triple.startswith("aarch64-unknown-linux")


def test_the_environment_names_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRACEJIT_CPU", raising=False)
    native = processor_of()
    assert native == processor("native")
    assert not native.lacking
    monkeypatch.setenv("TRACEJIT_CPU", "x86-64-v2")
    assert processor_of() == processor("x86-64-v2")
    assert processor("native") == native
    monkeypatch.setenv("TRACEJIT_CPU", "x86 64")
    with pytest.raises(AttributeValueError, match="TRACEJIT_CPU must be a processor's name"):
        processor_of()


@pytest.mark.parametrize("name", ["tpu", "cpu,fast-math", "cpu:", "cpu:haswell,fast-math", "CPU"])
def test_other_forms_of_names(name: str) -> None:
    with pytest.raises(AttributeValueError, match="target must be 'cpu', 'cpu:PROCESSOR'"):
        Target(name).resolved()


@pytest.mark.parametrize(
    ("name", "near"), [("znver33", "znver3"), ("neoverse-m1", "neoverse-n1"), ("i686", "")]
)
def test_unknown_processors(name: str, near: str) -> None:
    with pytest.raises(AttributeValueError, match=f"LLVM knows no such processor.*{near}"):
        tj.jit(function, target=f"cpu:{name}")(X)


def test_each_target_has_an_entry_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRACEJIT_CPU", raising=False)
    module = tj.jit(function).lower(X).module
    targets = [CPU, Target("cpu:x86-64-v2"), Target("cpu:x86-64-v3"), Target("cpu", fast_math=True)]
    keys = {place_of(module, target).key for target in targets}
    assert len(keys) == len(targets)
    monkeypatch.setenv("TRACEJIT_CPU", "x86-64-v2")
    assert place_of(module).key == place_of(module, targets[1]).key


def test_code_for_another_architecture_is_compiled_and_not_run(tmp_path: Path) -> None:
    lowered = tj.jit(function).lower(X)
    compiled = lowered.compile(target=f"cpu:{foreign()}")
    message = f"this machine lacks .*target 'cpu:{foreign()}'"
    with pytest.raises(UnsupportedError, match=message):
        compiled(X)
    with pytest.raises(UnsupportedError, match=message):
        tj.compile(lowered.module, f"cpu:{foreign()}")(X)
    assert "sort" in str(compiled.explain())
    np.testing.assert_array_equal(lowered.compile()(X), function(X))


def test_missing_features_are_found_before_anything_is_loaded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also in a process that finds the program in the disk cache, and loads no compiler."""
    monkeypatch.setattr(cpu, "_lacking", lambda triple, features: ("avx999",))
    cpu._processor.cache_clear()
    monkeypatch.setenv("TRACEJIT_CACHE_DIR", str(tmp_path))
    module = tj.jit(function).lower(X).module
    target = Target("cpu:x86-64-v2")
    with pytest.raises(UnsupportedError, match="this machine lacks avx999"):
        tj.compile(module, target.name)(X)
    cpu._processor.cache_clear()
    found = DiskCache(tmp_path).find(place_of(module, target).key)
    assert found is not None
    assert found.library is None
    file = tmp_path / "module.hlo"
    file.write_text(str(module))
    code = (
        "import sys, numpy as np, tracejit as tj\n"
        f"module = tj.hlo.parse(open({str(file)!r}).read())\n"
        f"try: tj.compile(module, {target.name!r})(np.float32([3, 1, 2]))\n"
        "except NotImplementedError as error: print(error)\n"
        "assert 'tvm' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "this machine lacks avx999" in done.stdout, done.stderr


def test_features_that_code_may_use_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    native = processor("native")
    monkeypatch.setattr(cpu, "_native", lambda: native)
    assert cpu._lacking(native.triple, native.features) == ()
    less = native.features - {"avx2", "sse2", "aes", "slow-3ops-lea"}
    lesser = cpu._Processor(native.triple, native.cpu, (), less, ())
    monkeypatch.setattr(cpu, "_native", lambda: lesser)
    expected = tuple(sorted({"avx2", "sse2"} & native.features))
    assert cpu._lacking(native.triple, native.features) == expected


def test_the_command_line_takes_targets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "module.hlo"
    file.write_text(str(tj.jit(function).lower(X).module))
    assert main(["compile", str(file), "--target", f"cpu:{foreign()}"]) == 1
    assert "this machine lacks" in capsys.readouterr().err
    wrong = ["export", str(file), "-o", str(tmp_path / "m.so"), "--target", "cpu:abacus"]
    assert main(wrong) == 1
    assert "LLVM knows no such processor" in capsys.readouterr().err
