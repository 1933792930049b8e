"""Slabs: zero-padded copies of the left operand's blocks, in which no window leaves memory.

A slab holds the images, in features and positions on axes that a unit of work needs (and, across
groups, the out features, each with its own group's in features). Its dimensions have the order
that they have in the operand, so that copies are contiguous.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tracejit.backends.tvm.cpu.kernels.arithmetic import Parts
from tracejit.backends.tvm.cpu.kernels.conv.blocks import SumRange, TilePosition, Unit
from tracejit.backends.tvm.cpu.kernels.conv.correlation import Correlation, SpatialAxis
from tracejit.backends.tvm.cpu.kernels.conv.direct_plan import (
    Across,
    Dimension,
    DirectPlan,
    Role,
    positions,
)
from tracejit.backends.tvm.cpu.kernels.conv.planes import Planes, in_planes
from tracejit.backends.tvm.cpu.kernels.tile import not_repeated, rolled, vector, vector_loop
from tracejit.backends.tvm.ir.tir import (
    Buffer,
    Expr,
    IfThenElse,
    Stmt,
    i32,
    loop,
    seq,
    store,
    tirx,
)

_IMAGE, _FEATURE, _AXES = 0, 1, 2

_TABLE_LANES = 8
"""The number of addresses that are computed together."""


@dataclass(frozen=True)
class SlabSource:
    """The source of a slab's dimension: index i of the operand, for ``count`` i from ``first`` on,
    goes to position i * ``step`` + ``offset``.
    """

    first: Expr
    count: int | Expr
    step: int
    offset: Expr


class Slab:
    """A slab for each worker, and the table of operand offsets of a tile's products."""

    def __init__(self, problem: Correlation, plan: DirectPlan) -> None:
        self._problem = problem
        self._plan = plan
        axes = problem.axes
        self._windows = (plan.window, *(axis.window for axis in axes[1:]))
        self._blocks = [plan.dimensions[plan.of_role(Role.AXIS, i)].block for i in range(len(axes))]
        self._extents = [plan.dimensions[plan.of_role(Role.IMAGE)].block, plan.depth]
        self._extents += [
            positions(window, axis.dilation, axis.stride, block)
            for axis, window, block in zip(axes, self._windows, self._blocks, strict=True)
        ]
        if plan.across is Across.GROUPS:
            self._extents.append(plan.column.extent)
        self._planes: Planes | None = None
        if plan.across is Across.PIXELS and in_planes(axes[-1], plan.lanes):
            self._planes = Planes(
                problem.arithmetic, plan.workers, plan.lanes, axes[-1].stride, self._extents[-1]
            )
        self._order = self._memory_order()
        self._steps = [1] * len(self._extents)
        step = 1
        for dimension in reversed(self._order):
            self._steps[dimension] = step
            is_planes = self._planes is not None and dimension == len(self._extents) - 1
            step *= self._planes.size if is_planes and self._planes else self._extents[dimension]
            # Neighbours this far apart would conflict in the sets of the first-level cache.
            if step * problem.arithmetic.itemsize % 4096 == 0:
                step += plan.lanes
        # Padding: the last vector may read beyond the last number; those lanes are not used.
        self._size = step + plan.column.tile * axes[-1].stride
        self._slab: Buffer = problem.arithmetic.scratch("slab", (plan.workers, self._size))
        products = plan.depth * math.prod(self._windows)
        self._table = tirx.decl_buffer((products,), "int32", name="table")

    @property
    def scratch(self) -> tuple[Buffer, ...]:
        """The buffers that slabs need."""
        row = () if self._planes is None else (self._planes.row,)
        return (self._table, self._slab, *row)

    def _memory_order(self) -> list[int]:
        axes = [_AXES + i for i in range(len(self._problem.axes))]
        if self._plan.across is Across.GROUPS:
            return [_IMAGE, _FEATURE, *axes, _AXES + len(axes)]
        if self._plan.across is Across.PIXELS:
            # Vectors run along the last axis, even if another one is innermost in the operand.
            return [_IMAGE, _FEATURE, *axes]
        access = self._problem.left_access
        if None in access.strides or not access.strides:
            return [_IMAGE, _FEATURE, *axes]
        problem = self._problem
        features = problem.groups * problem.in_features
        sizes = (problem.batch, features, *(axis.input for axis in problem.axes))
        # A dimension of one index may stand anywhere: outermost.
        return sorted(
            range(len(sizes)), key=lambda d: -access.step(d) if sizes[d] > 1 else -math.inf
        )

    def _distance(self, dimension: Dimension) -> int:
        """The distance in the slab between the operands of adjacent results, for one product."""
        if dimension.role is Role.IMAGE:
            return self._steps[_IMAGE]
        if dimension.role is Role.AXIS:
            axis = dimension.axis
            if self._planes is not None and axis == len(self._problem.axes) - 1:
                return 1
            return self._problem.axes[axis].stride * self._steps[_AXES + axis]
        return self._steps[-1] if self._plan.across is Across.GROUPS else 0

    def fill_table(self) -> Stmt:
        """Fill the table: the offset of each product's operand from the tile's first operand."""
        last = len(self._windows) - 1

        def nest(depth: int, q: Expr, address: Expr) -> Stmt:
            window, axis = self._windows[depth], self._problem.axes[depth]
            step = axis.dilation * self._steps[_AXES + depth]
            if depth < last:
                return loop(window, lambda t: nest(depth + 1, q * window + t, address + t * step))

            def put(t: Expr) -> Stmt:
                planes = self._planes
                place = t * step if planes is None else planes.place(t * axis.dilation)
                return store(self._table, q * window + t, address + place)

            return vector_loop(window, _TABLE_LANES, put)

        return loop(self._plan.depth, lambda c: nest(0, c, c * self._steps[_FEATURE]))

    def address(self, unit: Unit, place: TilePosition) -> Expr:
        """The address in the slab of the first operand of one tile."""
        base: Expr = i32(0)
        for d, at, origin in zip(self._plan.dimensions, place.start, unit.start, strict=True):
            base = base + (at - origin) * self._distance(d)
        return base

    def load(self, worker: Expr, first: Expr, q: Expr, rows: Sequence[Expr], column: Expr) -> Parts:
        """The operand of product ``q`` for the row with these indices and for a column.

        ``first`` is the tile's `address`.
        """
        # In 64 bits, so that constants are folded into the addressing mode.
        address = tirx.Cast("int64", first) + tirx.Cast("int64", self._table[q])
        for d, index in zip(self._plan.dimensions, [*rows, column], strict=True):
            address = address + index * self._distance(d)
        return self._problem.arithmetic.load(self._slab, worker, address)

    @property
    def _is_covered(self) -> bool:
        """Whether every position that a window reads holds an input."""
        return all(_is_covered(axis) for axis in self._problem.axes)

    @property
    def _moves(self) -> bool:
        """Whether inputs lie on other positions for some units or ranges than for others."""
        blocked = any(d.role is Role.AXIS and d.blocks > 1 for d in self._plan.dimensions)
        return blocked or self._plan.parts[1] > 1

    def prepare(self, worker: Expr) -> list[Stmt]:
        """Statements that a worker runs once.

        A slab without padding is cleared too, since vectors read the numbers behind its rows.
        """
        return [] if self._moves and not self._is_covered else [self._clear(worker)]

    def _clear(self, worker: Expr) -> Stmt:
        arithmetic = self._problem.arithmetic
        whole = vector_loop(
            self._size,
            self._plan.lanes,
            lambda i: arithmetic.store(self._slab, [worker, i], arithmetic.zero),
        )
        return seq(whole, [] if self._planes is None else [self._planes.clear(worker)])

    def fill(self, unit: Unit, part: SumRange) -> Stmt:
        """Copy the operands of a range of a unit's sums."""
        problem, plan = self._problem, self._plan
        sources = [
            _neighbours(unit.start[plan.of_role(Role.IMAGE)], self._extents[_IMAGE]),
            _neighbours(part.feature, part.features),
        ]
        for i, axis in enumerate(problem.axes):
            dimension = plan.of_role(Role.AXIS, i)
            origin: int | Expr = 0
            if plan.dimensions[dimension].blocks > 1:
                origin = unit.start[dimension] * axis.stride
            if i == 0 and plan.parts[1] > 1:
                origin = origin + part.tap * axis.dilation
            sources.append(_inside(axis, origin, self._extents[_AXES + i]))
        if plan.across is Across.GROUPS:
            sources.append(_neighbours(i32(0), plan.column.extent))

        def element(n: Expr, c: Expr, *rest: Expr) -> Parts:
            of_group = unit.group
            if plan.across is Across.GROUPS:
                of_group = rest[-1] // problem.out_features
            at = rest[: len(problem.axes)]
            return problem.left(n, of_group * problem.in_features + c, *at)

        copied = self._copy(unit.worker, sources, element)
        if self._moves and not self._is_covered:
            return seq(self._clear(unit.worker), copied)
        return copied

    def _copy(
        self, worker: Expr, sources: Sequence[SlabSource], element: Callable[..., Parts]
    ) -> Stmt:
        def nest(depth: int, indices: dict[int, Expr], address: Expr) -> Stmt:
            if depth == len(self._order):
                value = element(*(indices[d] for d in range(len(indices))))
                return self._problem.arithmetic.store(self._slab, [worker, address], value)
            dimension = self._order[depth]
            source = sources[dimension]

            def body(i: Expr) -> Stmt:
                index = source.first + i
                place = (index * source.step + source.offset) * self._steps[dimension]
                return nest(depth + 1, {**indices, dimension: index}, address + place)

            if depth < len(self._order) - 1:
                is_known = isinstance(source.count, int) and source.count
                # LLVM would unroll outer loops of unknown length, and search for addresses in each
                # iteration.
                return (rolled if is_known else not_repeated)(source.count, body)
            if self._planes is None:
                return _run(source.count, self._plan.lanes, body)
            planes = self._planes

            def put(i: Expr) -> Stmt:
                index = source.first + i
                value = element(*({**indices, dimension: index}[d] for d in range(len(sources))))
                place = index * source.step + source.offset
                return self._problem.arithmetic.store(planes.row, [worker, place], value)

            return seq(
                _run(source.count, self._plan.lanes, put),
                planes.deal(worker, self._slab, address),
            )

        return nest(0, {}, i32(0))


