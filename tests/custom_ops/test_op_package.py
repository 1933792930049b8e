"""The package of ops in docs/op_package is built by pip, installed and used."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project import checkout

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

PROGRAM = """
import numpy as np, tracejit as tj, my_ops
x = np.array([-1, 2, -3], np.float32)
f = tj.jit(tj.value_and_grad(lambda x: my_ops.leaky(x, slope=0.5).sum()))
value, gradient = f(x)
print(value, gradient.tolist(), tj.vmap(lambda x: my_ops.leaky(x, 0.25))(x[None]).tolist())
"""


def test_the_package_of_ops(tmp_path: Path) -> None:
    source = shutil.copytree(checkout.ROOT / "docs" / "op_package", tmp_path / "source")
    environment = os.environ | {"PYTHONPATH": f"{tmp_path / 'installed'}:{checkout.ROOT}"}
    options = ["--no-build-isolation", "--no-deps", "--no-index", "--target", "installed"]
    command = [sys.executable, "-m", "pip", "install", "-q", *options, str(source)]
    built = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "0.0 [0.5, 1.0, 0.5] [[-0.25, 2.0, -0.75]]\n"
