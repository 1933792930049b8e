"""Ranks that save, load, or save for ever until they are killed.

mpiexec -n 4 python -m tests.replicas.checkpoints save FOLDER
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import tracejit as tj
from tracejit import P

WHOLE = np.arange(96.0).reshape(8, 12)


def state_of(step: int) -> dict[str, Any]:
    """The state at a step, spread over all ranks."""
    mesh = tj.make_mesh((tj.distributed.process_count(),), ("i",))
    rank, count = tj.distributed.process_index(), tj.distributed.process_count()
    rows, columns = (tj.NamedSharding(mesh, spec) for spec in (P("i"), P(None, "i")))
    whole = WHOLE + step
    return {
        "rows": tj.make_array_from_process_local_data(rows, np.split(whole, count)[rank]),
        "columns": tj.make_array_from_process_local_data(
            columns, np.split(whole.astype(np.float32), count, 1)[rank]
        ),
        "step": np.int64(step),
    }


def require(state: dict[str, Any], step: int) -> None:
    assert int(state["step"]) == step
    assert (state["rows"].gather() == WHOLE + step).all()
    assert (state["columns"].gather() == WHOLE + step).all()


def main(task: str, folder: str) -> None:
    tj.distributed.initialize()
    if task == "save":
        for step in (3, 12):
            tj.save_checkpoint(folder, step, state_of(step))
    if task == "load":
        require(tj.load_checkpoint(folder, state_of(0)), 12)
        require(tj.load_checkpoint(folder, state_of(0), 3), 3)
    step = 0
    while task == "forever":
        tj.save_checkpoint(folder, step, state_of(step))
        print(f"saved {step}", flush=True)
        step += 1


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
