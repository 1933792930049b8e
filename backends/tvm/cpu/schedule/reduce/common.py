"""Base class of reduction kernels, used while they are lowered: merged axes,
splitting, epilogue.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tracejit.backends.tvm.analysis.element_rules import Value
from tracejit.backends.tvm.codegen.access_analysis import Accesses
from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.loop_nest import Axis, Count, Space, merge, settle
from tracejit.backends.tvm.codegen.stores import identity
from tracejit.backends.tvm.cpu.schedule.reduce.accumulators import (
    Accumulators,
    Range,
    Reducer,
    Sweep,
)
from tracejit.backends.tvm.ir.tir import Expr, Stmt, const, tirx
from tracejit.backends.tvm.tune.knobs import either
from tracejit.graph import Instruction

# The least elements of a reduction with few results that is cut into parallel parts.
PARTS_FROM = 1 << 15
PARTS = 8
# The most elements of a window that is reduced in place, and the number of adjacent windows.
WINDOW = 64
SIDE_BY_SIDE = 8


class Reduction(Sweep):
    """A reduction kernel: its loads, and its kept and reduced axes."""

    def __init__(self, frame: Frame, reducer: Reducer, cost: int) -> None:
        super().__init__(frame, reducer, Space(reducer.kept), Space(reducer.reduced), {})
        self.visible = frame.inputs.without(
            {*(root for root, _ in reducer.results), *reducer.anchors}
        )
        accesses = settle([self.kept, self.reduced], self._ask, self._is_input)
        addresses = [load.address for load in accesses.loads]
        self.loads = addresses[: self._operand_loads]
        addresses.append(identity(reducer.kept)(self.kept.indices))
        self.kept_axes = merge(self.kept.variables, addresses, accesses.opaque)
        self.reduced_axes = merge(self.reduced.variables, addresses, accesses.opaque)
        self.kept_size = _size(self.kept_axes)
        self.reduced_size = _size(self.reduced_axes)
        self.work = cost * self.kept_size * self.reduced_size

    def _is_input(self, instruction: Instruction) -> bool:
        return instruction in self.visible

    def _ask(self, scope: Accesses) -> None:
        where = self.reducer.locate(self.kept.indices, self.reduced.indices)
        for operand in self.reducer.operands:
            scope.value(operand, where)
        self._operand_loads = len(scope.loads)
        for initial in self.reducer.initial:
            scope.value(initial, ())
        scope.known.update(self.reducer.anchors)
        for root, _ in self.reducer.results:
            if root not in scope.known:
                scope.result(root, self.kept.indices)

    def runs_along(self, axis: Axis | None) -> bool:
        """Whether most loads are contiguous along ``axis``."""
        if axis is None:
            return False
        steps = [address.coefficient(axis.last) for address in self.loads]
        moving = [step for step in steps if step]
        return not moving or sum(step == 1 for step in moving) * 2 > len(moving)

    def has_windows_along(self, axis: Axis | None) -> bool:
        """Whether few elements are combined, all with stride 1 or 2 along ``axis``.

        Then vectors run along ``axis``.
        """
        if axis is None or not self.loads or self.reduced_size > WINDOW:
            return False
        steps = [address.coefficient(axis.last) for address in self.loads]
        return axis.extent >= SIDE_BY_SIDE and all(step in (1, 2) for step in steps)

    def parallel(self) -> int:
        return self.frame.pieces(self.work)

    def emitter(self, lanes: int = 1, lane: Expr | None = None) -> Emitter:
        return Emitter(
            self.visible,
            self.positions,
            lanes=lanes,
            lane=lane,
            uses=self.frame.uses,
            index_dtype=self.dtype,
        )

    def finish(self, emitter: Emitter, values: Sequence[Value]) -> list[Stmt]:
        """Round the results, run the epilogue and store."""
        self.settle(emitter, values)
        address = emitter.expression(identity(self.reducer.kept)(self.kept.indices))
        written: list[Stmt] = []
        for root, target in self.reducer.results:
            known = emitter.given.get(root)
            value = emitter.result(root, self.kept.indices) if known is None else known
            made = emitter.store(target, address, value, root.array_shape.element_type)
            written.extend(made if isinstance(made, list) else [made])
        return written

    def finished(self, total: Accumulators) -> list[Stmt]:
        return self.scalar(lambda emitter, at: self.finish(emitter, total.read(emitter, at)))

    def in_parts(self, independent: int) -> bool:
        """Whether to split the reduced axis: few results of many elements would leave threads
        idle.
        """
        can_be = (
            self.reducer.has_identities
            and independent < 2 * PARTS
            and bool(self.reduced_axes)
            and self.reduced_axes[0].extent >= PARTS
        )
        pick = self.work >= PARTS_FROM
        return can_be and self.frame.choices.of("sums", either(pick, f"{PARTS} parts", "whole"))

    def part(self, axes: Sequence[Axis], number: Expr) -> list[Range]:
        """Part ``number`` of the first axis, and the other axes whole."""
        first, *others = axes
        size = -(-first.extent // PARTS)
        begin, extent = number * self.number(size), self.number(size)
        if first.extent % PARTS and self.may_repeat:
            begin = tirx.min(begin, self.number(first.extent - size))
        elif first.extent % PARTS:
            begin = tirx.min(begin, self.number(first.extent))
            extent = tirx.min(extent, self.number(first.extent) - begin)
        whole = [Range(a, self.number(0), self.number(a.extent)) for a in others]
        return [Range(first, begin, extent), *whole]


def _size(axes: Sequence[Axis]) -> int:
    return math.prod(axis.extent for axis in axes)


def product(counts: Sequence[Count]) -> int:
    """The number of iterations of the nest."""
    return math.prod(count.extent for count in counts)


def numbered(counts: Sequence[Count], slot: list[Expr], dtype: str) -> list[Count]:
    """``counts`` that also store the linear index of the current iteration in ``slot``."""
    if not counts:
        slot[0] = const(0, dtype)
        return []
    places: list[Expr] = [const(0, dtype)] * len(counts)

    def counting(position: int, count: Count) -> Count:
        def place(number: Expr) -> None:
            places[position] = number
            count.place(number)
            total = const(0, dtype)
            for each, size in zip(places, counts, strict=True):
                total = total * const(size.extent, dtype) + each
            slot[0] = total

        return Count(count.extent, place)

    return [counting(i, count) for i, count in enumerate(counts)]
