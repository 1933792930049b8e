"""Reduction kernels: Reduce, and ReduceWindow over a padded operand.

Loops over kept dimensions surround loops over reduced ones. If the reduced axis is contiguous
(rows), vectors of accumulators run along it and are combined at the end; if a kept axis is
contiguous (columns), vectors run along that. The order of combination depends on shapes only,
never on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable

from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.cpu.schedule.reduce.accumulators import Reducer
from tracejit.backends.tvm.cpu.schedule.reduce.columns import columns
from tracejit.backends.tvm.cpu.schedule.reduce.common import Reduction
from tracejit.backends.tvm.cpu.schedule.reduce.rows import rows
from tracejit.backends.tvm.ir.tir import Stmt


def reduction(frame: Frame, reducer: Reducer, cost: int) -> Stmt:
    """The whole kernel: kept loops outside, reduced loops inside, results stored at the end."""
    kernel = Reduction(frame, reducer, cost)
    vectorisable = kernel.reducer.has_identities
    inner = kernel.reduced_axes[-1] if kernel.reduced_axes else None
    outer = kernel.kept_axes[-1] if kernel.kept_axes else None
    ways: dict[str, Callable[[], Stmt]] = {}
    if inner is not None and vectorisable:
        ways["rows"] = lambda: rows(kernel, inner)
    if outer is not None:
        ways["columns"] = lambda: columns(kernel, outer)
    if kernel.has_windows_along(outer):
        pick = "columns"
    elif "rows" in ways and kernel.runs_along(inner):
        pick = "rows"
    elif kernel.runs_along(outer):
        pick = "columns"
    else:
        pick = "rows" if "rows" in ways else "numbers"
        ways["numbers"] = lambda: columns(kernel, None)
    names = dict.fromkeys((pick, *ways))
    return kernel.frame.choices.of("vectors along", ((n, ways[n]) for n in names))()
