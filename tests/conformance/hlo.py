"""Reads HLO text from files and folders: what is read, and why the rest is refused.

    python -m tests.conformance.hlo PATH [PATH ...] [--judge] [--verbose]

Takes .hlo and .txt files, and modules in raw strings of .cc files, as XLA's own tests have them
(xla/hlo, xla/tools, xla/service of a checkout of openxla/xla). A module that is read is verified,
printed, and read again. Many of those texts are wrong on purpose: with ``--judge`` the real XLA is
asked to read what is refused, in a process of its own, since it dies of some.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

from jax.errors import JaxRuntimeError
from jaxlib import _hlo

from tests.options import existing
from tracejit.equality import same_graph
from tracejit.errors import HloParseError, UnsupportedError, VerificationError
from tracejit.hlo import parse, to_text
from tracejit.verifier import verify

_RAW_STRING = re.compile(r'R"(\w*)\((.*?)\)\1"', re.DOTALL)
_PLACE = re.compile(r"HLO text, line \d+, column \d+: ")
_SUFFIXES = (".hlo", ".txt", ".cc")
_PROCESSES = get_context("fork")
BY_XLA = "refused by XLA as well"


def texts(paths: Iterable[Path]) -> Iterator[tuple[str, str]]:
    """The name and the text of every module in the files."""
    for path in paths:
        files = [f for f in sorted(path.rglob("*")) if f.suffix in _SUFFIXES]
        for file in files if path.is_dir() else [path]:
            text = file.read_text(encoding="utf-8", errors="replace")
            strings = [m[2] for m in _RAW_STRING.finditer(text)] if file.suffix == ".cc" else [text]
            whole = [s for s in strings if "HloModule" in s or "ENTRY" in s]
            for number, module in enumerate(whole):
                yield (f"{file.name}#{number}" if len(whole) > 1 else file.name), module


def refusal(text: str) -> str:
    """Why a module is refused; empty when it is read, and again from what is printed of it."""
    try:
        module = verify(parse(text))
    except (HloParseError, UnsupportedError, VerificationError) as error:
        return error.message
    return "" if same_graph(parse(to_text(module)), module) else "is another module when printed"


def xla_reads(text: str) -> bool:
    """Whether XLA's own parser takes the text; it does not verify what it reads."""
    ours, theirs = _PROCESSES.Pipe(duplex=False)
    process = _PROCESSES.Process(target=_ask_xla, args=(text, theirs))
    process.start()
    theirs.close()
    try:
        return ours.poll(60) and bool(ours.recv())
    except EOFError:  # the process has died
        return False
    finally:
        process.kill()
        process.join()


def _ask_xla(text: str, answer: Connection) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    try:
        _hlo.hlo_module_from_text(text)
    except JaxRuntimeError:
        answer.send(False)
    else:
        answer.send(True)


def main() -> None:
    """Prints the counts; the exit code says whether something was refused."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.hlo")
    parser.add_argument("paths", type=existing, nargs="+", metavar="PATH")
    parser.add_argument("--judge", action="store_true", help="ask XLA to read what is refused")
    parser.add_argument("--verbose", action="store_true", help="print every module refused")
    given = parser.parse_args()
    reasons: Counter[str] = Counter()
    for name, text in texts(given.paths):
        reason = refusal(text)
        if reason and given.judge and not xla_reads(text):
            reason = BY_XLA
        reasons[_PLACE.sub("", reason)] += 1
        if reason and given.verbose:
            print(f"{name}: {reason}", flush=True)
    print(f"{reasons.pop('', 0):6} read")
    print(f"{sum(reasons.values()):6} refused")
    for reason, count in reasons.most_common():
        print(f"{count:6} {reason}")
    sys.exit(bool(reasons))


if __name__ == "__main__":
    main()
