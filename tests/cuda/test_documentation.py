"""The page on NVIDIA GPUs: its programs run on the emulated device."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cuda.emulation import Emulator
from tests.project import checkout

PAGE = (checkout.ROOT / "docs" / "gpu.md").read_text(encoding="utf-8")


@pytest.mark.usefixtures("own_targets")
def test_what_the_page_says(
    emulated: Emulator, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "page.py"
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    path.write_text("\n".join(blocks), encoding="utf-8")
    exec(compile(path.read_text(encoding="utf-8"), path, "exec"), {"__name__": "page"})
    assert capsys.readouterr().out.split() == ["15.9893", "1000.0"]
