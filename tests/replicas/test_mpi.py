"""Compiled programs on ranks of MPI: the interpreter's results bit for bit."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

import tracejit as tj
from tests.replicas import collected
from tests.replicas.mpi import launcher, mpiexec
from tests.replicas.test_compiled import leaves
from tracejit.hlo import to_text

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize("ranks", [2, 4])
def test_every_op(ranks: int, tmp_path: Path) -> None:
    launcher()
    programs = collected.each(ranks)
    given = [(to_text(program.module), program.arrays) for program in programs]
    (tmp_path / "programs").write_bytes(pickle.dumps(given))
    done = mpiexec(ranks, "-m", "tests.replicas.rank", tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    parts = [pickle.loads((tmp_path / f"results{n}").read_bytes()) for n in range(ranks)]
    for number, program in enumerate(programs):
        expected = leaves(tj.interpret(program.module, *program.arrays))
        for position, wanted in enumerate(expected):
            actual = np.stack([leaves(part[number])[position] for part in parts])
            is_exact = program.module.name not in ("several", "loop")
            tolerance = 0.0 if is_exact else 1e-6
            np.testing.assert_allclose(
                actual.astype(np.complex128),
                wanted.astype(np.complex128),
                tolerance,
                tolerance,
                err_msg=program.module.name,
            )
