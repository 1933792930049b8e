"""Functions compiled for CUDA devices in one text, run on the emulated device and compared.

cases = [Case("softmax", tj.nn.softmax, [x], "team a row, in phases")]
built = [program_of(case, n) for n, case in enumerate(cases)]
binary = compiler().compile(joined([each.source for each in built]), ARCH)
outputs = built[0].executable(binary)([x])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import tracejit as tj
from tracejit.backends.artifact import unpack
from tracejit.cuda.nvrtc import Binary
from tracejit.runtime import importing_tvm
from tracejit.runtime.cuda_executable import CudaExecutable
from tracejit.tree_util import tree_leaves

with importing_tvm():
    from tracejit.backends.tvm.cuda.build import Source, packed, source_of
    from tracejit.backends.tvm.cuda.target import cuda_target
    from tracejit.backends.tvm.lower.lowering import lower
    from tracejit.backends.tvm.program.program import Program

ARCH = "sm_90a"


@dataclass
class Case:
    """A function, its arguments, and the schedules of its kernels, joined by ``; ``."""

    name: str
    function: Callable[..., Any]
    arguments: Sequence[np.ndarray]
    schedules: str
    tolerance: float = 1e-5


@dataclass
class Built:
    """A case's program and its CUDA C."""

    case: Case
    program: Program
    source: Source

    def executable(self, binary: Binary) -> CudaExecutable:
        """The program, from machine code that holds its functions."""
        data = packed(self.program, self.source, binary, ARCH)
        return CudaExecutable(data, unpack(data))

    @property
    def schedules(self) -> str:
        """Those of its kernels, in order."""
        return "; ".join(kernel.stats.schedule for kernel in self.program.kernels)

    def expected(self) -> list[np.ndarray]:
        """What the function returns on the CPU."""
        return [*map(np.asarray, tree_leaves(tj.jit(self.case.function)(*self.case.arguments)))]


def program_of(case: Case, number: int) -> Built:
    """A case, compiled as far as its CUDA C; its functions' names begin with ``number``."""
    module = tj.jit(case.function).lower(*case.arguments).module
    program = lower(module.entry, cuda_target(ARCH))
    program.check()
    return Built(case, program, source_of(program, f"c{number}_"))
