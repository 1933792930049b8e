"""Runs pyhpc-benchmarks (dionhaefner/pyhpc-benchmarks) and times them.

    python -m tests.conformance.pyhpc PATH [--size ELEMENTS ...] [--peers jax numba pytorch]

PATH is a checkout. Each program runs in two ways: its NumPy file, unmodified, under `jit`, and its
JAX file with tracejit in JAX's place. Both, and the peers' own files, run in processes of their
own, timed in turns. Prints a table: what came of each program, milliseconds of a call, and how the
faster of the two ways compares with each peer.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack

from tests.conformance.contestants import Contestant, Finding, race
from tests.conformance.npbench import TURNS, milliseconds, summary
from tests.conformance.pyhpc_program import FILES, PROGRAMS
from tests.options import checkout, count, seconds, threads

OURS = ("tracejit", "as jax")


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.pyhpc")
    parser.add_argument(
        "path", type=checkout("benchmarks"), help="a checkout of dionhaefner/pyhpc-benchmarks"
    )
    parser.add_argument("--size", type=count, nargs="+", default=[65536], help="elements")
    parser.add_argument("--limit", type=seconds, default=300, help="seconds of a process")
    parser.add_argument("--seconds", type=seconds, default=1.0, help="for timing one function")
    most = len(os.sched_getaffinity(0))
    parser.add_argument("--threads", type=threads, default=most, help="of each engine")
    parser.add_argument(
        "--least", action="store_true", help="the least of the times, for a busy machine"
    )
    peers = [engine for engine in FILES if engine not in (*OURS, "numpy")]
    parser.add_argument("--peers", nargs="*", default=[], choices=peers, help="to time as well")
    return parser.parse_args(given)


def found(
    options: argparse.Namespace, name: str, size: int, engines: Sequence[str]
) -> dict[str, Finding]:
    """What came of a program, by engine."""
    with ExitStack() as stack:
        contestants = {}
        for engine in engines:
            what = [str(options.path.resolve()), name, str(size), engine]
            module = ["tests.conformance.pyhpc_program", *what]
            made = Contestant(module, name, options.limit, options.threads)
            contestants[engine] = stack.enter_context(made)
        race(list(contestants.values()), options.seconds, TURNS)
        return {engine: one.finding for engine, one in contestants.items()}


def main(given: Sequence[str] | None = None) -> int:
    """Runs the programs and prints the table; 0 if each is equal in one way at least."""
    options = arguments(given)
    engines = [*OURS, "numpy", *options.peers]
    print(f"{'program':26} {'size':>9}" + "".join(f"{e:>12}" for e in engines) + "  (ms)")
    equal = True
    times: dict[str, dict[str, tuple[float, float]]] = {engine: {} for engine in engines}
    for size in options.size:
        for name in PROGRAMS:
            all_found = found(options, name, size, engines)
            seconds = {
                engine: one.least if options.least else one.seconds
                for engine, one in all_found.items()
            }
            row = "".join(f"{milliseconds(t):>12}" for t in seconds.values())
            notes = [
                f"{engine}: {one.outcome}, {one.reason[:100]}"
                for engine, one in all_found.items()
                if one.outcome != "equal"
            ]
            print(f"{name:26} {size:9}{row}  {'; '.join(notes)}", flush=True)
            equal &= any(all_found[ours].outcome == "equal" for ours in OURS)
            best = min((seconds[ours] for ours in OURS if seconds[ours]), default=0.0)
            for engine in engines[len(OURS) :]:
                if best and seconds[engine]:
                    times[engine][f"{name} {size}"] = best, seconds[engine]
    print("\n".join(line for engine in engines for line in summary(engine, times[engine])))
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
