"""Ranks of MPI: what goes wrong is named by all, checkpoints are whole, scripts train together."""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import tracejit as tj
from tests.notebooks import scripts
from tests.replicas import kills
from tests.replicas.mpi import ROOT, launcher, mpiexec
from tracejit.errors import ArgumentError

pytestmark = pytest.mark.mpi

FAULTS = {
    "raises": r"rank 0 waits for what never comes: rank 1 raised ValueError: a bad batch",
    "slow": r"rank 0 waits for what never comes: rank 1 raised ValueError: a bad batch",
    "ends": r"rank 0 waits for what never comes: rank 1 has ended",
    "shapes": r"rank 0 waits for what never comes: rank 1 is at another op, or at one of another",
    "order": r"rank 0 waits for what never comes: rank 1 is at another op, or at one of another",
    "hangs": r"rank 0 waits for what never comes: rank 1 did not answer in 6 s",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_goes_wrong_is_named(fault: str) -> None:
    variables = {"TRACEJIT_COLLECTIVE_TIMEOUT": "6" if fault == "hangs" else "60"}
    done = mpiexec(2, "-m", "tests.replicas.faulty", fault, variables=variables)
    assert done.returncode != 0, done.stdout
    assert "is through" not in done.stdout
    assert re.search(rf"all_reduce: {FAULTS[fault]}.* \(faulty.py:35\)", done.stderr), done.stderr


def test_a_rank_that_is_killed_ends_all() -> None:
    done = mpiexec(2, "-m", "tests.replicas.faulty", "dies")
    assert done.returncode != 0
    assert "is through" not in done.stdout


@pytest.mark.parametrize("ranks", [2, 4])
def test_killed_at_any_moment_all_end(ranks: int) -> None:
    """A few of the hundred that `python -m tests.replicas.kills` runs."""
    for seed in range(2):
        kills.kill_one([launcher()], ranks, random.Random(seed))


def test_killed_on_another_host_all_end() -> None:
    launcher()
    try:
        with kills.two_hosts() as start:
            kills.kill_one(start, 2, random.Random(0))
    except PermissionError as error:
        pytest.skip(f"there are no two hosts here: {error}")


def test_checkpoints_are_read_by_other_numbers_of_ranks(tmp_path: Path) -> None:
    module = "tests.replicas.checkpoints"
    for ranks, task in ((2, "save"), (4, "load"), (1, "load")):
        done = mpiexec(ranks, "-m", module, task, tmp_path)
        assert done.returncode == 0, done.stderr[-3000:]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-00000003", "step-00000012"]


def test_killed_at_any_moment_the_last_whole_checkpoint_remains(tmp_path: Path) -> None:
    launcher()
    command = [sys.executable, "-m", "tests.replicas.checkpoints", "forever", str(tmp_path)]
    like = {"rows": np.zeros((8, 12)), "columns": np.zeros((8, 12), np.float32), "step": np.int64()}
    for saved in (1, 4, 9):
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(saved):
                line = process.stdout.readline()
            process.send_signal(signal.SIGKILL)
        found = tj.load_checkpoint(tmp_path, like)
        assert int(found["step"]) >= int(line.split()[1])
        np.testing.assert_array_equal(found["rows"], np.arange(96.0).reshape(8, 12) + found["step"])


def test_checkpoints_of_something_else_are_refused(tmp_path: Path) -> None:
    tj.save_checkpoint(tmp_path, 1, {"w": np.zeros(3)})
    with pytest.raises(ArgumentError, match=r"\['w'\] in .* is float64\[3\], not float64\[4\]"):
        tj.load_checkpoint(tmp_path, {"w": np.zeros(4)})
    with pytest.raises(ArgumentError, match="holds another tree"):
        tj.load_checkpoint(tmp_path, {"v": np.zeros(3)})
    with pytest.raises(FileNotFoundError, match="no checkpoint of step 2"):
        tj.load_checkpoint(tmp_path, {"w": np.zeros(3)}, 2)


def test_training_on_ranks_is_training_on_one(tmp_path: Path) -> None:
    """The losses of the digits' network in double precision, with the same batches."""
    losses = []
    for ranks in (1, 2):
        done = mpiexec(
            ranks, "notebooks/train_digits.py", "--epochs", "1", "--double", "--output", tmp_path
        )
        assert done.returncode == 0, done.stderr[-3000:]
        losses.append(np.loadtxt(tmp_path / "losses.txt"))
    np.testing.assert_allclose(losses[1], losses[0], 0, 1e-5)
    assert losses[0][-1] < 0.3 * losses[0][0]


def test_scripts_on_ranks_and_on_threads() -> None:
    done = mpiexec(4, "notebooks/stencil.py", "--steps", "20")
    assert done.returncode == 0, done.stderr[-3000:]
    plate = scripts.load("stencil").main(20, 1, 1)
    assert f"heat {plate.sum():.9f}" in done.stdout
    np.testing.assert_array_equal(scripts.load("stencil").main(20, 2, 2), plate)
    one, two = (scripts.load("tensor_parallel").main(3, 0, devices) for devices in (1, 2))
    np.testing.assert_allclose(two, one, 1e-9)


def test_programs_of_a_mesh_on_four_ranks() -> None:
    done = mpiexec(4, "-m", "tests.sharding.ranks")
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize("ranks", [2, 4])
def test_annotated_modules(ranks: int) -> None:
    done = mpiexec(ranks, "-m", "tests.partition.ranks")
    assert done.returncode == 0, done.stderr[-3000:]


def test_more_ranks_than_processors() -> None:
    """They wait by sleeping, so that the others run."""
    done = mpiexec(8, "-m", "tests.replicas.crowd")
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("is through") == 8


def test_a_launcher_of_another_mpi_is_refused() -> None:
    """Each of its processes would be alone, and train on all of the data."""
    program = "import tracejit as tj; tj.distributed.initialize()"
    environment = {**os.environ, "PMIX_SIZE": "4"}
    for name in ("PMI_SIZE", "PMI_RANK", "PMI_FD", "OMPI_COMM_WORLD_SIZE"):
        environment.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "PMIx's launcher started 4 processes" in done.stderr
    assert "each of them is alone; use its own mpiexec" in done.stderr


def test_without_a_launcher_a_mesh_says_how_to_start() -> None:
    program = "import tracejit as tj; tj.distributed.initialize(); tj.make_mesh((4,), ('batch',))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert "takes 4 devices, and there are 1; start with mpiexec -n 4" in done.stderr


def test_a_shared_cache_that_somebody_spoils(tmp_path: Path) -> None:
    """Entries vanish, are cut short, are damaged, or become folders while four ranks read them."""
    variables = {"TRACEJIT_CACHE_DIR": str(tmp_path / "cache"), "PYTHONWARNINGS": "ignore"}
    chance, is_over = random.Random(0), threading.Event()

    def spoil() -> None:
        spoiled = tmp_path / "spoiled"
        while not is_over.wait(0.01):
            with contextlib.suppress(OSError, IndexError, ValueError):
                entry = chance.choice([*(tmp_path / "cache").iterdir()])
                data = bytearray(entry.read_bytes())
                if chance.random() < 0.3:
                    entry.unlink()
                    entry.mkdir()
                elif chance.random() < 0.5:
                    spoiled.write_bytes(data[: chance.randrange(len(data))])
                    spoiled.replace(entry)
                else:
                    data[chance.randrange(len(data))] ^= 255
                    spoiled.write_bytes(data)
                    spoiled.replace(entry)

    spoiler = threading.Thread(target=spoil)
    spoiler.start()
    try:
        done = mpiexec(4, "-m", "tests.replicas.first_calls", variables=variables)
    finally:
        is_over.set()
        spoiler.join()
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("is through") == 4
