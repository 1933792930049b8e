"""Meshes, `shard_map` and collective functions: JAX's results and derivatives on four devices."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.sharding import cases

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def of_jax(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[np.ndarray]]:
    path = tmp_path_factory.mktemp("jax") / "results"
    command = [sys.executable, "-m", "tests.sharding.cases", str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    made: dict[str, list[np.ndarray]] = pickle.loads(path.read_bytes())
    return made


def test_results_and_derivatives(of_jax: dict[str, list[np.ndarray]]) -> None:
    ours: dict[str, Any] = cases.of_tracejit()
    assert ours.keys() == of_jax.keys()
    for name, value in ours.items():
        leaves = [np.asarray(leaf) for leaf in tj.tree.leaves(value)]
        for mine, theirs in zip(leaves, of_jax[name], strict=True):
            assert mine.shape == theirs.shape, name
            np.testing.assert_allclose(mine, theirs, 1e-9, 1e-9, err_msg=name)
