"""`python -m tests.benchmarks`: measures, prints the tables, writes the picture and the JSON.

The exit status is 1 when something failed or gave wrong results, and 2 for a wrong option.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path

from tests.benchmarks import machine, picture, session, tables
from tests.benchmarks.case import ENGINES, Case
from tests.benchmarks.instructions import ENVIRONMENTS
from tests.benchmarks.records import Report
from tests.benchmarks.session import Settings
from tests.options import count, seconds, threads


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser("python -m tests.benchmarks", description=__doc__)
    made.add_argument("cases", nargs="*", help="names or patterns, 'matmul*' say; default: all")
    made.add_argument("--list", action="store_true", help="print the names of the cases and stop")
    made.add_argument("--engines", nargs="+", choices=ENGINES, default=ENGINES)
    made.add_argument("--threads", type=threads, default=2, help="of each engine; default: 2")
    made.add_argument("--rounds", type=count, default=3, help="turns of each engine; default: 3")
    made.add_argument("--seconds", type=seconds, default=0.3, help="of a turn; default: 0.3")
    made.add_argument("--tiny", action="store_true", help="tiny inputs, to see that all works")
    made.add_argument("--output", type=Path, default=Path("out"), help="folder; default: out")
    made.add_argument(
        "--processor",
        choices=ENVIRONMENTS,
        default=Settings.processor,
        help="whose instructions all engines are held to; default: native, this machine's",
    )
    made.add_argument("--table", default=Settings.table, help="module whose CASES are measured")
    return made


def choose(cases: Sequence[Case], patterns: Sequence[str]) -> list[Case]:
    """The cases that match any pattern, or all. ValueError for a pattern that matches none."""
    for pattern in patterns:
        if not any(fnmatch(case.name, pattern) for case in cases):
            raise ValueError(f"no case is called {pattern}; --list prints the names")
    return [c for c in cases if not patterns or any(fnmatch(c.name, p) for p in patterns)]


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    settings = Settings(
        engines=options.engines,
        table=options.table,
        threads=options.threads,
        rounds=options.rounds,
        seconds=options.seconds,
        tiny=options.tiny,
        processor=options.processor,
    )
    try:
        chosen = choose(settings.cases(), options.cases)
    except (ValueError, ImportError, AttributeError) as error:
        parser().error(str(error))
    if options.list:
        print(*[case.name for case in chosen], sep="\n")
        return 0
    try:
        options.output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser().error(f"--output: {error}")
    inputs = {"inputs": "tiny, not as the names say"} if settings.tiny else {}
    held = {"held to": settings.processor} if settings.processor != Settings.processor else {}
    report = Report(machine.describe(settings.threads) | held | inputs)
    session.run(settings, chosen, report, progress)
    if not report.versions:
        parser().error("; ".join(["none of these engines can be used", *report.errors()]))

    text = json.dumps(report.as_dict(), indent=1)
    (options.output / "benchmarks.json").write_text(text, encoding="utf-8")
    picture.draw(report, options.output / "benchmarks.png")
    print(tables.markdown(report))
    progress(f"wrote benchmarks.png and benchmarks.json to {options.output}")
    return 1 if any(report.errors()) else 0


if __name__ == "__main__":
    sys.exit(main())
