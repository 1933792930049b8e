"""What `jit(f, tune=seconds)` gains over `jit(f)`, side by side in one process.

    python -m tests.benchmarks.tuning "matmul*" "softmax*" [--tune 10] [--seconds 2]

Both versions of a case are called in turns, so that what disturbs one disturbs the other; the
results are compared first. Times are medians, with the fastest call of each in brackets. What was
found is forgotten at the end.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import numpy as np

import tracejit as tj
from tests.benchmarks.__main__ import choose
from tests.benchmarks.case import Case
from tests.benchmarks.cases import CASES
from tests.benchmarks.compare import difference
from tests.benchmarks.tables import seconds
from tests.benchmarks.tree import leaves
from tests.options import seconds as positive
from tracejit.runtime.stopwatch import Stopwatch, Times

PATTERNS = ("matmul*", "conv 3x3*", "softmax*", "training step, perceptron")


@dataclass(frozen=True)
class Row:
    """Samples of one case, and what tuning told of it."""

    name: str
    times: Times
    found: str


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser("python -m tests.benchmarks.tuning", description=__doc__)
    made.add_argument("cases", nargs="*", default=PATTERNS, help="names or patterns")
    made.add_argument("--tune", type=positive, default=10.0, help="seconds to tune a case for")
    made.add_argument("--seconds", type=positive, default=2.0, help="seconds to compare both for")
    made.add_argument("--tiny", action="store_true", help="tiny inputs, to see that all works")
    return made


def measured(case: Case, tune: float, duration: float, tiny: bool) -> Row:
    """Raises `ValueError` where the tuned results are others."""
    implementation = case.tracejit
    assert implementation is not None, case.name
    inputs = case.make_inputs(tiny)

    def run(*arguments: Any) -> Any:
        return implementation(tj, *arguments)

    functions = {"untuned": tj.jit(run), "tuned": tj.jit(run, tune=tune)}
    wanted, made = (
        [np.asarray(leaf) for leaf in leaves(function(*inputs))] for function in functions.values()
    )
    wrong = difference(made, wanted, case.tolerance)
    if wrong:
        raise ValueError(f"{case.name}: tuned, {wrong}")
    calls = {name: partial(function, *inputs) for name, function in functions.items()}
    times = Stopwatch().times(calls, duration)
    # The program that was tuned, found again.
    report = str(functions["tuned"].lower(*inputs).compile().explain())
    changes = [line.strip() for line in report.splitlines() if line.startswith("    tuned from")]
    return Row(case.name, times, "; ".join(changes))


def line(row: Row) -> str:
    """One line of a Markdown table."""
    before, after = (row.times[name] for name in ("untuned", "tuned"))
    cells = [
        row.name,
        f"{seconds(median(before))} ({seconds(min(before))})",
        f"{seconds(median(after))} ({seconds(min(after))})",
        f"{median(after) / median(before):.2f} ({min(after) / min(before):.2f})",
        row.found or "nothing was clearly quicker",
    ]
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        chosen = choose([c for c in CASES if c.tracejit and c.measure == "run"], options.cases)
    except ValueError as error:
        parser().error(str(error))
    print("| | untuned | tuned | ratio | what changed |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRACEJIT_CACHE_DIR"] = folder
        for case in chosen:
            print(line(measured(case, options.tune, options.seconds, options.tiny)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
