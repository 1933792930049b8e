"""AllReduce of float32 between ranks, beside ``mpi4py``'s own Allreduce on the same arrays.

    python -m tests.benchmarks.collectives [--ranks 2] [--most 64]

Each line is one size: the median of a call of a program that is one AllReduce, of one AllReduce
among eight in a program, and of ``Allreduce`` into an array that exists; taken in turns.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np

import tracejit as tj
from tracejit.hlo import parse

CHAIN = 8
ROUNDS = 7
SECONDS = 0.05
"""How long one turn of one size takes, about."""


def program(size: int, count: int, ranks: int) -> Callable[[np.ndarray], np.ndarray]:
    """``count`` AllReduces, one after the other, of f32[size]."""
    lines = [f"  r0 = f32[{size}] parameter(0)"]
    for n in range(count):
        root = "ROOT " if n == count - 1 else ""
        lines.append(
            f"  {root}r{n + 1} = f32[{size}] all-reduce(r{n}), replica_groups={{}}, to_apply=add"
        )
    body = "\n".join(lines)
    return tj.compile(
        parse(
            f"HloModule reduced, replica_count={ranks}\n"
            "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
            f"  ROOT c = f32[] add(a, b)\n}}\nENTRY e {{\n{body}\n}}"
        )
    )


def measure(most: int) -> None:
    """On a rank; the first one prints."""
    from mpi4py import MPI

    tj.distributed.initialize()
    world = MPI.COMM_WORLD
    if world.rank == 0:
        print("| size | a call, us | in a program, us | Allreduce, us | ratio | in a program |")
        print("| ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    nbytes = 1024
    while nbytes <= most:
        size = nbytes // 4
        given, result = np.zeros(size, np.float32), np.empty(size, np.float32)
        one, chain = program(size, 1, world.size), program(size, CHAIN, world.size)
        tasks: dict[str, tuple[Callable[[], object], int]] = {
            "one": (partial(one, given), 1),
            "chain": (partial(chain, given), CHAIN),
            "mpi": (partial(world.Allreduce, given, result), 1),
        }
        calls = max(1, min(200, int(SECONDS * 5e8 / nbytes)))
        taken: dict[str, list[float]] = {name: [] for name in tasks}
        for turn in range(ROUNDS + 1):
            for name, (task, count) in tasks.items():
                world.Barrier()
                for _ in range(max(1, calls // count)):
                    start = perf_counter()
                    task()
                    if turn:
                        taken[name].append((perf_counter() - start) / count)
        if world.rank == 0:
            us = {name: 1e6 * statistics.median(times) for name, times in taken.items()}
            ratios = us["one"] / us["mpi"], us["chain"] / us["mpi"]
            cells = [*(f"{us[n]:.1f}" for n in tasks), *(f"{r:.2f}" for r in ratios)]
            print(f"| {nbytes >> 10} KiB | {' | '.join(cells)} |", flush=True)
        nbytes *= 4


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.benchmarks.collectives")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--most", type=int, default=64, help="MiB of the largest array")
    options = parser.parse_args()
    if tj.distributed.is_launched():
        measure(options.most << 20)
        return 0
    mpiexec = Path(sysconfig.get_path("scripts")) / "mpiexec"
    command = [str(mpiexec), "-n", str(options.ranks), sys.executable, "-m"]
    command += ["tests.benchmarks.collectives", "--most", str(options.most)]
    return subprocess.run(command).returncode


if __name__ == "__main__":
    sys.exit(main())
