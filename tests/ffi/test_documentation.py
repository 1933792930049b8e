"""The page on native functions: its sources are compiled by its commands, its examples run."""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.project import checkout

PAGE = (checkout.ROOT / "docs" / "native_functions.md").read_text(encoding="utf-8")
FILE = re.compile(r"^(?://|/\*) (\S+\.(?:cc|c))\b")

pytestmark = [
    pytest.mark.usefixtures("own_targets"),
    pytest.mark.skipif(
        None in map(shutil.which, ("cc", "g++")), reason="needs compilers of C and C++"
    ),
]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.M | re.S)


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for text in (*blocks("cpp"), *blocks("c")):
        name = FILE.match(text)
        assert name is not None, text
        Path(name[1]).write_text(text)
    folder = os.path.dirname(sys.executable)
    environment = os.environ | {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    for command in blocks("bash"):
        subprocess.run(["bash", "-ec", command], env=environment, check=True)
    examples = doctest.DocTestParser().get_doctest("\n".join(blocks("pycon")), {}, "page", None, 0)
    assert doctest.DocTestRunner().run(examples, clear_globs=False).failed == 0
    x = np.array([1, 2, 2], np.float32)
    normalised = examples.globs["normalised"](x)
    np.testing.assert_allclose(normalised, x / np.sqrt((x**2).mean()) + 1, rtol=1e-5)
