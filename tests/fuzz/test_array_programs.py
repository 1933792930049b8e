"""Programs of NumPy's array functions stay in their memory, read none unwritten, and are right."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.fuzz import __main__ as fuzz
from tests.fuzz.array_programs import program
from tests.project import checkout


@pytest.mark.parametrize("seed", [0, 3000])
def test_programs(seed: int) -> None:
    command = [sys.executable, "-m", "tests.fuzz.piece", "arrays", str(seed), "600", "", "out/fuzz"]
    done = subprocess.run(
        [*command, "count=12"], cwd=checkout.ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout[-1500:]}\n{done.stderr[-2000:]}"
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["seed"] for row in rows] == [*range(seed, seed + 12)]
    assert [o["text"] for row in rows for o in row["outcomes"]] == [""] * 12


def test_a_program_that_does_not_end_compiling_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process is ended; the seed is not tried again, and the next one comes."""
    text = "from tests.fuzz.array_programs import ArrayJudge; ArrayJudge(0.01).judge(0)"
    ended = subprocess.run([sys.executable, "-c", text], cwd=checkout.ROOT, check=False)
    assert ended.returncode == -signal.SIGPROF

    class Ended:
        returncode = -signal.SIGPROF

        def communicate(self, timeout: float = 0) -> tuple[str, str]:
            return json.dumps({"seed": 6, "outcomes": []}), ""

    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: Ended())
    seed, rows = fuzz.run_piece("arrays", 6, 1, "", tmp_path)
    assert seed == 8
    assert [(row["kind"], row["where"]) for row in rows] == [("crash", "seed 7")]
    assert "did not end compiling" in rows[0]["text"]


def test_programs_are_drawn_from_their_seed() -> None:
    texts = [program(seed)[0] for seed in range(40)]
    assert texts == [program(seed)[0] for seed in range(40)]
    whole = "".join(texts)
    for part in ("np.repeat", "np.tile", "keepdims", "np.array([", "logaddexp", "np.pad", " @ "):
        assert part in whole, part
    for seed in range(5):
        assert all(x.dtype in (np.float32, np.float64) for x in program(seed)[1])
