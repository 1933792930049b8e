"""Convolution by register tiles, straight from zero-padded slabs of the left operand.

A unit of work is a block of results of one group. Its slab is filled, then its register tiles sum
over in features and taps in one loop: a table tells, for each product, how far from a tile's own
place in the slab its operand lies.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tracejit.backends.tvm.kernels.arithmetic import Parts
from tracejit.backends.tvm.kernels.correlation import Correlation
from tracejit.backends.tvm.kernels.direct_plan import Across, Dimension, DirectPlan, Role, horner
from tracejit.backends.tvm.kernels.sharing import on_workers, share
from tracejit.backends.tvm.kernels.slab import Part, Slab
from tracejit.backends.tvm.kernels.tile import Tile, vector, vector_loop
from tracejit.backends.tvm.kernels.tiling import ceil_div
from tracejit.backends.tvm.kernels.weights import Weights
from tracejit.backends.tvm.kernels.work import Work
from tracejit.backends.tvm.tir import Buffer, Expr, IfThenElse, Stmt, i32, loop, seq, store, tirx

_TABLE_LANES = 8
"""How many addresses are computed at once."""


@dataclass(frozen=True)
class _Unit:
    """A block of results of a group, and the worker that computes it.

    In each dimension the block begins at ``nominal``; its slab begins at ``start``, which is moved
    up so that a whole block lies within the results.
    """

    worker: Expr
    group: Expr
    nominal: tuple[Expr, ...]
    start: tuple[Expr, ...]


@dataclass(frozen=True)
class _Place:
    """A register tile of a unit: where it begins in each dimension, as for a unit, and its number
    among the unit's tiles, along rows and along the column."""

    nominal: tuple[Expr, ...]
    start: tuple[Expr, ...]
    row_tile: Expr
    column_tile: Expr


