"""What the real XLA makes of modules on several devices, many at a time, and what we make of them.

judge([Program(module, [x]), …])     fails where the interpreter differs from XLA
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import tracejit as tj
from tests.tolerances import differences
from tracejit.graph import Module
from tracejit.hlo import parse, to_text
from tracejit.verifier import verify

ROOT = Path(__file__).resolve().parents[2]
DEVICES = 8


@dataclass
class Program:
    """A module and an array [devices, …] for each parameter, which has rank 1 at least."""

    module: Module
    arrays: Sequence[np.ndarray]


def run_xla(programs: Sequence[Program]) -> list[list[np.ndarray] | str]:
    """Each program's results, [devices, …], or what XLA says is wrong with it."""
    flag = f"--xla_force_host_platform_device_count={DEVICES}"
    environment = {**os.environ, "XLA_FLAGS": flag, "JAX_PLATFORMS": "cpu"}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        given = [
            (to_text(p.module), p.arrays, p.module.replica_count, p.module.num_partitions)
            for p in programs
        ]
        (folder / "programs").write_bytes(pickle.dumps(given))
        command = [sys.executable, "-m", "tests.replicas.child", name]
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr[-2000:]
        results: list[list[np.ndarray] | str]
        results = pickle.loads((folder / "results").read_bytes())
        return results


def judge(programs: Sequence[Program]) -> None:
    """Compares every program's results with XLA's, and the program with what its text says."""
    for program, expected in zip(programs, run_xla(programs), strict=True):
        text = to_text(program.module)
        assert not isinstance(expected, str), f"XLA refuses\n{text}\n{expected}"
        assert to_text(verify(parse(text))) == text
        made = tj.interpret(program.module, *program.arrays)
        actual = made if isinstance(made, tuple) else (made,)
        for position, (ours, theirs) in enumerate(zip(actual, expected, strict=True)):
            found = differences(ours, theirs)
            assert not found, f"result {position} of\n{text}\n{found}"
