"""Programs for a CPU that a test describes: `lower(entry, Machine(vector_bytes=32, threads=2))`."""

from __future__ import annotations

from collections.abc import Mapping

from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.cpu.processor import processor_of
from tracejit.backends.tvm.cpu.target import cpu_target
from tracejit.backends.tvm.lower import lowering
from tracejit.backends.tvm.program.program import Program
from tracejit.graph import Computation


def lower(
    entry: Computation, machine: Machine, aliases: Mapping[int, int] | None = None
) -> Program:
    """The program of a computation, its kernels written for ``machine``."""
    return lowering.lower(entry, cpu_target(processor_of(), machine), aliases)
