"""Convolution by register tiles, directly over zero-padded slabs of the left operand.

A unit of work is a block of results of one group. Its slab is filled, then its register tiles sum
over in features and taps in one loop: for each product, a table holds the offset of its operand
from the tile's base in the slab.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tracejit.backends.tvm.codegen.kernel_body import KernelBody
from tracejit.backends.tvm.cpu.kernels.arithmetic import Parts
from tracejit.backends.tvm.cpu.kernels.conv.blocks import SumRange, TilePosition, Unit
from tracejit.backends.tvm.cpu.kernels.conv.correlation import Correlation
from tracejit.backends.tvm.cpu.kernels.conv.direct_plan import Across, DirectPlan, Role
from tracejit.backends.tvm.cpu.kernels.conv.slab import Slab
from tracejit.backends.tvm.cpu.kernels.conv.weights import Weights
from tracejit.backends.tvm.cpu.kernels.results import Results
from tracejit.backends.tvm.cpu.kernels.sharing import on_workers, share
from tracejit.backends.tvm.cpu.kernels.tile import RegisterTile, vector_loop
from tracejit.backends.tvm.ir.tir import Buffer, Expr, IfThenElse, Stmt, i32, loop, seq, tirx, var


@dataclass(frozen=True)
class _Sum:
    """One range of a sum: the first or last of those that add up to partial sums in ``slot``."""

    part: SumRange
    slot: Expr
    is_first: Expr
    is_last: Expr


class DirectConvolution:
    """The statement for a whole convolution."""

    def __init__(self, problem: Correlation, plan: DirectPlan) -> None:
        self._problem = problem
        self._plan = plan
        self._tile = RegisterTile(problem.arithmetic, plan.tile_rows, plan.vectors, plan.lanes)
        self._slab = Slab(problem, plan)
        self._weights = Weights(problem, plan)
        self._results = Results(problem, plan, self._tile)
        self._parts = math.prod(plan.parts)
        slots = plan.ranges if plan.ranges > 1 else plan.workers
        tiles = (math.prod(row.tiles for row in plan.rows), plan.column.tiles)
        self._partial: Buffer = problem.arithmetic.scratch(
            "partial", (slots, *tiles, plan.tile_rows, plan.column.tile)
        )

    def work(self) -> KernelBody:
        """The whole convolution."""
        plan = self._plan
        scratch = [*self._slab.scratch, self._weights.scratch]
        if self._parts > 1:
            scratch.append(self._partial)
        statement = seq(
            self._slab.fill_table(),
            [] if self._weights.is_per_unit else [self._weights.pack_all()],
            on_workers(plan.workers, self._worker),
            [on_workers(plan.workers, self._combine)] if plan.ranges > 1 else [],
        )
        return KernelBody(statement, tuple(scratch), "direct convolution")

    def _worker(self, w: Expr) -> Stmt:
        plan = self._plan
        by_units, by_columns, by_ranges = plan.shares
        first, units = share(w // (by_columns * by_ranges), plan.units, by_units)
        c0, columns = share(w // by_ranges % by_columns, plan.column.tiles, by_columns)
        s0, ranges = share(w % by_ranges, plan.ranges, by_ranges)

        def unit(u: Expr) -> Stmt:
            return self._unit(Unit.number(plan, w, u), w, i32(0), c0, columns)

        def one_range(s: Expr) -> Stmt:
            return self._unit(Unit.number(plan, w, i32(0)), s, s, c0, columns)

        if plan.ranges == 1:
            body = loop(units, lambda u: unit(first + u))
        else:
            body = loop(ranges, lambda s: one_range(s0 + s))
        return seq(self._tile.allocate(), self._slab.prepare(w), body)

    def _unit(self, unit: Unit, slot: Expr, s: Expr, c0: Expr, columns: Expr) -> Stmt:
        """A unit's results, through range ``s`` of the split sum."""
        problem, plan = self._problem, self._plan
        first, count = share(s, self._parts, plan.ranges)

        def part(number: Expr, is_first: Expr, is_last: Expr) -> Stmt:
            taps = problem.axes[0].window
            there = SumRange.number(plan, problem.in_features, taps, number)
            what = _Sum(there, slot, is_first, is_last)
            packed = loop(columns, lambda c: self._weights.pack(unit, c0 + c, there))
            return seq(
                self._slab.fill(unit, there),
                [packed] if self._weights.is_per_unit else [],
                self._tiles(unit, c0, columns, lambda place: self._sum(unit, place, what)),
            )

        if self._parts == plan.ranges:
            return part(s, i32(1), i32(1))
        return loop(count, lambda i: part(first + i, i == 0, i == count - 1))

    def _tiles(
        self, unit: Unit, c0: Expr, columns: Expr, body: Callable[[TilePosition], Stmt]
    ) -> Stmt:
        """``body`` of a unit's tiles: column tiles outside, but inside if vectors run across
        pixels.
        """
        plan = self._plan
        last = len(plan.rows)

        def along(dimension: int, inner: Callable[[Expr], Stmt]) -> Stmt:
            d = plan.dimensions[dimension]
            if d.blocks == 1:
                return loop(d.tiles, inner)
            left = tirx.min(i32(d.block), d.extent - unit.nominal[dimension])
            return loop((left + (d.tile - 1)) // d.tile, inner)

        def rows(inner: Callable[..., Stmt], *tiles: Expr) -> Stmt:
            if len(tiles) == last:
                return inner(*tiles)
            return along(len(tiles), lambda t: rows(inner, *tiles, t))

        def at(tiles: tuple[Expr, ...], column: Expr) -> Stmt:
            return body(TilePosition.of(plan, unit, tiles, column))

        if plan.across is Across.PIXELS:
            return rows(lambda *tiles: along(last, lambda c: at(tiles, c)))
        return loop(columns, lambda c: rows(lambda *tiles: at(tiles, c0 + c)))

    def _sum(self, unit: Unit, place: TilePosition, what: _Sum) -> Stmt:
        """One register tile: accumulates a range of its sums, then spills or stores them."""
        plan, tile, arithmetic = self._plan, self._tile, self._problem.arithmetic
        spot = [what.slot, place.row_tile, place.column_tile]
        keep = tile.keep(lambda a, x, v: arithmetic.store(self._partial, [*spot, a, x], v))
        begin = tile.clear()
        end = keep if plan.ranges > 1 else seq(tile.spill(), self._results.store(unit, place))
        if self._parts > plan.ranges:
            resume = tile.load(lambda a, x: arithmetic.load(self._partial, *spot, a, x))
            begin = IfThenElse(what.is_first, begin, resume)
            end = end if plan.ranges > 1 else IfThenElse(what.is_last, end, keep)
        inner_taps = self._problem.taps // self._problem.axes[0].window
        first = var("first", "int32")
        return seq(
            tirx.Bind(first, self._slab.address(unit, place)),
            begin,
            loop(
                what.part.features * what.part.taps * inner_taps,
                lambda q: self._add(unit, place, first, what.part, q),
            ),
            end,
        )

    def _add(self, unit: Unit, place: TilePosition, first: Expr, part: SumRange, q: Expr) -> Stmt:
        """Add product ``q`` of a range to all sums of a tile."""
        plan, tile = self._plan, self._tile

        def weight(number: Expr, x: Expr) -> Parts:
            return self._weights.load(unit, number, part, q, x)

        def operand(a: Expr, x: Expr) -> Parts:
            return self._slab.load(unit.worker, first, q, [self._index(i, a) for i in rows], x)

        rows = range(len(plan.rows))
        if plan.across is Across.PIXELS:
            feature = plan.of_role(Role.FEATURE)
            number = place.nominal[feature] // plan.rows[feature].tile
            return tile.add_products(
                lambda a, u, v: weight(number, self._index(feature, a)),
                lambda a, u, v: operand(a, u * tile.lanes + v),
                lane_dtype="int64",
            )
        each_lane = plan.across is Across.GROUPS
        return tile.add_products(
            lambda a, u, v: operand(a, u * tile.lanes + v if each_lane else i32(0)),
            lambda a, u, v: weight(place.column_tile, u * tile.lanes + v),
            lane_dtype="int64",
        )

    def _index(self, dimension: int, a: Expr) -> Expr:
        """The index, within a tile and in one dimension, of the tile's row ``a``."""
        rows = self._plan.rows
        return a // math.prod(row.tile for row in rows[dimension + 1 :]) % rows[dimension].tile

    def _combine(self, w: Expr) -> Stmt:
        """A worker's share of the tiles, summed over all ranges and stored."""
        plan, tile, arithmetic = self._plan, self._tile, self._problem.arithmetic
        unit = Unit.number(plan, w, i32(0))
        first, count = share(w, plan.rows[0].tiles, plan.workers)

        def total(place: TilePosition) -> Stmt:
            def summed(a: Expr, x: Expr) -> Stmt:
                value = arithmetic.zero
                for s in range(plan.ranges):
                    spot = [i32(s), place.row_tile, place.column_tile, a, x]
                    value = arithmetic.add(value, arithmetic.load(self._partial, *spot))
                return arithmetic.store(tile.panel, [a, x], value)

            def row(a: Expr) -> Stmt:
                return vector_loop(tile.columns, tile.lanes, lambda x: summed(a, x))

            return seq(loop(tile.rows, row), self._results.store(unit, place))

        def nest(*tiles: Expr) -> Stmt:
            if len(tiles) < len(plan.rows):
                return loop(plan.rows[len(tiles)].tiles, lambda t: nest(*tiles, t))
            return loop(plan.column.tiles, lambda c: total(TilePosition.of(plan, unit, tiles, c)))

        return seq(tile.allocate(), loop(count, lambda t: nest(first + t)))
