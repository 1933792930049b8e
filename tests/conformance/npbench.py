"""Runs NPBench's NumPy programs (spcl/npbench), unmodified, under `jit`, and times them.

    python -m tests.conformance.npbench PATH [--preset small|S|M|L|paper] [--only NAME ...]
                                             [--limit SECONDS] [--peers jax numba] [--jobs N]

PATH is a checkout. Each program runs in a process of its own, ``--jobs`` of them at a time;
integers and strings among its arguments are static, all numbers where that is refused, else
`autograph=True` is tried (the table says so); arrays that NumPy's run changes are `mutates`. Prints
a table: what came of each program, milliseconds of a call, and the counts.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.conformance.npbench_program import ENGINES, Finding

ROOT = Path(__file__).parents[2]
TRIFLE_SECONDS = 20e-6
"""Programs that run shorter than this need not be faster than NumPy."""


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.npbench")
    parser.add_argument("path", type=Path, help="a checkout of spcl/npbench")
    parser.add_argument("--preset", default="S", help="sizes: small, S, M, L or paper")
    parser.add_argument("--only", nargs="+", default=[], help="names of programs")
    parser.add_argument("--limit", type=float, default=120, help="seconds that a process may take")
    parser.add_argument("--seconds", type=float, default=0.5, help="for timing one function")
    peers = [engine for engine in ENGINES if engine not in ("tracejit", "numpy")]
    parser.add_argument("--jobs", type=int, default=1, help="programs at a time; times get worse")
    parser.add_argument("--peers", nargs="*", default=[], choices=peers, help="to time as well")
    return parser.parse_args(given)


def find(given: argparse.Namespace, name: str, engine: str) -> Finding:
    """What came of a program."""
    what = [str(given.path.resolve()), name, given.preset, engine, str(given.seconds)]
    return finding(["tests.conformance.npbench_program", *what], name, given.limit)


def finding(module: Sequence[str], name: str, limit: float) -> Finding:
    """What a module, which prints it, found; from a process that is ended at the limit."""
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    try:
        child = subprocess.run(
            [sys.executable, "-m", *module],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Finding(name, "too slow", f"more than {limit:.0f} s")
    if child.returncode:
        lines = child.stderr.strip().splitlines() or [f"exit status {child.returncode}"]
        return Finding(name, "failed", lines[-1])
    return Finding(**json.loads(child.stdout.splitlines()[-1]))


def milliseconds(seconds: float) -> str:
    """A time, or nothing for one that was not taken."""
    return f"{seconds * 1e3:.3f}" if seconds else ""


def compared(given: argparse.Namespace, name: str) -> tuple[Finding, list[float]]:
    """What came of a program, and the seconds that NumPy and the peers take for it."""
    ours = find(given, name, "tracejit")
    # In processes of their own: two thread pools in one process stall each other.
    others = [find(given, name, peer).seconds for peer in ("numpy", *given.peers)]
    return ours, others


def main(given: Sequence[str] | None = None) -> int:
    """Runs the programs and prints the table; 0 if all of them are equal."""
    options = arguments(given)
    names = sorted(file.stem for file in (options.path / "bench_info").glob("*.json"))
    names = [name for name in names if not options.only or name in options.only]
    columns = ["ours", "NumPy", *options.peers, "first call"]
    print(f"{'program':26} {'outcome':9}" + "".join(f"{c:>12}" for c in columns) + "  (ms)")
    found, slower = [], []
    with ThreadPoolExecutor(options.jobs) as jobs:
        rows = jobs.map(functools.partial(compared, options), names)
        for name, (ours, others) in zip(names, rows, strict=True):
            if ours.seconds > max(others[0], TRIFLE_SECONDS):
                slower.append(name)
            times = [ours.seconds, *others, ours.first_seconds]
            note = "with autograph " if ours.how == "autograph" else ""
            row = "".join(f"{milliseconds(t):>12}" for t in times)
            print(f"{name:26} {ours.outcome:9}{row}  {note}{ours.reason[:200]}", flush=True)
            found.append(ours)
    counts = Counter(one.outcome for one in found)
    print(f"{len(found)} programs: " + ", ".join(f"{n} {what}" for what, n in counts.items()))
    print(f"slower than NumPy: {' '.join(slower) or 'none'}")
    return 0 if counts["equal"] == len(found) else 1


if __name__ == "__main__":
    sys.exit(main())
