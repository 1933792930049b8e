"""Runs StableHLO's own test modules through the interpreter and compiled code.

    python -m tests.conformance.stablehlo PATH [PATH ...] [--compile-one-in N] [--verbose]

Each PATH is a file or a folder of .mlir files, such as stablehlo/testdata and
stablehlo/tests/interpret of a checkout of openxla/stablehlo. jaxlib turns every module into HLO
text; the values that a module checks are compared with those that it expects. Prints how many
modules came to each outcome, and why.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from tests.conformance.stablehlo_checks import Checked, Unusable, checked_module, differing
from tests.conformance.stablehlo_modules import Source, modules
from tests.judge import run_xla
from tests.options import existing
from tracejit import api
from tracejit.errors import TracejitError

RUN = ("interpreted", "compiled")
Outcome = tuple[str, str]
"""What came of a module, and why."""


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.stablehlo")
    parser.add_argument("paths", type=existing, nargs="+", metavar="PATH")
    parser.add_argument(
        "--compile-one-in",
        type=int,
        default=1,
        metavar="N",
        help="compile one module in N; 0 compiles none (default: 1)",
    )
    parser.add_argument("--verbose", action="store_true", help="print every module that fails")
    return parser.parse_args()


def all_outcomes(
    sources: Sequence[Source], compile_one_in: int
) -> Iterator[tuple[Source, list[Outcome]]]:
    """What comes of each module. A process of its own runs them: XLA aborts on some texts."""
    done = 0
    while done < len(sources):
        ours, theirs = get_context("spawn").Pipe()
        rest = sources[done:]
        worker = get_context("spawn").Process(target=_work, args=(theirs, rest, compile_one_in))
        worker.start()
        theirs.close()
        for source in rest:
            try:
                found: list[Outcome] = ours.recv()
            except EOFError:
                found = [("not usable", "the process was aborted")]
            done += 1
            yield source, found
            if found[0][1] == "the process was aborted":
                break
        worker.join()


def _work(pipe: Connection, sources: Sequence[Source], compile_one_in: int) -> None:
    for number, source in enumerate(sources):
        compiled = compile_one_in > 0 and number % compile_one_in == 0
        pipe.send(list(outcomes(source, compiled)))


def outcomes(source: Source, compiled: bool) -> Iterator[Outcome]:
    """What comes of one module: by the interpreter, then, if ``compiled``, as machine code."""
    try:
        checked = checked_module(source.text)
    except Unusable as reason:
        yield "not usable", str(reason)
        return
    except TracejitError as error:
        yield "refused", error.message
        return
    yield "interpreted", _judged(checked, lambda: api.interpret(checked.module))
    if compiled:
        yield "compiled", _judged(checked, lambda: api.compile(checked.module)())


def _judged(checked: Checked, run: Callable[[], Any]) -> str:
    """Empty when every check passes, else what is wrong."""
    try:
        found = differing(checked, run())
        if found and not differing(checked, run_xla(checked.module)):
            return f"differs: {found}"
    except TracejitError as error:
        return f"refused: {error.message}"
    except (ArithmeticError, LookupError, TypeError, ValueError, AssertionError):
        return f"crashed: {traceback.format_exc(limit=-1).strip().splitlines()[-1]}"
    return f"differs from what is expected, as XLA does: {found}" if found else ""


def main() -> None:
    """Prints the counts; the exit code says whether a value differed or something crashed."""
    given = arguments()
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    bad = False
    sources = list(modules(given.paths))
    print(f"{len(sources)} modules", flush=True)
    for source, found in all_outcomes(sources, given.compile_one_in):
        for stage, reason in found:
            kind = reason.partition(":")[0] if stage in RUN else ""
            counts[f"{stage}, {kind or 'passed'}" if stage in RUN else stage] += 1
            if reason:
                reasons[f"{stage}: {_general(reason)}"] += 1
            bad |= kind in ("differs", "crashed")
            if given.verbose and reason:
                print(f"{source.name}: {stage}: {reason}", flush=True)
    for outcome, count in sorted(counts.items()):
        print(f"{count:6} {outcome}")
    for reason, count in reasons.most_common():
        print(f"{count:6} {reason}")
    sys.exit(bad)


def _general(reason: str) -> str:
    """A reason without the numbers that make each one different."""
    return reason if len(reason) < 150 else f"{reason[:150]}…"


if __name__ == "__main__":
    main()
