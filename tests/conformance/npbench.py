"""Runs NPBench's NumPy programs (spcl/npbench), unmodified, under `jit`, and times them.

    python -m tests.conformance.npbench PATH [--preset small|S|M|L|paper] [--only NAME ...]
                                             [--limit SECONDS] [--peers jax numba]
                                             [--threads N] [--jobs N]

PATH is a checkout. Each engine runs a program in a process of its own, timed in turns with the
others, ``--jobs`` programs at a time;
integers and strings among its arguments are static, all numbers where that is refused, else
`autograph=True` is tried (the table says so); arrays that NumPy's run changes are `mutates`. Prints
a table: what came of each program, milliseconds of a call and of the first one, the counts, and
where the peers are faster.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from statistics import geometric_mean

from tests.conformance.contestants import Contestant, Finding, race
from tests.conformance.npbench_program import ENGINES
from tests.options import checkout, count, seconds, threads

TURNS = 8
TRIFLE_SECONDS = 20e-6
"""Programs that run shorter than this need not be faster than NumPy."""


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.npbench")
    parser.add_argument("path", type=checkout("bench_info"), help="a checkout of spcl/npbench")
    parser.add_argument("--preset", default="S", help="sizes: small, S, M, L or paper")
    parser.add_argument("--only", nargs="+", default=[], help="names of programs")
    parser.add_argument(
        "--limit", type=seconds, default=120, help="seconds that the first call may take"
    )
    parser.add_argument("--seconds", type=seconds, default=1.0, help="for timing one function")
    most = len(os.sched_getaffinity(0))
    parser.add_argument("--threads", type=threads, default=most, help="of each engine")
    parser.add_argument(
        "--least", action="store_true", help="the least of the times, for a busy machine"
    )
    peers = [engine for engine in ENGINES if engine not in ("tracejit", "numpy")]
    parser.add_argument("--jobs", type=count, default=1, help="programs at a time; times get worse")
    parser.add_argument("--peers", nargs="*", default=[], choices=peers, help="to time as well")
    made = parser.parse_args(given)
    made.names = sorted(file.stem for file in (made.path / "bench_info").glob("*.json"))
    unknown = sorted({*made.only} - {*made.names})
    if unknown or not made.names:
        parser.error(f"no programs called {', '.join(unknown)}" if unknown else "no programs")
    return made


def milliseconds(seconds: float) -> str:
    """A time, or nothing for one that was not taken."""
    return f"{seconds * 1e3:.3f}" if seconds else ""


def compared(given: argparse.Namespace, name: str) -> dict[str, Finding]:
    """What came of a program, by engine."""
    with ExitStack() as stack:
        # In processes of their own: two thread pools in one process stall each other.
        contestants = {}
        for engine in ("tracejit", "numpy", *given.peers):
            what = [str(given.path.resolve()), name, given.preset, engine]
            module = ["tests.conformance.npbench_program", *what]
            made = Contestant(module, name, given.limit, given.threads)
            contestants[engine] = stack.enter_context(made)
        race(list(contestants.values()), given.seconds, TURNS)
        return {engine: one.finding for engine, one in contestants.items()}


def summary(peer: str, times: dict[str, tuple[float, float]]) -> list[str]:
    """How ours compare with a peer's, by program, in lines to print."""
    ratios = {name: ours / theirs for name, (ours, theirs) in times.items()}
    if not ratios:
        return []
    lines = [f"ours over {peer}: geometric mean {geometric_mean(ratios.values()):.3f}"]
    for bound in (1.0, 1.2):
        worst = sorted((r, n) for n, r in ratios.items() if r > bound)[::-1]
        shown = ", ".join(f"{name} {ratio:.2f}" for ratio, name in worst)
        lines.append(f"  above {bound}, {len(worst)} of {len(ratios)}: {shown or 'none'}")
    return lines


def main(given: Sequence[str] | None = None) -> int:
    """Runs the programs and prints the table; 0 if all of them are equal."""
    options = arguments(given)
    names = [name for name in options.names if not options.only or name in options.only]
    peers = ["numpy", *options.peers]
    columns = ["ours", *peers, "first call", *(f"first {peer}" for peer in options.peers)]
    print(f"{'program':26} {'outcome':9}" + "".join(f"{c:>12}" for c in columns) + "  (ms)")
    counts: Counter[str] = Counter()
    times: dict[str, dict[str, tuple[float, float]]] = {peer: {} for peer in peers}
    slower = []
    with ThreadPoolExecutor(options.jobs) as jobs:
        rows = jobs.map(functools.partial(compared, options), names)
        for name, found in zip(names, rows, strict=True):
            ours = found["tracejit"]
            seconds = {e: one.least if options.least else one.seconds for e, one in found.items()}
            for peer in peers:
                if seconds["tracejit"] and seconds[peer]:
                    times[peer][name] = seconds["tracejit"], seconds[peer]
            if seconds["tracejit"] > max(seconds["numpy"], TRIFLE_SECONDS):
                slower.append(name)
            firsts = [ours.first_seconds, *(found[p].first_seconds for p in options.peers)]
            note = "with autograph " if ours.how == "autograph" else ""
            row = "".join(f"{milliseconds(t):>12}" for t in (*seconds.values(), *firsts))
            print(f"{name:26} {ours.outcome:9}{row}  {note}{ours.reason[:200]}", flush=True)
            counts[ours.outcome] += 1
    print(f"{len(names)} programs: " + ", ".join(f"{n} {what}" for what, n in counts.items()))
    print("\n".join(line for peer in peers for line in summary(peer, times[peer])))
    print(f"slower than NumPy, trifles aside: {' '.join(slower) or 'none'}")
    return 0 if counts["equal"] == len(names) else 1


if __name__ == "__main__":
    sys.exit(main())
