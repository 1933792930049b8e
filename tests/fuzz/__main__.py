"""The fuzzers, run long: ``python -m tests.fuzz --minutes 20``.

Random single ops, random graphs, and long loops and repetitions in turn, each judged by XLA, the
interpreter and compiled code, programs of array functions, judged by NumPy, and Python programs
with control flow, hidden state, aliases and exceptions, judged by Python. A module that takes 20
times as long to compile as half of its kind is a failure, too. A process of its own runs them in
pieces, so that a crash or a hang is one more failure and not the end. Prints how many modules there
were of each op, where XLA contradicts itself (it computes a whole otherwise than its ops one by
one, which agree), and what failed; the modules of both are saved as HLO text, their seeds in the
first line. Ctrl-C or SIGTERM end a run with its report. ``--seed S`` starts elsewhere, ``--ops
Pad,Sort`` draws these only, ``--only singles``, ``graphs``, ``repeats``, ``arrays`` or ``programs``
leaves the others out.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.fuzz.compile_times import MOST_SECONDS
from tests.fuzz.judging import CONTRADICTED, REFUSED
from tests.fuzz.table import STEPS

Row = dict[str, str]
"""What a piece says of a module: its name, the kind of outcome, whether that failed, and more."""

_KINDS = ("singles", "graphs", "repeats", "arrays", "programs")
# Seconds that a process runs before a new one takes over, and that one module may take, on a
# machine with much else to do.
_PIECE = 150
_HANG = 600
_HUNG = f"did not end within {_HANG} s"
_SLOW = f"did not end compiling within {MOST_SECONDS:.0f} s of processor time"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**9)
    parser.add_argument("--ops", default=",".join(STEPS))
    parser.add_argument("--only", choices=_KINDS)
    parser.add_argument("--save", type=Path, default=Path("out/fuzz"))
    options = parser.parse_args()

    start = time.monotonic()
    rows: list[Row] = []
    seed = options.seed
    piece = 0
    # A signal ends the run, which reports what it has done.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        while (left := options.minutes * 60 - (time.monotonic() - start)) > 1:
            what = options.only or _KINDS[piece % len(_KINDS)]
            seconds = min(_PIECE, left)
            seed, made = run_piece(what, seed, seconds, options.ops, options.save)
            for row in made:
                if row["failed"]:
                    print(_line(row), flush=True)
            rows += made
            piece += 1
    except KeyboardInterrupt:
        print(f"ended by a signal before seed {seed}")
    report(rows, time.monotonic() - start, options.seed)
    sys.exit(1 if any(row["failed"] for row in rows) else 0)


def _line(row: Row) -> str:
    return f"{row['where']}: {row['name']} {row['kind']}: {row['text']}"


def run_piece(
    what: str, seed: int, seconds: float, names: str, save: Path
) -> tuple[int, list[Row]]:
    """Outcomes of modules from ``seed`` on, and the seed after the last.

    Where the process dies, another judges that seed without asking XLA about the whole: XLA may
    have died of it. Our own code is run again, and would die again.
    """
    seed, rows, ended = _piece(what, seed, seconds, names, save)
    if ended:
        text = f"the process {ended}"
        if ended not in (_HUNG, _SLOW):
            _, again, ended = _piece(what, seed, 0, names, save, "ops")
            rows += again
        if ended:
            rows.append({"name": what, "kind": "crash", "failed": "yes", "text": text})
            rows[-1]["where"] = f"seed {seed}"
        seed += 1
    return seed, [{**row, "what": what} for row in rows]


def _piece(
    what: str, seed: int, seconds: float, names: str, save: Path, *options: str
) -> tuple[int, list[Row], str]:
    """The seed that was not judged, the outcomes before it, and how the process ended if badly."""
    command = [sys.executable, "-m", "tests.fuzz.piece", what, str(seed), str(seconds), names]
    # Every program's accesses to memory are verified before it is compiled.
    environment = {**os.environ, "TRACEJIT_VERIFY": "all"}
    process = subprocess.Popen(
        [*command, str(save), *options], stdout=subprocess.PIPE, text=True, env=environment
    )
    try:
        output, _ = process.communicate(timeout=seconds + _HANG)
        ended = f"ended with {process.returncode}" if process.returncode else ""
        ended = _SLOW if process.returncode == -signal.SIGPROF else ended
    except subprocess.TimeoutExpired:
        process.kill()
        output, _ = process.communicate()
        ended = _HUNG
    except KeyboardInterrupt:
        process.kill()
        raise
    rows: list[Row] = []
    for line in output.splitlines():
        if line.startswith("{"):
            row = json.loads(line)
            seed = row["seed"] + 1
            rows += row["outcomes"]
    return seed, rows, ended


def report(rows: Sequence[Row], seconds: float, seed: int) -> None:
    """Prints counts of modules and of outcomes, XLA's contradictions, then all failures."""
    _print_counts([row["name"] for row in rows])
    print("refused, by XLA or (Python programs) by us, because")
    _print_counts([row["text"] for row in rows if row["kind"] == REFUSED])
    for row in rows:
        if row["kind"] == CONTRADICTED:
            print(f"XLA contradicts itself, {_line(row)}")
    rate = len(rows) / seconds
    print(f"{len(rows)} modules in {seconds:.0f} s ({rate:.1f} a second), seed {seed}")
    for column in ("what", "kind"):
        counted = Counter(row[column] for row in rows).most_common()
        print(", ".join(f"{value} {count}" for value, count in counted))
    failed = [row for row in rows if row["failed"]]
    print("\n".join([*map(_line, failed), f"{len(failed)} failures"]))


def _print_counts(values: Sequence[str]) -> None:
    for value, count in sorted(Counter(values).items()):
        print(f"{value:72}{count:8}")


if __name__ == "__main__":
    main()
