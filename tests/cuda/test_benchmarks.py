"""The benchmarks' programs for CUDA devices: predicted anywhere, timed where there is a device."""

from __future__ import annotations

import pytest

import tracejit as tj
from tests.benchmarks import cuda
from tests.cuda.emulation import Emulator


def test_without_a_device_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tj, "devices", list)
    said: list[str] = []
    assert cuda.main([], said.append) == 1
    assert said[0].startswith("There is no CUDA device to time programs on")


def test_predicted_and_timed(emulated: Emulator) -> None:
    said: list[str] = []
    assert cuda.main(["--predict", "--tiny", "--only", "softmax"], said.append) == 0
    assert said[0] == cuda.HEAD
    assert len(said) > 1
    assert all(line.endswith(" us") for line in said[1:])
    assert cuda.main(["--tiny", "--only", "softmax"], said.append) == 0
    assert any(line.endswith("a call") for line in said)
