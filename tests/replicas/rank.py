"""One rank of MPI: runs the programs of a folder on its own part of their arrays.

mpiexec -n 4 python -m tests.replicas.rank FOLDER
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import tracejit as tj
from tracejit.hlo import parse
from tracejit.runtime.devices.world import begin_mpi


def main(folder: Path) -> None:
    communicator = begin_mpi()
    results = []
    for text, arrays in pickle.loads((folder / "programs").read_bytes()):
        program = tj.compile(parse(text))
        results.append(program(*(array[communicator.number] for array in arrays)))
    (folder / f"results{communicator.number}").write_bytes(pickle.dumps(results))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
