"""Runs the product on an emulated AArch64 and checks its samples there.

python -m tests.portability.aarch64 [--every N] [--processes N]

Every case compiles inside the emulated Python, through TVM's AArch64 wheel, and is compared with
the interpreter. Prints what went wrong, and counts; the exit status is 1 where anything did.
"""

from __future__ import annotations

import argparse
import os
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.portability.checking import cases
from tests.portability.emulated import CHECKOUT, Emulated, MissingToolError

FOLDER = CHECKOUT / "out" / "aarch64"
SILENCE = 240
"""Seconds without a word after which a worker hangs."""
EVERY = 100
"""Cases after which the command says how far it is."""


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
            if len(self.right) % EVERY == 0:
                print(f"{len(self.right)} right", flush=True)
        elif word == "wrong":
            self.wrong[int(number)] = reason
            print(f"{names[int(number)]}: {reason}", flush=True)
        return None


def lines(process: subprocess.Popen[str]) -> Iterator[str]:
    """What a worker prints; one that says nothing for `SILENCE` seconds is ended."""
    assert process.stdout is not None
    pipe, left = process.stdout.fileno(), b""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while selector.select(SILENCE):
            data = os.read(pipe, 1 << 16)
            if not data:
                return
            *whole, left = (left + data).split(b"\n")
            yield from (line.decode(errors="replace") for line in whole)
    process.kill()


def work(machine: Emulated, first: int, step: int, names: list[str], outcome: Outcome) -> None:
    """Checks every ``step``-th case.

    A case that ends the process, or hangs, is tried once more: the emulator itself hangs now and
    then where the linker is started. One that does so twice is wrong.
    """
    tried: set[int] = set()
    while first < len(names):
        process = machine.run(["-m", "tests.portability.worker", str(first), str(step)])
        begun: int | None = None
        said: list[str] = []
        for line in lines(process):
            if line.startswith(("begin ", "right ", "wrong ")):
                begun = outcome.note(line, names)
            else:
                said.append(line.strip())
        status = process.wait()
        if begun is None and status == 0:
            return
        if begun is None:
            raise RuntimeError(f"the worker ended with status {status}: {' '.join(said[-3:])}")
        if begun not in tried:
            tried.add(begun)
            first = begun
            continue
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
