"""Programs to verify: lowered, but never compiled.

for name, program in programs(): ...
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from tests.fuzz.choices import Choices
from tests.fuzz.graphs import drawn
from tests.samples.cases import all_samples, joint_module
from tests.samples.values import element_types
from tracejit.backends.target import CPU
from tracejit.errors import TracejitError
from tracejit.graph import Module
from tracejit.hlo import parse
from tracejit.runtime import importing_tvm

with importing_tvm():
    from tests.lowered import lower
    from tracejit.backends.tvm.buffers.donation import aliases_of
    from tracejit.backends.tvm.cpu.machine import Machine
    from tracejit.backends.tvm.cpu.processor import processor_of
    from tracejit.backends.tvm.program.program import Program

TESTS = Path(__file__).parents[1]
LARGE = 60_000


def samples(every: int = 1) -> Iterator[tuple[str, Module]]:
    """One module for each sample record of an op, or for one in ``every``."""
    for sample in all_samples()[::every]:
        yield f"{sample.op}-{sample.label}", joint_module(sample, element_types(sample))


def dumps() -> Iterator[tuple[str, Module]]:
    """The HLO text that XLA wrote."""
    for file in sorted((TESTS / "hlo" / "dumps").glob("*.hlo")):
        yield file.name, parse(file.read_text())


def random_graphs(count: int, first: int = 0) -> Iterator[tuple[str, Module]]:
    """Random graphs, one in three of large arrays."""
    for seed in range(first, first + count):
        elements = LARGE if seed % 3 == 0 else 1500
        yield f"seed {seed}", drawn(Choices(random.Random(seed).randint), 3, 12, elements)


def lowered(
    modules: Iterator[tuple[str, Module]], machine: Machine | None = None
) -> Iterator[tuple[str, Program]]:
    """The programs of those that can be compiled, by default for the processor at hand."""
    machine = machine or processor_of(CPU).machine
    for name, module in modules:
        try:
            yield name, lower(module.entry, machine, aliases_of(module))
        except TracejitError:
            continue
