"""One engine in a process of its own: reads requests from stdin, answers on stdout, as JSON lines.

    python -m tests.benchmarks.worker ENGINE TABLE

TABLE is the module whose CASES are measured. The first line says whether the engine is there:
{"version": …, "compiles": …, "has_tiers": …} or {"absent": …}. Then, for each request:

    {"do": "warm"}                          one jitted call of next to nothing
    {"do": "first", "case": …, "tiny": …, "results": PATH}
                                            the first call; its results are saved
    {"do": "start", "case": …, "tiny": …, "tiered": …}
                                            the first call, in tiers or not; afterwards it is
                                            compiled
    {"do": "trace"}                         that case traced once more, not compiled
    {"do": "sample", "seconds": …}          steady calls of that case
    {"do": "memory", "case": …, "tiny": …}  the memory before the first call and the most after some

Whatever a case raises ends the process, with the traceback on stderr.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from importlib import import_module
from time import perf_counter
from typing import Any

import numpy as np

from tests.benchmarks import engines, machine, timing
from tests.benchmarks.case import Case, Implementation
from tests.benchmarks.engines.base import Engine

# A trace is short beside a garbage collection or a page fault: the least of a few counts.
TRACES = 3
# Calls after which a process holds what it will hold.
CALLS = 20


class Worker:
    """The engine, the table, and the case that was prepared last."""

    def __init__(self, name: str, engine: Engine, cases: list[Case]) -> None:
        self.name = name
        self.engine = engine
        self.cases = {case.name: case for case in cases}
        self.implementation: Implementation = lambda module: None
        self.call: Callable[..., Any] = lambda: None
        self.arguments: tuple[Any, ...] = ()

    def warm(self) -> dict[str, Any]:
        """What the library does once per process is done here: loading a compiler, say."""
        arguments = self.engine.arguments((np.ones(3, np.float32),))
        call = self.engine.prepare(lambda module, x: x + x)
        return {"first": timing.once(call, arguments, self.engine.wait)}

    def choose(self, case: str, tiny: bool) -> None:
        """Makes the arguments of a case and what is to be called."""
        chosen = self.cases[case]
        implementation = chosen.implementation(self.name)
        assert implementation is not None, f"{case} has no implementation for {self.name}"
        inputs = chosen.make_inputs(tiny)
        self.arguments = inputs if chosen.arguments == "numpy" else self.engine.arguments(inputs)
        self.implementation = implementation
        self.call = self.engine.prepare(implementation)

    def first(self, case: str, tiny: bool, results: str) -> dict[str, Any]:
        """Times the first call and saves its results for comparison."""
        self.choose(case, tiny)
        seconds, result = self.timed()
        np.savez(results, *self.engine.results(result))
        return {"first": seconds}

    def start(self, case: str, tiny: bool, tiered: bool) -> dict[str, Any]:
        """Times the first call, and returns when nothing is being compiled any more."""
        self.choose(case, tiny)
        if not tiered:
            return {"first": self.timed()[0]}
        self.call = self.engine.prepare_tiered(self.implementation)
        seconds, _ = self.timed()
        self.engine.settle(self.call)
        return {"first": seconds}

    def timed(self) -> tuple[float, Any]:
        """How long one call takes, and its result."""
        start = perf_counter()
        result = self.call(*self.arguments)
        if self.engine.wait is not None:
            self.engine.wait(result)
        return perf_counter() - start, result

    def trace(self) -> dict[str, Any]:
        """Times tracing alone, of a function that was never traced before."""
        seconds = []
        for _ in range(TRACES):
            prepared = self.engine.prepare(self.implementation)
            start = perf_counter()
            self.engine.trace(prepared, self.arguments)
            seconds.append(perf_counter() - start)
        return {"trace": min(seconds)}

    def sample(self, seconds: float) -> dict[str, Any]:
        return {"samples": timing.sample(self.call, self.arguments, self.engine.wait, seconds)}

    def memory(self, case: str, tiny: bool) -> dict[str, Any]:
        self.choose(case, tiny)
        before = machine.resident_bytes(most=False)
        for _ in range(CALLS):
            result = self.call(*self.arguments)
            if self.engine.wait is not None:
                self.engine.wait(result)
        return {"before": before, "peak": machine.resident_bytes(most=True)}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        asked: str = request.pop("do")
        does: dict[str, Callable[..., dict[str, Any]]] = {
            "warm": self.warm,
            "first": self.first,
            "start": self.start,
            "trace": self.trace,
            "sample": self.sample,
            "memory": self.memory,
        }
        return does[asked](**request)


def main(name: str, table: str) -> None:
    # What a library prints goes to stderr: stdout is for answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        engine = engines.load(name)
    except ModuleNotFoundError as error:
        print(json.dumps({"absent": str(error)}), file=answers)
        return
    hello = {
        "version": engine.version,
        "compiles": engine.compiles,
        "has_tiers": engine.has_tiers,
    }
    print(json.dumps(hello), file=answers)
    worker = Worker(name, engine, import_module(table).CASES)
    for line in sys.stdin:
        print(json.dumps(worker.answer(json.loads(line))), file=answers)


if __name__ == "__main__":
    main(*sys.argv[1:])