def _neighbours(first: Expr, count: int | Expr) -> SlabSource:
    return SlabSource(first, count, 1, -first)


def _inside(axis: SpatialAxis, origin: int | Expr, extent: int) -> SlabSource:
    """The inputs on ``extent`` positions from ``origin`` on, counted from the first tap of the
    first window.
    """
    spread = axis.base_dilation
    offset = axis.low - origin
    begin, end = (spread - 1 - offset) // spread, (extent - 1 - offset) // spread + 1
    if isinstance(offset, int):
        begin = max(begin, 0)
        return SlabSource(i32(begin), max(min(end, axis.input) - begin, 0), spread, i32(offset))
    begin, end = tirx.max(begin, i32(0)), tirx.min(end, i32(axis.input))
    return SlabSource(begin, tirx.max(end - begin, i32(0)), spread, offset)


def _is_covered(axis: SpatialAxis) -> bool:
    if not isinstance(axis.low, int):
        return False
    last = positions(axis.window, axis.dilation, axis.stride, axis.result) - 1 - axis.low
    return axis.base_dilation == 1 and axis.low <= 0 and last < axis.input


def _run(extent: int | Expr, lanes: int, body: Callable[[Expr], Stmt]) -> Stmt:
    """``body(i)`` for i in range(extent), vectorised if at least one vector fits; some i are
    repeated.
    """

    def vectors() -> Stmt:
        most = extent - lanes

        def one(q: Expr) -> Stmt:
            start = q * lanes
            if not isinstance(extent, int) or extent % lanes:
                start = tirx.min(start, most)
            return vector(lanes, lambda v: body(start + v))

        count = (extent + (lanes - 1)) // lanes
        return rolled(count, one) if isinstance(count, int) else loop(count, one)

    if isinstance(extent, int):
        if extent >= lanes:
            return vectors()
        return vector_loop(extent, lanes, body) if extent else seq(loop(0, body))
    return IfThenElse(extent >= lanes, vectors(), loop(extent, body))
