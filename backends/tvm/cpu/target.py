"""The CPU as a target: its schedules, its mathematics, LLVM, and NumPy's libraries.

cpu_target(processor_of(Target("cpu:znver3")))
cpu_target(processor, replace(processor.machine, vector_bytes=32))     # narrower kernels
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tracejit.backends.object_store import ObjectStore
from tracejit.backends.tvm.analysis.kernel_stats import KernelStats
from tracejit.backends.tvm.analysis.mapped_loops import MappedLoop
from tracejit.backends.tvm.buffers.assignment import BufferAssignment
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.root_rules import Results, RootRule
from tracejit.backends.tvm.codegen.stores import Store
from tracejit.backends.tvm.cpu.iterations import on_threads
from tracejit.backends.tvm.cpu.loop_kernel import in_registers
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.cpu.mathematics import complex as complex_mathematics
from tracejit.backends.tvm.cpu.mathematics.operations import formulas
from tracejit.backends.tvm.cpu.objects.build import build
from tracejit.backends.tvm.cpu.objects.in_process import entry_of
from tracejit.backends.tvm.cpu.objects.llvm_passes import needs_few_passes
from tracejit.backends.tvm.cpu.processor import Processor
from tracejit.backends.tvm.cpu.root_rules import rooted
from tracejit.backends.tvm.cpu.schedule.pointwise import pointwise
from tracejit.backends.tvm.cpu.schedule.rows.row_kernel import row_kernel
from tracejit.backends.tvm.fusion.row_fusion import RowKernel
from tracejit.backends.tvm.ir.tir import Stmt
from tracejit.backends.tvm.program.control_flow import WhileStep
from tracejit.backends.tvm.program.thunks import Fragment, Step
from tracejit.backends.tvm.target.host_calls import HostLibraries
from tracejit.backends.tvm.target.mathematics import Mathematics
from tracejit.backends.tvm.target.memory_spaces import HostMemory
from tracejit.backends.tvm.target.target import Target
from tracejit.backends.tvm.tune.knobs import Knobs, either
from tracejit.graph import Instruction, Op

__all__ = ["CpuSchedules", "complex_mathematics", "cpu_target"]  # the second for its formulas


def cpu_target(
    processor: Processor, machine: Machine | None = None, store: ObjectStore | None = None
) -> Target:
    """The target for a processor, with kernels for ``machine`` if they are to be other ones.

    Object files that programs share are kept in ``store``.
    """
    return Target(
        "the CPU",
        machine or processor.machine,
        CpuSchedules(),
        Mathematics(formulas()),
        HostLibraries(),
        HostMemory(),
        lambda program, progress: build(program, processor, progress, store),
        partial(entry_of, target=processor),
    )


class CpuSchedules:
    """Loops in vectors and on threads, in TIR; see `cpu.schedule` and `cpu.roots`."""

    def pointwise(
        self, frame: Frame, dimensions: Sequence[int], stores: Sequence[Store], cost: int
    ) -> Stmt:
        return pointwise(frame, dimensions, stores, cost)

    def rows(self, frame: Frame, kernel: RowKernel, results: Results) -> Stmt:
        return row_kernel(frame, kernel, results)

    def anchored(self, op: Op) -> RootRule | None:
        return rooted.get(op)

    def is_thorough(self, stats: KernelStats, knobs: Knobs) -> bool:
        return needs_few_passes(stats) and knobs.of("passes of LLVM", either(False, "all", "few"))

    def whole_loop(
        self, loop: WhileStep, name: str, places: BufferAssignment
    ) -> Sequence[Step] | None:
        return in_registers(loop, name, places)

    def iterations(
        self,
        mapped: MappedLoop,
        fragment: Fragment,
        state: Sequence[Instruction],
        constants: Sequence[Instruction],
        threads: int,
        name: str,
    ) -> Step | None:
        return on_threads(mapped, fragment, state, constants, threads, name)
