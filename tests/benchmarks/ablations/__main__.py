"""Leaves out each pass and each special way to write a kernel, and says what that changes.

    python -m tests.benchmarks.ablations [--npbench PATH] [--pyhpc PATH] [--seconds 0.3]
                                         [--only NAME ...] [--programs TEXT] [--untimed]

Programs: the corpus of `tests.artifacts`, the programs of `tests/passes`, the benchmarks in their
full sizes, and checkouts of NPBench and pyhpc-benchmarks. What changes the program of none, at
AVX-512 or at AVX2, is not timed. Of the others that have arrays both versions are compiled by one
thread and run in turns. Ratios are the least times without over those with: above 1 the pass pays.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import geometric_mean
from typing import Any

# Set before tracejit is imported: kernels are divided among threads, and so are their builds.
if __name__ == "__main__":
    os.environ["TVM_NUM_THREADS"] = "1"
    os.environ["TRACEJIT_CACHE_DIR"] = tempfile.mkdtemp(prefix="tracejit-ablations-")

import numpy as np

import tracejit as tj
from tests.artifacts.__main__ import text_of
from tests.benchmarks.ablations.programs import Program, programs
from tests.benchmarks.ablations.ways import WAYS
from tests.lowered import lower
from tests.options import checkout, seconds
from tracejit.backends.target import Target
from tracejit.backends.tvm import pipeline
from tracejit.backends.tvm.buffers.donation import aliases_of
from tracejit.backends.tvm.cpu.processor import processor_of
from tracejit.backends.tvm.passes.manager import Options, Session
from tracejit.backends.tvm.pipeline import optimized
from tracejit.errors import TracejitError

TARGETS = ("cpu", "cpu:x86-64-v3")
ROUNDS = 5
# A pass moves a program whose time it changes by more than this, which is what repeats.
NOISE = 1.05
FOLDER = Path(pipeline.__file__).parent
PASSES = tuple(
    dict.fromkeys(p.name for passes in pipeline.LISTS.values() for p in passes if p.optional)
)


@dataclass
class Found:
    """What leaving one thing out does: programs changed, and ratios of times, by target."""

    fired: set[str] = field(default_factory=set)
    changed: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    run: dict[str, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))
    build: dict[str, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))
    errors: dict[str, str] = field(default_factory=dict)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.ablations",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--npbench", type=checkout("bench_info"), help="a checkout of NPBench")
    parser.add_argument("--pyhpc", type=checkout("benchmarks"), help="of pyhpc-benchmarks")
    parser.add_argument("--preset", default="S", help="NPBench's sizes")
    parser.add_argument("--seconds", type=seconds, default=0.3, help="for timing one program")
    parser.add_argument("--only", nargs="+", default=[], help="names of passes and ways")
    parser.add_argument("--programs", default="", help="programs whose names contain this")
    parser.add_argument("--untimed", action="store_true", help="count changed programs only")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    names = [*PASSES, *(way.name for way in WAYS)]
    unknown = sorted({*options.only} - {*names})
    if unknown:
        parser.error(f"no passes called {', '.join(unknown)}")
    found = {name: Found() for name in options.only or names}
    count = 0
    for program in programs(options.npbench, options.pyhpc, options.preset):
        if options.programs not in program.name:
            continue
        count += 1
        for target in TARGETS:
            with np.errstate(all="ignore"):
                ablate(program, target, found, 0.0 if options.untimed else options.seconds)
    print(f"{count} programs")
    print("\n".join(table(found)))


def ablate(program: Program, target: str, found: dict[str, Found], most: float) -> None:
    """Adds what leaving out each of ``found`` does to one program."""
    taken: set[str] = set()
    ways = [way for way in WAYS if way.name in found]
    try:
        taken |= _changes(program, target)
        whole = ""
        if ways or not taken.isdisjoint(found):
            with ExitStack() as stack:
                for way in ways:
                    stack.enter_context(way.watched(taken))
                whole = _text(program, target)
    except TracejitError:
        return
    late = {way.name for way in WAYS if way.is_late and most and program.arrays is not None}
    with_it: Callable[[], Any] | None = None
    for name, one in found.items():
        if name not in taken | late:
            continue
        one.fired.add(program.name)
        try:
            with without(name):
                is_changed = name in late or _text(program, target) != whole
            if not is_changed:
                continue
            one.changed[target].add(program.name)
            if not most or program.arrays is None:
                continue
            if with_it is None:
                with_it, built = _built(program, target)
            with without(name):
                without_it, built_without = _built(program, target)
            ratio = _ratio(with_it, without_it, most)
        except TracejitError as error:
            one.errors[program.name] = error.message
            continue
        one.run[target][program.name] = ratio
        one.build[target][program.name] = built_without / built
        print(f"{target:15} {name:32} {program.name:50} {ratio:7.3f} {built_without / built:7.3f}")


@contextmanager
def without(name: str) -> Iterator[None]:
    """Inside, a pass or a way is left out."""
    for way in WAYS:
        if way.name == name:
            with way.left_out():
                yield
            return
    before = os.environ.get("TRACEJIT_PASSES")
    os.environ["TRACEJIT_PASSES"] = f"-{name}"
    try:
        yield
    finally:
        del os.environ["TRACEJIT_PASSES"]
        if before is not None:
            os.environ["TRACEJIT_PASSES"] = before


def _changes(program: Program, target: str) -> set[str]:
    """The passes that change something."""
    processor, session = processor_of(Target(target).resolved()), Session(Options())
    optimized(program.module.entry, processor.machine, session)
    return {name for name, _ in session.changes}


def _text(program: Program, target: str) -> str:
    """The program's text."""
    processor = processor_of(Target(target).resolved())
    made = lower(program.module.entry, processor.machine, aliases_of(program.module))
    return _renumbered(text_of(made))


