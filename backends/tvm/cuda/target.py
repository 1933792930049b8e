"""A CUDA device as a target: grids of threads, kernels as CUDA C.

cuda_target("sm_90a")
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.root_rules import Results, RootRule
from tracejit.backends.tvm.codegen.scalar.table import scalar
from tracejit.backends.tvm.codegen.stores import Store
from tracejit.backends.tvm.cpu.mathematics import complex as complex_mathematics
from tracejit.backends.tvm.cpu.mathematics.operations import formulas
from tracejit.backends.tvm.cuda.blocks import SHARED_BYTES
from tracejit.backends.tvm.cuda.build import build
from tracejit.backends.tvm.cuda.schedule.pointwise import pointwise
from tracejit.backends.tvm.cuda.schedule.rows import row_kernel
from tracejit.backends.tvm.cuda.table import rooted
from tracejit.backends.tvm.fusion.row_fusion import RowKernel
from tracejit.backends.tvm.ir.limits import Limits
from tracejit.backends.tvm.ir.tir import Stmt
from tracejit.backends.tvm.target.host_calls import ONLY_ON_HOSTS, HostLibraries
from tracejit.backends.tvm.target.launch import host_loop
from tracejit.backends.tvm.target.mathematics import Mathematics
from tracejit.backends.tvm.target.memory_spaces import HostMemory
from tracejit.backends.tvm.target.schedules import Schedules
from tracejit.backends.tvm.target.target import Target
from tracejit.graph import Op

__all__ = ["LIMITS", "CudaSchedules", "complex_mathematics", "cuda_target"]  # one for its formulas

LIMITS = Limits(stack_bytes=256, row_bytes=SHARED_BYTES - 4096, least_rows=64, device="GPU")
"""Arrays of a row take what shared memory the partial results leave."""


def cuda_target(arch: str) -> Target:
    """The target for devices of an architecture such as ``sm_90a``."""
    return Target(
        "CUDA devices",
        LIMITS,
        CudaSchedules(),
        Mathematics(formulas()),
        HostLibraries(ONLY_ON_HOSTS),
        HostMemory(),
        lambda program, progress: build(program, arch),
        partial(host_loop, memory=HostMemory()),
    )


class CudaSchedules(Schedules):
    """Grids of threads; see `cuda.schedule` and `cuda.roots`."""

    def pointwise(
        self, frame: Frame, dimensions: Sequence[int], stores: Sequence[Store], cost: int
    ) -> Stmt:
        return pointwise(frame, dimensions, stores)

    def rows(self, frame: Frame, kernel: RowKernel, results: Results) -> Stmt:
        return row_kernel(frame, kernel, results)

    def anchored(self, op: Op) -> RootRule | None:
        return rooted.get(op) or scalar.get(op)
