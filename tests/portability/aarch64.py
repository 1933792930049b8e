"""Runs the product on an emulated AArch64 and checks its samples there.

python -m tests.portability.aarch64 [--every N] [--processes N]

Every case compiles inside the emulated Python, through TVM's AArch64 wheel, and is compared with
the interpreter. Prints what went wrong, and counts; the exit status is 1 where anything did.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from dataclasses import dataclass, field

from tests.portability.checking import cases
from tests.portability.emulated import CHECKOUT, Emulated, MissingToolError

FOLDER = CHECKOUT / "out" / "aarch64"


@dataclass
class Outcome:
    """What became of each case, by its number."""

    right: list[int] = field(default_factory=list)
    wrong: dict[int, str] = field(default_factory=dict)

    def note(self, line: str, names: list[str]) -> int | None:
        """Reads a worker's line; the number of a case that has begun and not ended."""
        word, _, rest = line.strip().partition(" ")
        number, _, reason = rest.partition(" ")
        if word == "begin":
            return int(number)
        if word == "right":
            self.right.append(int(number))
        elif word == "wrong":
            self.wrong[int(number)] = reason
            print(f"{names[int(number)]}: {reason}", flush=True)
        return None


def work(machine: Emulated, first: int, step: int, names: list[str], outcome: Outcome) -> None:
    """Checks every ``step``-th case; one that ends the process is wrong, and the next is begun."""
    while first < len(names):
        process = machine.run(["-m", "tests.portability.worker", str(first), str(step)])
        assert process.stdout is not None
        begun: int | None = None
        said: list[str] = []
        for line in process.stdout:
            if line.startswith(("begin ", "right ", "wrong ")):
                begun = outcome.note(line, names)
            else:
                said.append(line.strip())
        status = process.wait()
        if begun is None and status == 0:
            return
        if begun is None:
            raise RuntimeError(f"the worker ended with status {status}: {' '.join(said[-3:])}")
        outcome.note(f"wrong {begun} the process ended with {status}: {' '.join(said[-3:])}", names)
        first = begun + step


def main() -> int:
    """Parses the command line, runs, prints. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.portability.aarch64")
    parser.add_argument("--every", type=int, default=2, help="check every N-th case")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    machine = Emulated(FOLDER)
    try:
        machine.prepare()
    except MissingToolError as error:
        print(error, file=sys.stderr)
        return 2
    names = [case.name for case in cases()]
    outcome = Outcome()
    start = time.monotonic()
    step = options.every * options.processes
    threads = [
        threading.Thread(target=work, args=(machine, n * options.every, step, names, outcome))
        for n in range(options.processes)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asked = len(range(0, len(names), options.every))
    minutes = (time.monotonic() - start) / 60
    print(f"{len(outcome.right)} of {asked} cases right in {minutes:.0f} minutes")
    return 0 if len(outcome.right) == asked else 1


if __name__ == "__main__":
    sys.exit(main())