class Direct:
    """The statement for a whole convolution."""

    def __init__(self, problem: Correlation, plan: DirectPlan) -> None:
        self._problem = problem
        self._plan = plan
        self._tile = Tile(problem.arithmetic, plan.tile_rows, plan.vectors, plan.lanes)
        self._slab = Slab(problem, plan)
        self._weights = Weights(problem, plan)
        self._parts = math.prod(plan.parts)
        self._row_tiles = [row.tiles for row in plan.rows]
        length = ceil_div(self._slab.products, _TABLE_LANES) * _TABLE_LANES
        self._places = tirx.decl_buffer((plan.workers, length), "int32", name="places")
        slots = plan.ranges if plan.ranges > 1 else plan.workers
        self._partial: Buffer = problem.arithmetic.scratch(
            "partial",
            (
                slots,
                math.prod(self._row_tiles),
                plan.column.tiles,
                plan.tile_rows,
                plan.column.tile,
            ),
        )

    def work(self) -> Work:
        """The whole convolution."""
        plan = self._plan
        scratch = [self._slab.table, self._places, self._slab.scratch, self._weights.scratch]
        if self._parts > 1:
            scratch.append(self._partial)
        statement = seq(
            self._slab.fill_table(),
            [] if self._weights.is_per_unit else [self._weights.pack_all()],
            on_workers(plan.workers, self._worker),
            [on_workers(plan.workers, self._combine)] if plan.ranges > 1 else [],
        )
        return Work(statement, tuple(scratch))

    def _worker(self, w: Expr) -> Stmt:
        plan = self._plan
        by_units, by_columns, by_ranges = plan.shares
        first, units = share(w // (by_columns * by_ranges), plan.units, by_units)
        column, columns = share(w // by_ranges % by_columns, plan.column.tiles, by_columns)
        prepare = [*self._tile.allocate(), *self._slab.prepare(w)]
        if plan.ranges == 1:
            return seq(
                prepare,
                loop(
                    units,
                    lambda u: self._sum(self._unit(w, first + u), w, i32(0), column, columns),
                ),
            )
        s0, ranges = share(w % by_ranges, plan.ranges, by_ranges)
        unit = self._unit(w, i32(0))
        return seq(
            prepare, loop(ranges, lambda s: self._sum(unit, s0 + s, s0 + s, column, columns))
        )

    def _unit(self, worker: Expr, number: Expr) -> _Unit:
        """Unit ``number``: groups outside, then the dimensions' blocks."""
        nominal: list[Expr] = []
        start: list[Expr] = []
        for d in reversed(self._plan.dimensions):
            at = number % d.blocks * d.block if d.blocks > 1 else i32(0)
            nominal.insert(0, at)
            start.insert(0, tirx.min(at, i32(d.extent - d.block)) if d.extent % d.block else at)
            number = number // d.blocks
        return _Unit(worker, number, tuple(nominal), tuple(start))

    def _sum(self, unit: _Unit, slot: Expr, s: Expr, column: Expr, columns: Expr) -> Stmt:
        """A unit's results, through range ``s`` of the parts of its sums."""
        plan = self._plan
        if self._parts == plan.ranges:
            return self._part(unit, slot, s, None, None, column, columns)
        first, count = share(s, self._parts, plan.ranges)
        return loop(
            count,
            lambda i: self._part(unit, slot, first + i, i == 0, i == count - 1, column, columns),
        )

    def _part(
        self,
        unit: _Unit,
        slot: Expr,
        number: Expr,
        is_first: Expr,
        is_last: Expr,
        column: Expr,
        columns: Expr,
    ) -> Stmt:
        """Part ``number`` of the sums of all of a unit's tiles."""
        problem, plan = self._problem, self._plan
        feature = number // plan.parts[1] * plan.depth
        tap = number % plan.parts[1] * plan.window
        window = problem.axes[0].window
        part = Part(
            feature,
            _rest(problem.in_features, feature, plan.depth),
            tap,
            _rest(window, tap, plan.window),
        )
        products = part.features * part.taps * (problem.taps // window)

        def tile(place: _Place) -> Stmt:
            return self._tile_of(unit, place, part, products, slot, is_first, is_last)

        pack = []
        if self._weights.is_per_unit:
            pack.append(
                loop(
                    columns,
                    lambda c: self._weights.pack(unit.worker, unit.group, column + c, part),
                )
            )
        return seq(
            self._slab.fill(unit.worker, unit.group, unit.start, part),
            pack,
            self._tiles(unit, column, columns, tile),
        )

    def _tiles(
        self, unit: _Unit, column: Expr, columns: Expr, body: Callable[[_Place], Stmt]
    ) -> Stmt:
        """``body`` of a unit's tiles: column tiles outside, but inside across pixels."""
        last = len(self._plan.rows)

        def rows(inner: Callable[[list[Expr]], Stmt], *tiles: Expr) -> Stmt:
            if len(tiles) == last:
                return inner([*tiles])
            return self._along(unit, len(tiles), lambda t: rows(inner, *tiles, t))

        if self._plan.across is Across.PIXELS:
            return rows(
                lambda tiles: self._along(unit, last, lambda c: body(self._place(unit, tiles, c)))
            )
        return loop(
            columns,
            lambda c: rows(lambda tiles: body(self._place(unit, tiles, column + c))),
        )

    def _along(self, unit: _Unit, dimension: int, body: Callable[[Expr], Stmt]) -> Stmt:
        """``body`` of the numbers of a unit's tiles in one dimension."""
        d = self._plan.dimensions[dimension]
        if d.blocks == 1:
            return loop(d.tiles, body)
        left = tirx.min(i32(d.block), d.extent - unit.nominal[dimension])
        return loop((left + (d.tile - 1)) // d.tile, body)

    def _place(self, unit: _Unit, tiles: list[Expr], column_tile: Expr) -> _Place:
        nominal, start = [], []
        dimensions = self._plan.dimensions
        for d, at, tile in zip(dimensions, unit.nominal, [*tiles, column_tile], strict=True):
            begin = at + tile * d.tile
            nominal.append(begin)
            # Weights are padded with zeros, but other tiles end with the results.
            padded = d is self._plan.column and d.role is Role.FEATURE
            moves = d.extent % d.tile and d.extent > d.tile and not padded
            start.append(tirx.min(begin, i32(d.extent - d.tile)) if moves else begin)
        return _Place(tuple(nominal), tuple(start), horner(tiles, self._row_tiles), column_tile)

    def _tile_of(
        self,
        unit: _Unit,
        place: _Place,
        part: Part,
        products: Expr,
        slot: Expr,
        is_first: Expr,
        is_last: Expr,
    ) -> Stmt:
        """One register tile: a part of its sums, and what becomes of them."""
        plan, tile, arithmetic = self._plan, self._tile, self._problem.arithmetic
        distances = [self._slab.distance(i) for i in range(len(plan.dimensions))]
        base: Expr = i32(0)
        for start, origin, distance in zip(place.start, unit.start, distances, strict=True):
            base = base + (start - origin) * distance

        def operand(q: Expr, a: Expr, x: Expr) -> Parts:
            # In 64 bits, so that what is constant for a row becomes part of an instruction.
            address = tirx.Cast("int64", self._places[unit.worker, q])
            for number, distance in enumerate(distances[:-1]):
                address = address + self._index(number, a) * distance
            return self._slab.load(unit.worker, address + x * distances[-1])

        def weight(q: Expr, tile_number: Expr, x: Expr) -> Parts:
            return self._weights.load(unit.worker, unit.group, tile_number, part, q, x)

        def add(q: Expr) -> Stmt:
            if plan.across is Across.PIXELS:
                feature = plan.of_role(Role.FEATURE)
                number = place.nominal[feature] // plan.rows[feature].tile
                return tile.add_products(
                    lambda a, u, v: weight(q, number, self._index(feature, a)),
                    lambda a, u, v: operand(q, a, u * tile.lanes + v),
                    lane_dtype="int64",
                )
            lane = plan.across is Across.GROUPS
            return tile.add_products(
                lambda a, u, v: operand(q, a, u * tile.lanes + v if lane else i32(0)),
                lambda a, u, v: weight(q, place.column_tile, u * tile.lanes + v),
                lane_dtype="int64",
            )

        spot = [slot, place.row_tile, place.column_tile]
        keep = tile.rows_of_panel(
            i32(0),
            0,
            tile.columns,
            lambda a, x, v: arithmetic.store(self._partial, [*spot, a, x], v),
        )
        begin = tile.clear()
        end = keep if plan.ranges > 1 else self._finish(unit, place)
        if self._parts > plan.ranges:
            resume = tile.load(lambda a, x: arithmetic.load(self._partial, *spot, a, x))
            begin = IfThenElse(is_first, begin, resume)
            end = end if plan.ranges > 1 else IfThenElse(is_last, end, keep)
        moved = loop(
            ceil_div(self._slab.products, _TABLE_LANES),
            lambda q: vector(
                _TABLE_LANES,
                lambda v: store(
                    self._places,
                    [unit.worker, q * _TABLE_LANES + v],
                    self._slab.table[q * _TABLE_LANES + v] + base,
                ),
            ),
        )
        return seq(moved, begin, loop(products, add), tile.spill(), end)

    def _index(self, dimension: int, a: Expr) -> Expr:
        """The index, within a tile, that the tile's row ``a`` has in one dimension of rows."""
        rows = self._plan.rows
        return a // math.prod(row.tile for row in rows[dimension + 1 :]) % rows[dimension].tile

    def _finish(self, unit: _Unit, place: _Place) -> Stmt:
        """Store the sums in the panel, without those that the tile before had already."""
        plan, column = self._plan, self._plan.column
        at = len(plan.rows)
        if column.role is Role.AXIS and column.extent >= column.tile:
            skipped = column.extent and -column.extent % column.tile
            whole = self._rows(unit, place, 0, column.tile)
            if not skipped:
                return whole
            rest = self._rows(unit, place, skipped, column.tile - skipped)
            return IfThenElse(place.nominal[at] == place.start[at], whole, rest)
        full, tail = divmod(column.extent, column.tile)
        whole, rest = self._rows(unit, place, 0, column.tile), None
        if not tail:
            return whole
        rest = self._rows(unit, place, 0, tail)
        return IfThenElse(place.column_tile < full, whole, rest) if full else rest

    def _rows(self, unit: _Unit, place: _Place, first: int, count: int) -> Stmt:
        """Store ``count`` columns from column ``first`` of the tile on, of all its rows."""
        problem, plan, tile = self._problem, self._plan, self._tile
        sizes = [row.tile for row in plan.rows]
        last = len(sizes) - 1
        # Vectors run along results that are neighbours in memory.
        column_role, row = plan.column, plan.rows[last]
        along_rows = not self._walks(column_role) and self._walks(row)

        def put(indices: list[Expr], x: Expr) -> Stmt:
            sums = problem.arithmetic.load(tile.panel, horner(indices, sizes), x)
            return self._put(unit, place, [*indices, x], sums)

        def nest(indices: list[Expr]) -> Stmt:
            number = len(indices)
            if number == len(sizes):
                return vector_loop(count, tile.lanes, lambda x: put(indices, x), start=first)
            if number == last and along_rows:
                return loop(count, lambda x: along(indices, x + first))
            skipped = self._skipped(place, number)
            return loop(sizes[number] - skipped, lambda i: nest([*indices, skipped + i]))

        def along(indices: list[Expr], x: Expr) -> Stmt:
            skipped = self._skipped(place, last)
            whole = vector_loop(sizes[last], tile.lanes, lambda i: put([*indices, i], x))
            if row.extent % row.tile == 0:
                return whole
            rest = loop(sizes[last] - skipped, lambda i: put([*indices, skipped + i], x))
            return IfThenElse(skipped == 0, whole, rest)

        return nest([])

    def _skipped(self, place: _Place, number: int) -> Expr:
        """How many indices of a tile the tile before had already."""
        d = self._plan.dimensions[number]
        return place.nominal[number] - place.start[number] if d.extent % d.tile else i32(0)

    def _walks(self, dimension: Dimension) -> bool:
        """Whether neighbouring results of a dimension are neighbours in memory."""
        place = {Role.IMAGE: 0, Role.FEATURE: 1, Role.AXIS: 2 + dimension.axis}[dimension.role]
        return self._problem.result_access.walks(place)

    def _put(self, unit: _Unit, place: _Place, indices: list[Expr], sums: Parts) -> Stmt:
        """Store the result that has these indices within a tile."""
        problem, plan = self._problem, self._plan
        where = [start + index for start, index in zip(place.start, indices, strict=True)]
        image = where[plan.of_role(Role.IMAGE)]
        feature = unit.group * problem.out_features + where[plan.of_role(Role.FEATURE)]
        axes = [where[plan.of_role(Role.AXIS, i)] for i in range(len(problem.axes))]
        return problem.store(image, feature, *axes, sums)

    def _combine(self, w: Expr) -> Stmt:
        """A worker's share of the tiles, summed over all ranges and stored."""
        plan, tile, arithmetic = self._plan, self._tile, self._problem.arithmetic
        row_tiles, column_tiles = math.prod(self._row_tiles), plan.column.tiles
        unit = self._unit(w, i32(0))

        def total(place: _Place) -> Stmt:
            def add(s: Expr, a: Expr, x: Expr) -> Stmt:
                spot = [s, place.row_tile, place.column_tile, a, x]
                sums = arithmetic.load(tile.panel, a, x)
                sums = arithmetic.add(sums, arithmetic.load(self._partial, *spot))
                return arithmetic.store(tile.panel, [a, x], sums)

            def zero(a: Expr, x: Expr) -> Stmt:
                return arithmetic.store(tile.panel, [a, x], arithmetic.zero)

            def each(body: Callable[[Expr, Expr], Stmt]) -> Stmt:
                row = partial(vector_loop, tile.columns, tile.lanes)
                return loop(tile.rows, lambda a: row(lambda x: body(a, x)))

            summed = loop(plan.ranges, lambda s: each(partial(add, s)))
            return seq(each(zero), summed, self._finish(unit, place))

        def one(number: Expr) -> Stmt:
            row_tile = number // column_tiles
            tiles: list[Expr] = []
            for count in reversed(self._row_tiles):
                tiles.insert(0, row_tile % count)
                row_tile = row_tile // count
            return total(self._place(unit, tiles, number % column_tiles))

        first, count = share(w, row_tiles * column_tiles, plan.workers)
        return seq(tile.allocate(), loop(count, lambda i: one(first + i)))


def _rest(total: int, first: Expr, most: int) -> Expr:
    """How many there are from ``first`` on, at most ``most``."""
    return tirx.min(i32(most), total - first) if total % most else i32(most)
