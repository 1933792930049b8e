"""Compiled programs on ranks of MPI: the interpreter's results bit for bit."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

import tracejit as tj
from tests.replicas import collected
from tests.replicas.judge import Program
from tests.replicas.mpi import launcher, mpiexec
from tests.replicas.test_compiled import leaves
from tests.replicas.test_random import drawing, programs
from tracejit.hlo import to_text

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize("ranks", [2, 4])
def test_every_op(ranks: int, tmp_path: Path) -> None:
    launcher()
    collection = collected.each(ranks)
    texts = [(to_text(program.module), program.arrays) for program in collection]
    (tmp_path / "programs").write_bytes(pickle.dumps(texts))
    done = mpiexec(ranks, "-m", "tests.replicas.rank", tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    parts = [pickle.loads((tmp_path / f"results{n}").read_bytes()) for n in range(ranks)]
    for number, program in enumerate(collection):
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


def test_random_programs_on_threads_and_ranks(tmp_path: Path) -> None:
    """Of any groups and types: threads, ranks and the interpreter agree bit for bit."""
    launcher()
    drawn: list[Program] = []

    @drawing(120)
    @given(programs())
    def draw(program: Program) -> None:
        if len(program.arrays[0]) == 4 and len(drawn) < 24:
            drawn.append(program)

    draw()
    assert len(drawn) > 12
    pickled = pickle.dumps([(to_text(program.module), program.arrays) for program in drawn])
    (tmp_path / "programs").write_bytes(pickled)
    done = mpiexec(4, "-m", "tests.replicas.rank", tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    parts = [pickle.loads((tmp_path / f"results{n}").read_bytes()) for n in range(4)]
    for number, program in enumerate(drawn):
        wanted = np.asarray(tj.interpret(program.module, *program.arrays))
        on_threads = tj.compile(program.module)(*program.arrays)
        on_ranks = np.stack([part[number] for part in parts])
        for made in (on_threads, on_ranks):
            assert made.dtype == wanted.dtype
            np.testing.assert_array_equal(made, wanted, err_msg=to_text(program.module))
