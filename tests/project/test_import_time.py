"""`import tracejit` is quick, and so is the first call of a program that is on disk.

TVM is imported only when something is compiled; of our own modules, those that have to do with it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

LIMIT_SECONDS = 0.3
SCRIPT = """
import sys, time
start = time.process_time()
import tracejit
print(time.process_time() - start)
print(*sys.modules)
"""

# What the package needs comes first: what they import is theirs.
MODULES = """
import sys
import ml_dtypes, numpy as np, optree
theirs = set(sys.modules)
import tracejit as tj
imported = set(sys.modules)

@tj.jit
def f(x):
    return np.tanh(x) * 2.0 + np.sum(x, axis=0)

assert f(np.ones((3, 3))).shape == (3, 3)
print(*(imported - theirs))
print(*(set(sys.modules) - imported))
"""

HEAVY = {"jax", "jaxlib", "matplotlib", "numba", "scipy", "torch", "tvm", "tvm_ffi"}
# What only some functions need: other libraries' modules, then our own.
SELDOM = {
    "importlib.resources",
    "numpy.fft",
    "numpy.random",
    "random",
    "sysconfig",
    "tempfile",
    "tracejit.hlo.parser",
    "tracejit.lax.reductions",
    "tracejit.nn",
    "tracejit.numpy.fft",
    "tracejit.numpy.linalg",
    "tracejit.numpy.sets",
    "tracejit.numpy.sorting",
    "tracejit.runtime.host_op_callback",
    "tracejit.runtime.cache_writer",
    "tracejit.transforms.autograph",
    "tracejit.transforms.gradient",
}


def printed_by(script: str, **variables: str) -> list[str]:
    """The lines that a script prints in a new process."""
    environment = {**os.environ, **variables}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    run = [sys.executable, "-c", script]
    done = subprocess.run(run, env=environment, text=True, capture_output=True, check=True)
    return done.stdout.splitlines()


def import_once(bytecode: Path) -> tuple[float, set[str]]:
    """Processor seconds that the import takes in a new process, and the modules it brings.

    Python keeps what it compiled in ``bytecode``, whatever the environment says.
    """
    seconds, modules = printed_by(SCRIPT, PYTHONPYCACHEPREFIX=str(bytecode))
    return float(seconds), {name.partition(".")[0] for name in modules.split()}


def test_import_is_quick(tmp_path: Path) -> None:
    """Processor time, the least of five: other work on the machine must not decide."""
    assert min(import_once(tmp_path)[0] for _ in range(5)) < LIMIT_SECONDS


def test_import_brings_no_heavy_modules(tmp_path: Path) -> None:
    _, modules = import_once(tmp_path)
    assert "numpy" in modules
    assert modules & HEAVY == set()


@pytest.fixture(scope="module")
def found_on_disk(tmp_path_factory: pytest.TempPathFactory) -> list[set[str]]:
    """What the import brings, and what the first call does of a program that is on disk."""
    folder = tmp_path_factory.mktemp("cache")
    for _ in range(2):  # the first process compiles
        lines = printed_by(MODULES, TRACEJIT_CACHE="1", TRACEJIT_CACHE_DIR=str(folder))
    return [set(line.split()) for line in lines]


def test_import_brings_what_every_program_needs(found_on_disk: list[set[str]]) -> None:
    imported, _ = found_on_disk
    assert imported & SELDOM == set()
    assert "tracejit.numpy" not in imported
    assert "tracejit.backends.numpy.interpreter" not in imported


def test_the_first_call_brings_what_it_needs(found_on_disk: list[set[str]]) -> None:
    _, called = found_on_disk
    assert {"tracejit.numpy.trigonometric", "tracejit.numpy.reduction"} <= called
    assert {name.partition(".")[0] for name in called} & HEAVY == set()
    assert not any(name.startswith("tracejit.backends.tvm") for name in called)
    assert called & SELDOM == set()
