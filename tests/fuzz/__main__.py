"""The fuzzers, run long: ``python -m tests.fuzz --minutes 20``.

Random single ops, random graphs, and long loops and repetitions in turn, each judged by XLA, the
interpreter and compiled code.
A process of its own runs them in pieces, so that a crash or a hang is one more failure and not the
end. Prints how many modules there were of each op, and what failed; failing modules are saved as
HLO text, their seeds in the first line. ``--seed S`` starts elsewhere, ``--ops Pad,Sort`` draws
these only, ``--only singles``, ``graphs`` or ``repeats`` leaves the others out.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from tests.fuzz.table import STEPS

_KINDS = ("singles", "graphs", "repeats")
# Seconds that a process runs before a new one takes over, and that one module may take.
_PIECE = 60
_HANG = 120


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**9)
    parser.add_argument("--ops", default=",".join(STEPS))
    parser.add_argument("--only", choices=_KINDS)
    parser.add_argument("--save", type=Path, default=Path("out/fuzz"))
    options = parser.parse_args()

    start = time.monotonic()
    counts: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    failures: list[str] = []
    seed = options.seed
    piece = 0
    while (left := options.minutes * 60 - (time.monotonic() - start)) > 1:
        what = options.only or _KINDS[piece % len(_KINDS)]
        seconds = min(_PIECE, left)
        seed, rows = run_piece(what, seed, seconds, options.ops, options.save)
        for row in rows:
            counts[row["name"]] += 1
            kinds[row["kind"]] += 1
            if row["failed"]:
                failures.append(f"{row['where']}: {row['name']} {row['kind']}: {row['text']}")
                print(failures[-1], flush=True)
        piece += 1
    report(counts, kinds, failures, time.monotonic() - start, options.seed)
    sys.exit(1 if failures else 0)


def run_piece(
    what: str, seed: int, seconds: float, names: str, save: Path
) -> tuple[int, list[dict[str, str]]]:
    """Outcomes of modules from ``seed`` on, and the seed after the last."""
    command = [sys.executable, "-m", "tests.fuzz.piece", what, str(seed), str(seconds), names]
    command.append(str(save))
    rows: list[dict[str, str]] = []
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        output, _ = process.communicate(timeout=seconds + _HANG)
        ended = f"ended with {process.returncode}"
    except subprocess.TimeoutExpired:
        process.kill()
        output, _ = process.communicate()
        ended = f"did not end within {_HANG} s"
    for line in output.splitlines():
        if line.startswith("{"):
            row = json.loads(line)
            seed = row["seed"] + 1
            rows += row["outcomes"]
    if process.returncode:
        text = f"the process {ended}"
        rows.append(
            {"name": what, "kind": "crash", "failed": "yes", "text": text, "where": f"seed {seed}"}
        )
        seed += 1
    return seed, rows


def report(
    counts: Counter[str], kinds: Counter[str], failures: list[str], seconds: float, seed: int
) -> None:
    for name, count in sorted(counts.items()):
        print(f"{name:28}{count:8}")
    modules = sum(counts.values())
    print(f"{modules} modules in {seconds:.0f} s ({modules / seconds:.1f} a second), seed {seed}")
    print(", ".join(f"{kind} {count}" for kind, count in kinds.most_common()))
    print(f"{len(failures)} failures")


if __name__ == "__main__":
    main()
