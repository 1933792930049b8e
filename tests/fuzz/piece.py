"""One piece of a long run of the fuzzers: prints a line of JSON for each seed.

python -m tests.fuzz.piece singles 1000 60 Pad,Sort out/fuzz

``count=3`` at the end judges three seeds, however long that takes; ``ops`` the first one alone, and
asks XLA about ops one by one only.
"""

from __future__ import annotations

import functools
import itertools
import json
import random
import sys
import time
import traceback
import warnings
from pathlib import Path

from tests.fuzz import containers, memory_orders, mixed_types, programs, shortened
from tests.fuzz.array_programs import ArrayJudge
from tests.fuzz.choices import Choices
from tests.fuzz.graphs import drawn
from tests.fuzz.judging import AGREED, REFUSED, Outcome, drawn_singles, judge_graph, judge_singles
from tests.fuzz.repeats import repeated

# Single ops that share a module; the most ops of a graph.
_TOGETHER = 16
_FEWEST, _MOST = 5, 50
_ARRAYS = ArrayJudge()


def outcomes(what: str, seed: int, names: list[str], whole: bool = True) -> list[Outcome]:
    """The outcomes of the modules that ``seed`` decides; XLA is asked about the ``whole``."""
    choices = Choices(random.Random(seed).randint)
    try:
        if what == "singles":
            return judge_singles(drawn_singles(choices, _TOGETHER, names), seed, whole)
        if what == "arrays":
            wrong, module = _ARRAYS.judge(seed)
            return [Outcome("array_program", "", "compiler" if wrong else AGREED, wrong, module)]
        if what == "programs":
            return _programs(seed)
        if what == "repeats":
            return [judge_graph(repeated(choices), seed, whole)]
        return [judge_graph(drawn(choices, 1, _MOST, least=_FEWEST), seed, whole)]
    except Exception:  # whatever goes wrong in any part is what a fuzzer is there to tell
        return [Outcome(what, "", "error", traceback.format_exc(limit=-4)[-1500:])]


def _programs(seed: int) -> list[Outcome]:
    """A Python program with control flow, one with arrays in containers, one of shortened arrays,
    an expression of several element types, and a chain for its order.

    A third of them are compiled.

    Refusals are of the library's own errors; any other error of theirs is a failure.
    """
    found = []
    options = {} if seed % 3 == 0 else {"check": True}
    for name, judge in (
        ("python_program", functools.partial(programs.judged, seed, **options)),
        ("containers", functools.partial(containers.judged, seed, **options)),
        ("shortened_arrays", functools.partial(shortened.judged, seed, **options)),
        ("mixed_types", functools.partial(mixed_types.judged, seed, **options)),
        ("memory_order", functools.partial(memory_orders.judged, seed)),
    ):
        try:
            kind = judge()
            found.append(Outcome(name, "", AGREED if kind == "right" else REFUSED, kind))
        except Exception as error:  # an assertion, a KeyError, a TypeError: a failure each
            text = traceback.format_exc(limit=-4)[-1500:]
            kind = "python" if isinstance(error, AssertionError) else "error"
            found.append(Outcome(name, "", kind, text))
    return found


def saved(outcome: Outcome, seed: int, folder: Path) -> str:
    """Where the module of a failure, or of a contradiction, lies."""
    if outcome.module is None or outcome.kind in ("agreed", "refused"):
        return f"seed {seed}"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{outcome.name}-{seed}.hlo"
    text = " ".join(outcome.text.split())
    file.write_text(f"// seed {seed}, {outcome.kind}: {text}\n{outcome.module}")
    return str(file)


def main() -> None:
    what, start, seconds, names, save, *options = sys.argv[1:]
    whole = "ops" not in options
    warnings.simplefilter("ignore")
    end = time.monotonic() + float(seconds)
    counts = [int(option[6:]) for option in options if option.startswith("count=")]
    count = counts[0] if counts else None if whole else 1
    for seed in itertools.islice(itertools.count(int(start)), count):
        if count is None and time.monotonic() >= end:
            break
        made = outcomes(what, seed, names.split(","), whole)
        rows = [
            {
                "name": outcome.name,
                "kind": outcome.kind,
                "text": outcome.text,
                "failed": outcome.failed,
                "where": saved(outcome, seed, Path(save)),
            }
            for outcome in made
        ]
        print(json.dumps({"seed": seed, "outcomes": rows}), flush=True)


if __name__ == "__main__":
    main()
