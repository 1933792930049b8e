"""How a target writes kernels: element by element, row by row, and from an anchor op."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tracejit.backends.tvm.analysis.kernel_stats import KernelStats
from tracejit.backends.tvm.analysis.mapped_loops import MappedLoop
from tracejit.backends.tvm.buffers.assignment import BufferAssignment
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.root_rules import Results, RootRule
from tracejit.backends.tvm.codegen.stores import Store
from tracejit.backends.tvm.fusion.row_fusion import RowKernel
from tracejit.backends.tvm.ir.tir import Stmt
from tracejit.backends.tvm.program.control_flow import WhileStep
from tracejit.backends.tvm.program.thunks import Fragment, Step
from tracejit.backends.tvm.tune.knobs import Knobs
from tracejit.graph import Instruction, Op


class Schedules(Protocol):
    """What `lower` asks when it writes a kernel; `codegen.scalar` has plain loops for all of it.

    A target that inherits has no special steps for loops.
    """

    def pointwise(
        self, frame: Frame, dimensions: Sequence[int], stores: Sequence[Store], cost: int
    ) -> Stmt:
        """Makes all ``stores`` for each element of ``dimensions``, which costs so much."""

    def rows(self, frame: Frame, kernel: RowKernel, results: Results) -> Stmt:
        """Several reductions and pointwise phases over each row; asked if limits have row_bytes."""

    def anchored(self, op: Op) -> RootRule | None:
        """What writes the kernels whose anchor is of an op; None for what has no schedule."""

    def is_thorough(self, stats: KernelStats, knobs: Knobs) -> bool:
        """Whether the build optimises a kernel more than its statistics ask for."""
        return False

    def whole_loop(
        self, loop: WhileStep, name: str, places: BufferAssignment
    ) -> Sequence[Step] | None:
        """The steps that run a loop without the host, if the target has such ones for it."""
        return None

    def iterations(
        self,
        mapped: MappedLoop,
        fragment: Fragment,
        state: Sequence[Instruction],
        constants: Sequence[Instruction],
        threads: int,
        name: str,
    ) -> Step | None:
        """The step whose ``threads`` each run whole iterations, ``fragment`` being one; asked if
        limits say runs_iterations.
        """
        return None
