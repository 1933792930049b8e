"""Stores the sums of a convolution's register tile: each result once, contiguously."""

from __future__ import annotations

from tracejit.backends.tvm.cpu.kernels.arithmetic import Parts
from tracejit.backends.tvm.cpu.kernels.conv.blocks import TilePosition, Unit
from tracejit.backends.tvm.cpu.kernels.conv.correlation import Correlation
from tracejit.backends.tvm.cpu.kernels.conv.direct_plan import Dimension, DirectPlan, Role, horner
from tracejit.backends.tvm.cpu.kernels.tile import RegisterTile, vector_loop
from tracejit.backends.tvm.ir.tir import Expr, IfThenElse, Stmt, i32, loop


class Results:
    """Stores the sums that lie in a tile's panel."""

    def __init__(self, problem: Correlation, plan: DirectPlan, tile: RegisterTile) -> None:
        self._problem = problem
        self._plan = plan
        self._tile = tile
        self._sizes = [row.tile for row in plan.rows]
        # Vectors run along the last row dimension if its results are contiguous in memory and
        # those of the column dimension are not.
        self._along_rows = not self._walks(plan.column) and self._walks(plan.rows[-1])

    def _walks(self, dimension: Dimension) -> bool:
        index = {Role.IMAGE: 0, Role.FEATURE: 1, Role.AXIS: 2 + dimension.axis}[dimension.role]
        return self._problem.result_access.walks(index)

    def store(self, unit: Unit, place: TilePosition) -> Stmt:
        """Store the tile's results, without those that overlap with earlier tiles."""
        column = self._plan.column
        full, tail = divmod(column.extent, column.tile)
        whole = self._columns(unit, place, 0, column.tile)
        if not tail:
            return whole
        if not full:
            return self._columns(unit, place, 0, tail)
        moved = column.role is Role.AXIS
        rest = self._columns(unit, place, column.tile - tail if moved else 0, tail)
        return IfThenElse(place.nominal[-1] + column.tile <= column.extent, whole, rest)

    def _columns(self, unit: Unit, place: TilePosition, first: int, count: int) -> Stmt:
        """Store ``count`` columns, from column ``first`` of the tile on, of all its rows."""
        last = len(self._sizes) - 1
        lanes = self._tile.lanes

        def nest(*indices: Expr) -> Stmt:
            number = len(indices)
            if number > last:
                return vector_loop(
                    count, lanes, lambda x: self._put(unit, place, [*indices, x]), start=first
                )
            skipped = self._skipped(place, number)
            if number < last or not self._along_rows:
                return loop(self._sizes[number] - skipped, lambda i: nest(*indices, skipped + i))
            return loop(count, lambda x: along(indices, skipped, first + x))

        def along(indices: tuple[Expr, ...], skipped: Expr, x: Expr) -> Stmt:
            size = self._sizes[last]

            def put(i: Expr) -> Stmt:
                return self._put(unit, place, [*indices, i, x])

            whole = vector_loop(size, lanes, put)
            if self._plan.rows[last].extent % size == 0:
                return whole
            rest = loop(size - skipped, lambda i: put(skipped + i))
            return IfThenElse(skipped == 0, whole, rest)

        return nest()

    def _skipped(self, place: TilePosition, number: int) -> Expr:
        """The number of indices of a tile, in one dimension, that overlap with the tile before."""
        d = self._plan.rows[number]
        return place.nominal[number] - place.start[number] if d.extent % d.tile else i32(0)

    def _put(self, unit: Unit, place: TilePosition, indices: list[Expr]) -> Stmt:
        """Store the result that has these indices within a tile."""
        problem, plan = self._problem, self._plan
        *rows, column = indices
        sums: Parts = problem.arithmetic.load(self._tile.panel, horner(rows, self._sizes), column)
        where = [start + index for start, index in zip(place.start, indices, strict=True)]
        image = where[plan.of_role(Role.IMAGE)]
        feature = unit.group * problem.out_features + where[plan.of_role(Role.FEATURE)]
        axes = [where[plan.of_role(Role.AXIS, i)] for i in range(len(problem.axes))]
        return problem.store(image, feature, *axes, sums)
