"""Scatter: updates by one atomic operation of the device have a thread each.

With TRACEJIT_REPRODUCIBLE=1 in the environment floats are added in the order of their indices, so
that a program gives the same bits each time; atomic operations add them in any order.
"""

from __future__ import annotations

from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.root_rules import Results
from tracejit.backends.tvm.codegen.scalar import indexing
from tracejit.backends.tvm.cuda.table import rooted
from tracejit.backends.tvm.ir.tir import Evaluate, Expr, Stmt, tirx
from tracejit.cuda.settings import is_reproducible
from tracejit.graph import Instruction, Op
from tracejit.ops.computations import monoid
from tracejit.ops.elementwise import ADD, AND, MAX, MIN, OR
from tracejit.ops.indexing import SCATTER
from tracejit.shapes import ElementType

_INTEGERS = frozenset({ElementType.S32, ElementType.U32, ElementType.U64, ElementType.S64})
_ATOMIC: dict[Op, tuple[str, frozenset[ElementType]]] = {
    ADD: ("tj_atomic_add", _INTEGERS | {ElementType.F32, ElementType.F64}),
    MAX: ("tj_atomic_max", _INTEGERS),
    MIN: ("tj_atomic_min", _INTEGERS),
    AND: ("tj_atomic_and", _INTEGERS),
    OR: ("tj_atomic_or", _INTEGERS),
}
"""The prelude's functions, and the element types that they take."""


class _AtomicUpdates(indexing.ScalarUpdates):
    """Updates that are combined by a function of the prelude."""

    def __init__(self, frame: Frame, instruction: Instruction, results: Results) -> None:
        super().__init__(frame, instruction, results)
        self.is_unique = bool(instruction.attributes["unique_indices"])

    @property
    def function(self) -> str | None:
        """The function, if there is one."""
        op = monoid(self.combine)
        if self.types[0].is_floating and not self.is_unique and is_reproducible():
            return None
        name, types = _ATOMIC.get(op, ("", frozenset())) if op is not None else ("", frozenset())
        return name if len(self.types) == 1 and self.types[0] in types else None

    def combination(self, address: Expr) -> list[Stmt]:
        emitter = self.emitter()
        (target,), (update,) = self.targets, self.updates
        value = emitter.value(update, self.places)
        call = tirx.call_extern("int32", self.function, tirx.address_of(target[address]), value)
        return [*emitter.allocations, *emitter.statements, Evaluate(call)]


@rooted.attach(SCATTER)
def scatter(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """By atomic operations where the device has one, else in order; see `codegen.scalar`."""
    work = _AtomicUpdates(frame, instruction, results)
    if work.function is None:
        return indexing.scatter(frame, instruction, results)
    frame.schedule = "scatter by atomics"
    return indexing.scattered(work, [*work.outer, *work.window])
