"""The plain target: any C compiler makes its kernels, one by one and without libraries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.root_rules import Results, RootRule
from tracejit.backends.tvm.codegen.scalar.loops import pointwise
from tracejit.backends.tvm.codegen.scalar.table import scalar
from tracejit.backends.tvm.codegen.stores import Store
from tracejit.backends.tvm.fusion.row_fusion import RowKernel
from tracejit.backends.tvm.ir.limits import Limits
from tracejit.backends.tvm.ir.tir import Stmt
from tracejit.backends.tvm.plain.functions import NAMES
from tracejit.backends.tvm.target.libraries import NoLibraries
from tracejit.backends.tvm.target.mathematics import Mathematics
from tracejit.backends.tvm.target.memory_spaces import HostMemory
from tracejit.backends.tvm.target.schedules import Schedules
from tracejit.backends.tvm.target.target import Target
from tracejit.errors import CompilationError
from tracejit.graph import Op


class ScalarLoops(Schedules):
    """The portable part's own loops."""

    def pointwise(
        self, frame: Frame, dimensions: Sequence[int], stores: Sequence[Store], cost: int
    ) -> Stmt:
        return pointwise(frame, dimensions, stores, cost)

    def rows(self, frame: Frame, kernel: RowKernel, results: Results) -> Stmt:
        raise AssertionError("limits have no row_bytes")

    def anchored(self, op: Op) -> RootRule | None:
        return scalar.get(op)


def _refuse(*_: object) -> NoReturn:
    raise CompilationError("the plain target makes text in C, which this process does not run")


PLAIN = Target(
    "the plain target",
    Limits(),
    ScalarLoops(),
    Mathematics(NAMES),
    NoLibraries(),
    HostMemory(),
    _refuse,
    _refuse,
)
