"""The template of a package of ops in docs/op_package is filled in, built by pip and used."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from jinja2 import Environment, StrictUndefined

from tests.project import checkout

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

TEMPLATE = checkout.ROOT / "docs" / "op_package"
PROGRAM = """
import numpy as np, tracejit as tj, fast_ops2
x = np.array([-1, 2, -3], np.float32)
f = tj.jit(tj.value_and_grad(lambda x: fast_ops2.leaky(x, slope=0.5).sum()))
value, gradient = f(x)
print(value, gradient.tolist(), tj.vmap(lambda x: fast_ops2.leaky(x, 0.25))(x[None]).tolist())
"""


def filled_in(folder: Path, **answers: str) -> Path:
    """The project that cookiecutter makes of the template: it renders names and files by Jinja."""
    jinja = Environment(undefined=StrictUndefined, keep_trailing_newline=True)
    context: dict[str, str] = {}

    def rendered(text: str) -> str:
        return jinja.from_string(text).render(cookiecutter=context)

    for name, default in json.loads((TEMPLATE / "cookiecutter.json").read_text()).items():
        context[name] = answers.get(name, rendered(default))
    for file in filter(Path.is_file, (TEMPLATE / "{{cookiecutter.project}}").rglob("*")):
        if "__pycache__" not in file.parts:
            made = folder / rendered(file.relative_to(TEMPLATE).as_posix())
            made.parent.mkdir(parents=True, exist_ok=True)
            made.write_text(rendered(file.read_text(encoding="utf-8")), encoding="utf-8")
    return folder / context["project"]


def run(*command: str, folder: Path) -> str:
    paths = [str(folder / "installed"), str(checkout.ROOT), str(Path(sys.executable).parent)]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(paths[:2]),
        "PATH": os.pathsep.join([paths[2], os.environ["PATH"]]),  # cmake and ninja of the wheels
    }
    ran = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_the_package_of_ops(tmp_path: Path) -> None:
    project = filled_in(tmp_path, project="Fast-Ops2")
    options = ["--no-build-isolation", "--no-deps", "--no-index", "--target", "installed"]
    run(sys.executable, "-m", "pip", "install", "-q", *options, str(project), folder=tmp_path)
    made = {path.name for path in (tmp_path / "installed").iterdir()}
    assert {"fast_ops2", "fast_ops2-0.1.0.dist-info"} <= made
    assert "Tag: py3-none-" in (tmp_path / "installed/fast_ops2-0.1.0.dist-info/WHEEL").read_text()
    out = run(sys.executable, "-c", PROGRAM, folder=tmp_path)
    assert out == "0.0 [0.5, 1.0, 0.5] [[-0.25, 2.0, -0.75]]\n"
    tested = run(
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        str(project),
        folder=tmp_path,
    )
    assert "1 passed" in tested


def test_folders_that_a_build_asks_for(tmp_path: Path) -> None:
    for option, header in (("header", "tracejit/ops.h"), ("include", "xla/ffi/api/ffi.h")):
        out = run(sys.executable, "-m", "tracejit.ffi", f"--{option}-dir", folder=tmp_path)
        assert (Path(out.strip()) / header).exists()
