"""The derived graphs of a transformation, for graphs that a function records repeatedly.

answer = DerivedGraph("loss", [loss, gradient])     recorded once
answer(trace)                                 for what stands behind the trace's arguments

First it is interpreted. It is compiled after a number of calls that cost as much as compiling: the
number follows from the graph alone, so that a script's results are the same each time it runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from tracejit.backends.target import CPU
from tracejit.errors import TracejitError
from tracejit.graph import Computation, Instruction, Module
from tracejit.loading import load
from tracejit.ops.constants import PARAMETER, parameter, tuple_
from tracejit.trace.context import Trace
from tracejit.trace.evaluation import EvaluationPlan
from tracejit.transforms.jit.hooks import Executable, compile_module
from tracejit.transforms.jit.staging import Output
from tracejit.traversal import in_order, instructions, substitute

LARGEST = 4096
"""Instructions of the largest graph that is compiled unasked."""
FEWEST, MOST = 2, 100
"""Calls that are interpreted before a graph is compiled; more of large ones."""
# Seconds on a processor of today: of compiling a graph and each of its instructions, and of
# interpreting an instruction and each floating-point operation or byte of it.
COMPILING, COMPILING_ONE = 0.3, 2.5e-3
INTERPRETING_ONE, OPERATION = 2e-6, 3e-10


class DerivedGraph:
    """The ``outputs`` of one graph without side effects, as values.

    A graph that several devices work out together, each one partition, is compiled at once.
    """

    def __init__(self, title: str, outputs: Sequence[Output], partitions: int = 1) -> None:
        self._partitions = partitions
        self._title = title
        self._outputs = outputs
        self._roots = [output.instruction for output in outputs]
        self._inputs = [i for i in in_order(self._roots) if i.op is PARAMETER]
        self._plan: EvaluationPlan | None = None
        self._program: Executable | None = None
        self._left: float | None = None

    def __call__(self, trace: Trace) -> list[Any]:
        """The values for the arguments of a trace that recorded this graph; all are known."""
        return self.of({one: trace.arguments[one].value for one in self._inputs})

    def of(self, known: Mapping[Instruction, Any]) -> list[Any]:
        """The values for what stands behind the inputs."""
        values = self._values([known[one] for one in self._inputs])
        return [o.handed_out(v) for o, v in zip(self._outputs, values, strict=True)]

    def _values(self, arguments: Sequence[Any]) -> list[np.ndarray]:
        if self._partitions > 1 and self._program is None:
            self._program = compile_module(self._module(), CPU, check=False)
        if self._program is not None:
            return self._program.run(arguments) or self._program(arguments)
        if self._plan is None:
            self._plan = EvaluationPlan(self._roots, self._inputs)
        elif self._left is None:
            self._left = calls_before_compiling(self._module().entry) - 1
        else:
            self._left -= 1
            if self._left <= 0:
                self._left = math.inf
                with suppress(TracejitError):  # What cannot be compiled goes on as it was.
                    program = compile_module(self._module(), CPU, check=False)
                    results = program(arguments)
                    self._program = program
                    return results
        return [np.array(value) for value in self._plan(arguments)]

    def _module(self) -> Module:
        """The graph with its inputs numbered as they are given."""
        inputs = [parameter(n, one.shape) for n, one in enumerate(self._inputs)]
        known = dict(zip(self._inputs, inputs, strict=True))
        results = substitute(self._roots, known)
        root = results[0] if len(results) == 1 else tuple_(results)
        return Module(
            self._title,
            Computation(self._title, tuple(inputs), root),
            num_partitions=self._partitions,
        )


def calls_before_compiling(entry: Computation) -> float:
    """How often a graph is interpreted before it is compiled."""
    count = len(instructions(entry))
    if count > LARGEST:
        return math.inf
    costs = load("tracejit.passes.cost_analysis").cost_analysis(entry)
    if any(op in costs["ops"] for op in ("Scan", "While")) or costs["unknown loops"]:
        return FEWEST
    operations = costs["flops"] + costs["bytes accessed"]
    interpreting = INTERPRETING_ONE * count + OPERATION * operations
    calls = (COMPILING + COMPILING_ONE * count) / interpreting
    return max(FEWEST, min(int(calls), MOST + count // 8))