def _renumbered(text: str) -> str:
    """The text with its variables numbered anew: each process counts on."""
    numbers: dict[str, str] = {}
    return re.sub(r"_\d+\b", lambda m: numbers.setdefault(m[0], f"_{len(numbers)}"), text)


def _built(program: Program, target: str) -> tuple[Callable[[], Any], float]:
    """What runs the program, compiled here and now, and the seconds of compiling it."""
    assert program.arrays is not None
    environment = {"TRACEJIT_PASSES": ":1000000000", **os.environ}
    before = dict(os.environ)
    os.environ.update(environment)
    try:
        times = []
        for _ in range(2):
            start = time.perf_counter()
            compiled = tj.compile(program.module, target)
            times.append(time.perf_counter() - start)
    finally:
        os.environ.clear()
        os.environ.update(before)
    arrays = program.arrays
    return lambda: compiled(*arrays), min(times)


def _ratio(with_it: Callable[[], Any], without_it: Callable[[], Any], most: float) -> float:
    """The least time of one over that of the other, which take turns."""
    calls = with_it, without_it
    once = [_least(call, 1) for call in calls]
    counts = [max(1, math.floor(most / (2 * ROUNDS) / max(seconds, 1e-7))) for seconds in once]
    least = [math.inf, math.inf]
    for _ in range(ROUNDS):
        for n, call in enumerate(calls):
            least[n] = min(least[n], _least(call, counts[n]))
    return least[1] / least[0]


def _least(call: Callable[[], Any], count: int) -> float:
    least = math.inf
    for _ in range(count):
        start = time.perf_counter()
        call()
        least = min(least, time.perf_counter() - start)
    return least


def table(found: dict[str, Found]) -> list[str]:
    """A row for each pass or way, in Markdown."""
    lines = [
        "| left out | lines | fires in | changes (AVX-512, AVX2) | run: mean | worst | best "
        "| compile: mean |",
        "|---|---:|---:|---:|---:|---|---|---:|",
    ]
    for name, one in found.items():
        ratios = [(r, p, t) for t in TARGETS for p, r in one.run[t].items()]
        moved = [each for each in ratios if not 1 / NOISE < each[0] < NOISE]
        builds = [r for t in TARGETS for r in one.build[t].values()]
        changed = ", ".join(str(len(one.changed[t])) for t in TARGETS)
        mean = f"{geometric_mean([r for r, *_ in ratios]):.3f}" if ratios else ""
        worst = _named(max(moved, default=None)) if moved else ""
        best = _named(min(moved, default=None)) if moved else ""
        build = f"{geometric_mean(builds):.2f}" if builds else ""
        lines.append(
            f"| {name} | {_lines(name)} | {len(one.fired)} | {changed} | {mean} | {worst} "
            f"| {best} | {build} |"
        )
        lines += [f"  {name} left out of {p}: {e[:150]}" for p, e in one.errors.items()]
    return lines


def _named(one: tuple[float, str, str] | None) -> str:
    if one is None:
        return ""
    ratio, program, target = one
    return f"{ratio:.2f} {program}{'' if target == TARGETS[0] else ' (AVX2)'}"


def _lines(name: str) -> str:
    """The lines of the files that only this needs, as far as they are known."""
    ways = [way for way in WAYS if way.name == name]
    files: Sequence[Path] = [FOLDER / file for way in ways for file in way.files]
    if not ways:
        stem = name.replace("-", "_")
        files = [*FOLDER.glob(f"passes/*/{_FILES.get(name, stem)}.py")]
    return str(sum(len(file.read_text().splitlines()) for file in files)) if files else ""


_FILES = {
    "dead-sort-operands": "sort_dead_operands",
    "promote-sort-keys": "sort_promote_type",
    "vectorize-loops": "vectorize",
    "hoist-scan-contractions": "scan_contractions",
}


if __name__ == "__main__":
    main()
