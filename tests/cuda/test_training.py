"""The training scripts on the emulated device: a few steps, with the CPU's losses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.cuda.emulation import Emulator
from tests.notebooks import scripts


def test_digits_train_end_to_end(
    emulated: Emulator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The script itself, with fewer images: two steps, then the accuracy on what it did not see."""
    script = scripts.load("train_digits")
    every = script.load(0)
    few = script.Digits(
        every.images[:16], every.labels[:16], every.test_images[:4], every.test_labels[:4]
    )
    monkeypatch.setattr(script, "load", lambda seed: few)
    monkeypatch.setattr(script, "BATCH", 8)
    before = emulated.launches
    losses = {}
    for target in ("cpu", "cuda"):
        script.main(epochs=1, output=tmp_path / target, target=target)
        losses[target] = np.loadtxt(tmp_path / target / "losses.txt")
    assert emulated.launches > before + 40
    assert losses["cuda"].shape == (2,)
    np.testing.assert_allclose(losses["cuda"], losses["cpu"], rtol=1e-4)


def test_the_quickstart(emulated: Emulator) -> None:
    script = scripts.load("quickstart")
    before = emulated.launches
    ours, theirs = script.main(steps=3, target="cuda"), script.main(steps=3)
    assert emulated.launches > before
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    assert ours[-1] < ours[0]
