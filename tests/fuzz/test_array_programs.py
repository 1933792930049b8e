"""Programs of NumPy's array functions stay in their memory, read none unwritten, and are right."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from tests.fuzz.array_programs import program
from tests.project import checkout


@pytest.mark.parametrize("seed", [0, 3000])
def test_programs(seed: int) -> None:
    command = [sys.executable, "-m", "tests.fuzz.array_programs", "--seed", str(seed)]
    done = subprocess.run(
        [*command, "--count", "12", "--seconds", "600"],
        cwd=checkout.ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout[-1500:]}\n{done.stderr[-2000:]}"
    assert "done: 12 programs, 0 failed" in done.stdout


def test_programs_are_drawn_from_their_seed() -> None:
    texts = [program(seed)[0] for seed in range(40)]
    assert texts == [program(seed)[0] for seed in range(40)]
    whole = "".join(texts)
    for part in ("np.repeat", "np.tile", "keepdims", "np.array([", "logaddexp", "np.pad", " @ "):
        assert part in whole, part
    for seed in range(5):
        assert all(x.dtype in (np.float32, np.float64) for x in program(seed)[1])
