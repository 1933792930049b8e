"""Runs pyhpc-benchmarks (dionhaefner/pyhpc-benchmarks) and times them.

    python -m tests.conformance.pyhpc PATH [--size ELEMENTS ...] [--peers jax numba pytorch]

PATH is a checkout. Each program runs in two ways: its NumPy file, unmodified, under `jit`, and its
JAX file with tracejit in JAX's place. Both, and the peers' own files, run in processes of their
own. Prints a table: what came of each program, milliseconds of a call, and the ratios' mean.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import geometric_mean

from tests.conformance.npbench import finding, milliseconds
from tests.conformance.npbench_program import Finding
from tests.conformance.pyhpc_program import FILES, PROGRAMS

OURS = ("tracejit", "as jax")


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.pyhpc")
    parser.add_argument("path", type=Path, help="a checkout of dionhaefner/pyhpc-benchmarks")
    parser.add_argument("--size", type=int, nargs="+", default=[65536], help="elements")
    parser.add_argument("--limit", type=float, default=300, help="seconds that a process may take")
    parser.add_argument("--seconds", type=float, default=1.0, help="for timing one function")
    peers = [engine for engine in FILES if engine not in (*OURS, "numpy")]
    parser.add_argument("--peers", nargs="*", default=[], choices=peers, help="to time as well")
    return parser.parse_args(given)


def find(options: argparse.Namespace, name: str, size: int, engine: str) -> Finding:
    """What came of a program."""
    what = [str(options.path), name, str(size), engine, str(options.seconds)]
    return finding(["tests.conformance.pyhpc_program", *what], name, options.limit)


def main(given: Sequence[str] | None = None) -> int:
    """Runs the programs and prints the table; 0 if each is equal in one way at least."""
    options = arguments(given)
    engines = [*OURS, "numpy", *options.peers]
    print(f"{'program':26} {'size':>9}" + "".join(f"{e:>12}" for e in engines) + "  (ms)")
    equal = True
    ratios: list[float] = []
    for size in options.size:
        for name in PROGRAMS:
            found = {engine: find(options, name, size, engine) for engine in engines}
            row = "".join(f"{milliseconds(one.seconds):>12}" for one in found.values())
            notes = [
                f"{engine}: {one.outcome}, {one.reason[:100]}"
                for engine, one in found.items()
                if one.outcome != "equal"
            ]
            print(f"{name:26} {size:9}{row}  {'; '.join(notes)}", flush=True)
            equal &= any(found[ours].outcome == "equal" for ours in OURS)
            if "jax" in found and found["as jax"].seconds and found["jax"].seconds:
                ratios.append(found["as jax"].seconds / found["jax"].seconds)
    if ratios:
        print(f"JAX's file, ours over JAX: geometric mean {geometric_mean(ratios):.2f}")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
