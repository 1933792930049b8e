"""Ranks of which one goes wrong in the third of five steps.

mpiexec -n 2 python -m tests.replicas.faulty raises
"""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

import numpy as np

import tracejit as tj
from tracejit import P, lax


def print_slowly(kind: Any, error: Any, traceback: Any) -> None:
    """An exception's hook that takes longer than it takes to tell the others of the exception."""
    time.sleep(1)
    sys.__excepthook__(kind, error, traceback)


def main(fault: str) -> None:
    if fault == "slow":
        sys.excepthook = print_slowly
    tj.distributed.initialize()
    rank, count = tj.distributed.process_index(), tj.distributed.process_count()
    mesh = tj.make_mesh((count,), ("i",))
    is_faulty = rank == count - 1

    def step(x: np.ndarray) -> Any:
        return lax.psum(x, "i")  # line 35

    def other(x: np.ndarray) -> Any:
        return lax.pmax(x, "i")  # line 38

    steps = [tj.shard_map(f, mesh=mesh, in_specs=P(), out_specs=P()) for f in (step, other)]
    x = np.ones(1000)
    shorter = np.ones(999)
    for function, given in ((steps[0], x), (steps[0], shorter), (steps[1], x)):
        function(given)  # compiled by all, before one goes wrong
    for number in range(5):
        if is_faulty and number == 2:
            if fault in ("raises", "slow"):
                raise ValueError("a bad batch")
            if fault == "dies":
                os.kill(os.getpid(), signal.SIGKILL)
            if fault == "hangs":
                time.sleep(600)
            if fault == "ends":
                return
            if fault == "shapes":
                x = shorter
            if fault == "order":
                steps.reverse()
        steps[0](x)
    print(f"rank {rank} is through", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
