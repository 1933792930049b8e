"""Row kernels of the CPU: phases in vectors, for any vector axis.

The parallel loop over rows is outside; inside, the phases follow one another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tracejit.backends.tvm.analysis.cost_model import cost_of
from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.codegen.loop_nest import Axis
from tracejit.backends.tvm.cpu.schedule.lanes import as_index, side_by_side
from tracejit.backends.tvm.cpu.schedule.reduce.accumulators import Reducer, Sweep
from tracejit.backends.tvm.cpu.schedule.reduce.combining import ReduceSpec
from tracejit.backends.tvm.fusion.kernel import Fusion, backward_slice
from tracejit.backends.tvm.fusion.row_buffers import RowEmitter
from tracejit.backends.tvm.fusion.row_phases import RowPhases
from tracejit.backends.tvm.ir.affine import Index
from tracejit.backends.tvm.ir.tir import Expr, Stmt


class VectorPhases(RowPhases):
    """A row kernel whose phases are loops of vectors."""

    @property
    def pieces(self) -> int:
        """The number of pieces of the loop over rows."""
        return self.frame.pieces(self.frame.cost * math.prod(self.rows.dimensions))

    def index(self, lane: Expr) -> Expr:
        return as_index(lane, self.dtype)

    def vector(self, phase: Fusion, axis: Axis, lanes: int) -> list[Stmt]:
        """A pointwise phase for ``lanes`` elements from the current position on ``axis``."""
        start = self.positions[axis.last] if axis.members else None

        def stand(lane: Expr) -> RowEmitter:
            if start is not None:
                self.positions[axis.last] = start + self.index(lane)
            return self.emitter(phase, lanes, lane)

        statements = side_by_side(lanes, stand, lambda emitter, lane: self.store(emitter, phase))
        if start is not None:
            self.positions[axis.last] = start
        return statements


class PhaseSweep(Sweep):
    """The reductions of a phase, which share one pass over the row."""

    def __init__(self, owner: VectorPhases, phase: Fusion) -> None:
        rows = owner.rows
        order = (*rows.outer, *rows.inner)

        def locate(at: Sequence[Index], over: Sequence[Index]) -> list[Index]:
            where = dict(zip(order, (*at, *over), strict=True))
            return [where[d] for d in range(len(order))]

        reducer = Reducer(
            parts=tuple(
                ReduceSpec(h.operands[:1], h.operands[1:], h.attributes["to_apply"])
                for h in phase.anchors
            ),
            kept=rows.row_sizes,
            reduced=rows.inner_sizes,
            locate=locate,
            anchors=phase.anchors,
            results=(),
        )
        super().__init__(owner.frame, reducer, owner.row_space, owner.inner_space, owner.positions)
        self.owner = owner
        self.phase = phase

    @property
    def cost(self) -> int:
        """The cost of an element of this phase, not of the whole kernel."""
        known = self.owner.known[id(self.phase)]
        terms = [operand for anchor in self.phase.anchors for operand in anchor.operands]
        made = backward_slice(terms, known.__contains__)
        return 1 + sum(cost_of(i) for i in made if i not in known)

    def emitter(self, lanes: int = 1, lane: Expr | None = None) -> Emitter:
        return self.owner.emitter(self.phase, lanes, lane)
