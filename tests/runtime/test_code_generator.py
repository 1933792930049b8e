"""Whatever needs machine code asks another process, which may die: TVM is not loaded here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.runtime.processes import python
from tracejit.api import pass_changes
from tracejit.backends.target import CPU
from tracejit.errors import CompilationError
from tracejit.runtime import compile_server, roofline
from tracejit.transforms.jit.hooks import planned_bytes

X: np.ndarray = np.linspace(0.0, 1.0, 64 * 64).reshape(64, 64)


def product(x: Any) -> Any:
    return np.tanh(x @ x)


def tune(folder: Path) -> None:
    tj.jit(product, tune=0.01)(X)


def export(folder: Path) -> None:
    tj.jit(product).lower(X).compile().export(folder / "model.so")


def explain(folder: Path) -> None:
    roofline._measured()  # which kernels are compared with


def optimise(folder: Path) -> None:
    tj.jit(product).lower(X).as_text(stage="optimized")


def bisect(folder: Path) -> None:
    pass_changes(tj.jit(product).lower(X).module)


def plan(folder: Path) -> None:
    planned_bytes(tj.jit(product).lower(X).module, CPU)


WAYS = {
    "compile.optimized_text": optimise,
    "compile.changes_of": bisect,
    "tuning_candidates": tune,
    "export.files": export,
    "cpu.roofline": explain,
    "memory_estimate": plan,
}


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Another process compiles, of which none is left behind."""
    monkeypatch.setattr(compile_server, "is_wanted", lambda: True)
    monkeypatch.setattr(compile_server, "_idle", [])
    yield
    while compile_server._idle:
        compile_server._idle.pop().end()


def planting(monkeypatch: pytest.MonkeyPatch, asked: str, planted: str) -> None:
    """This module of the compiler, or function of one, does something else, and dies of it."""
    task_of = compile_server.task_of

    def other(module: str, name: str, *arguments: Any, **options: Any) -> Any:
        if f".{asked}." in f"{module}.{name}.":
            return task_of("tests.runtime.planted", planted)
        return task_of(module, name, *arguments, **options)

    monkeypatch.setattr(compile_server, "task_of", other)


@pytest.mark.parametrize("asked", WAYS)
@pytest.mark.parametrize(
    ("planted", "said"), [("abort", "SIGABRT.*planted"), ("segfault", "SIGSEGV")]
)
def test_a_death_is_an_error(
    asked: str, planted: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planting(monkeypatch, asked, planted)
    with pytest.raises(CompilationError, match=f"(?s)the compiler died of it.*{said}"):
        WAYS[asked](tmp_path)


def test_a_way_to_write_a_kernel_that_the_compiler_dies_of_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEJIT_CACHE_DIR", str(tmp_path))
    planting(monkeypatch, "tuning_candidates.library_of", "abort")
    found = tj.jit(product, tune=0.2)(X)
    np.testing.assert_allclose(found, product(X), rtol=1e-12)


SCRIPT = """
import sys, numpy as np, tracejit as tj
f = tj.jit(lambda x: np.tanh(x @ x), tune=0.3)
x = np.linspace(0.0, 1.0, 4096).reshape(64, 64)
assert np.allclose(f(x), np.tanh(x @ x))
compiled = f.lower(x).compile()
compiled.export(sys.argv[1])
compiled.explain(x, measure=True)
assert " tanh(" in compiled.as_text()
print("tvm" in sys.modules)
"""


def test_tvm_is_never_loaded_here(tmp_path: Path) -> None:
    """Calling, tuning, exporting, the optimised text, measuring kernels and the machine."""
    printed = python(SCRIPT, str(tmp_path / "model.so"), TRACEJIT_CACHE_DIR=str(tmp_path))
    assert printed == "False"
