"""Runs Python under the launcher of the MPI library that mpi4py uses."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def launcher() -> str:
    """The path of ``mpiexec``; skips the test, with the reason, where there is none."""
    if importlib.util.find_spec("mpi4py") is None:
        pytest.skip("mpi4py is not installed (pip install 'tracejit[mpi]')")
    found = shutil.which("mpiexec", path=sysconfig.get_path("scripts")) or shutil.which("mpiexec")
    if found is None:
        pytest.skip("there is no mpiexec (pip install mpich)")
    return found


def environment(variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables of ranks of one thread, which find the checkout."""
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return {
        **os.environ,
        "PYTHONPATH": paths,
        "TVM_NUM_THREADS": "1",
        # Open MPI's launcher asks for these on small machines and in containers.
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        **(variables or {}),
    }


def mpiexec(
    ranks: int,
    *arguments: str | Path,
    variables: Mapping[str, str] | None = None,
    timeout: float = 400.0,
    options: Sequence[str] = (),
) -> subprocess.CompletedProcess[str]:
    """``python *arguments`` on each rank, from the checkout."""
    command = [launcher(), *options, "-n", str(ranks), sys.executable, *map(str, arguments)]
    given = environment({"TRACEJIT_COLLECTIVE_TIMEOUT": "60", **(variables or {})})
    return subprocess.run(
        command, cwd=ROOT, env=given, capture_output=True, text=True, timeout=timeout
    )
