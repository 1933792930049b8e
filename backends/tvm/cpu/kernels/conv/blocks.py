"""Index arithmetic of a direct convolution: units of work, register tiles, ranges of sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tracejit.backends.tvm.cpu.kernels.conv.direct_plan import DirectPlan, Role, horner
from tracejit.backends.tvm.ir.tir import Expr, i32, tirx


@dataclass(frozen=True)
class Unit:
    """A block of results of a group, and the worker that computes it.

    In each dimension the block begins at ``nominal``; its slab begins at ``start``, which is moved
    up so that a whole block lies within the results.
    """

    worker: Expr
    group: Expr
    nominal: tuple[Expr, ...]
    start: tuple[Expr, ...]

    @staticmethod
    def number(plan: DirectPlan, worker: Expr, number: Expr) -> Unit:
        """One of the plan's units: groups outside, then the blocks of the dimensions."""
        nominal: list[Expr] = []
        start: list[Expr] = []
        for d in reversed(plan.dimensions):
            at = number % d.blocks * d.block if d.blocks > 1 else i32(0)
            nominal.insert(0, at)
            start.insert(0, tirx.min(at, i32(d.extent - d.block)) if d.extent % d.block else at)
            number = number // d.blocks if d.blocks > 1 else number
        return Unit(worker, number, tuple(nominal), tuple(start))


@dataclass(frozen=True)
class TilePosition:
    """A register tile of a unit.

    In each dimension the tile's own results begin at ``nominal``; it computes from ``start`` on,
    which is moved up so that a whole tile lies within the results. ``row_tile`` and
    ``column_tile`` number it among the unit's tiles.
    """

    nominal: tuple[Expr, ...]
    start: tuple[Expr, ...]
    row_tile: Expr
    column_tile: Expr

    @staticmethod
    def of(plan: DirectPlan, unit: Unit, rows: Sequence[Expr], column: Expr) -> TilePosition:
        """The tile that has these numbers along rows and along the column."""
        nominal, start = [], []
        for d, at, tile in zip(plan.dimensions, unit.nominal, [*rows, column], strict=True):
            begin = at + tile * d.tile
            nominal.append(begin)
            # Packed weights are padded with zeros; along pixels a narrow result is padded.
            padded = d is plan.column and (d.role is Role.FEATURE or d.extent < d.tile)
            moved = d.extent % d.tile and not padded
            start.append(tirx.min(begin, i32(d.extent - d.tile)) if moved else begin)
        tiles = [d.tiles for d in plan.rows]
        return TilePosition(tuple(nominal), tuple(start), horner(rows, tiles), column)


@dataclass(frozen=True)
class SumRange:
    """A range of a sum: features, and taps of the first axis, each as a first index and a count."""

    feature: Expr
    features: Expr
    tap: Expr
    taps: Expr

    @staticmethod
    def number(plan: DirectPlan, features: int, taps: int, number: Expr) -> SumRange:
        """Range ``number`` of the plan's ranges over ``features`` features and ``taps`` first-axis
        taps.
        """
        feature = number // plan.parts[1] * plan.depth
        tap = number % plan.parts[1] * plan.window
        return SumRange(
            feature, _rest(features, feature, plan.depth), tap, _rest(taps, tap, plan.window)
        )


def _rest(total: int, first: Expr, most: int) -> Expr:
    """The number of items from ``first`` on, at most ``most``."""
    return tirx.min(i32(most), total - first) if total % most else i32(most)
