"""Sort of values by a callback to NumPy, whose vector code is several times faster than radix
sort.
"""

from __future__ import annotations

import math

from tracejit.backends.abi import SORT_VALUES
from tracejit.backends.tvm.analysis.sort_keys import AS_THEY_ARE, Order
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.cpu.machine import machine_of
from tracejit.backends.tvm.cpu.schedule.sort.rows import Sorting
from tracejit.backends.tvm.ir.dtypes import register_dtype
from tracejit.backends.tvm.ir.tir import Evaluate, Stmt, i64, tirx

# The least elements: smaller arrays are sorted before the callback returns.
_LIBRARY_FROM = 1 << 12
# The number of threads from which radix sorts of several rows are faster together.
_MANY_THREADS = 5


def suits_library(frame: Frame, work: Sorting, order: Order) -> bool:
    """Whether a sort is of values alone, and NumPy is the fastest."""
    size = work.operands[0].array_shape.size
    threads = min(machine_of(frame).threads, size // work.length)
    return (
        machine_of(frame).python
        and len(work.operands) == 1
        and [operand for _, operand in work.targets] == list(work.operands)
        and work.kept == work.length
        and order.element_type in AS_THEY_ARE
        and size >= _LIBRARY_FROM
        and threads < _MANY_THREADS
    )


def library_sort(frame: Frame, work: Sorting, order: Order) -> Stmt:
    """The whole kernel: one callback."""
    (operand,) = work.operands
    ((target, _),) = work.targets
    outer = math.prod(work.sizes[: work.dimension])
    inner = math.prod(work.sizes[work.dimension + 1 :])
    return Evaluate(
        tirx.call_packed(
            SORT_VALUES,
            register_dtype(order.element_type),
            i64(order.descending),
            i64(order.total),
            *map(i64, (outer, work.length, inner)),
            frame.inputs[operand].data,
            target.data,
        )
    )
