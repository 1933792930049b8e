"""Packs the right operand of a convolution in the order in which the sums read it.

``packed[slot, tile, product, x]``: x runs over the lanes of a tile across features or groups, and
over a tile's rows of features across pixels. Products count features, then taps. Either all
weights are packed first and a slot is a group, or each worker packs what its unit needs.
"""

from __future__ import annotations

import math

from tracejit.backends.tvm.cpu.kernels.arithmetic import Parts
from tracejit.backends.tvm.cpu.kernels.conv.blocks import SumRange, Unit
from tracejit.backends.tvm.cpu.kernels.conv.correlation import Correlation
from tracejit.backends.tvm.cpu.kernels.conv.direct_plan import Across, DirectPlan, Role
from tracejit.backends.tvm.cpu.kernels.gemm.packing import pack
from tracejit.backends.tvm.cpu.kernels.sharing import on_workers, share
from tracejit.backends.tvm.cpu.kernels.tiling import ceil_div
from tracejit.backends.tvm.ir.tir import Buffer, Expr, IfThenElse, Stmt, i32, loop, tirx


class Weights:
    """Packs the weights of a problem, and loads them."""

    def __init__(self, problem: Correlation, plan: DirectPlan) -> None:
        self._problem = problem
        self._plan = plan
        self._features = plan.dimensions[plan.of_role(Role.FEATURE)]
        self._width = self._features.tile
        self._tiles = ceil_div(self._features.extent, self._width)
        self.is_per_unit = plan.units == plan.groups and plan.across is not Across.PIXELS
        self._inner_taps = math.prod(axis.window for axis in problem.axes[1:])
        slots, products = plan.groups, problem.in_features * problem.taps
        if self.is_per_unit:
            slots, products = plan.workers, plan.depth * plan.window * self._inner_taps
        self.scratch: Buffer = problem.arithmetic.scratch(
            "weights", (slots, self._tiles, products, self._width)
        )

    def load(self, unit: Unit, tile: Expr, part: SumRange, q: Expr, x: Expr) -> Parts:
        """The weight of product ``q`` of a range of the sum."""
        arithmetic = self._problem.arithmetic
        if self.is_per_unit:
            return arithmetic.load(self.scratch, unit.worker, tile, q, x)
        first = (part.feature * self._problem.axes[0].window + part.tap) * self._inner_taps
        return arithmetic.load(self.scratch, unit.group, tile, first + q, x)

    def pack_all(self) -> Stmt:
        """Pack all weights, shared by all workers."""
        problem, workers = self._problem, self._plan.workers
        total = self._plan.groups * self._tiles * problem.in_features

        def unit(at: Expr) -> Stmt:
            feature, at = at % problem.in_features, at // problem.in_features
            tile, group = at % self._tiles, at // self._tiles
            part = SumRange(feature, i32(1), i32(0), i32(problem.axes[0].window))
            first = feature * problem.taps
            return self._pack(group, group, tile, part, first)

        def worker(w: Expr) -> Stmt:
            begin, count = share(w, total, workers)
            return loop(count, lambda i: unit(begin + i))

        return on_workers(workers, worker)

    def pack(self, unit: Unit, tile: Expr, part: SumRange) -> Stmt:
        """Pack the weights of one range of the sum for one tile."""
        return self._pack(unit.worker, unit.group, tile, part, i32(0))

    def _pack(self, slot: Expr, group: Expr, tile: Expr, part: SumRange, first: Expr) -> Stmt:
        problem, arithmetic, width = self._problem, self._problem.arithmetic, self._width
        is_pixels = self._plan.across is Across.PIXELS
        start = tile * width
        if is_pixels and self._features.extent % width:
            start = tirx.min(start, i32(self._features.extent - width))
        lanes = min(self._plan.lanes, 1 << (width.bit_length() - 1))
        inner = problem.axes[1:]

        def write(q: Expr, x: Expr, value: Parts) -> Stmt:
            return arithmetic.store(self.scratch, [slot, tile, first + q, x], value)

        def row(q: Expr, indices: tuple[Expr, ...], valid: int) -> Stmt:
            def element(x: Expr) -> Parts:
                feature = group * self._features.extent + start + x
                return problem.right(feature, *indices)

            return pack(
                arithmetic,
                width,
                element,
                lambda x, value: write(q, x, value),
                lanes=lanes,
                valid=valid,
            )

        def nest(q: Expr, indices: tuple[Expr, ...], valid: int) -> Stmt:
            depth = len(indices) - 2
            if depth == len(inner):
                return row(q, indices, valid)
            window = inner[depth].window
            return loop(window, lambda t: nest(q * window + t, (*indices, t), valid))

        def everything(valid: int) -> Stmt:
            return loop(
                part.features,
                lambda c: loop(
                    part.taps,
                    lambda t: nest(c * part.taps + t, (part.feature + c, part.tap + t), valid),
                ),
            )

        full, tail = divmod(self._features.extent, width)
        if is_pixels or not tail:
            return everything(width)
        if not full:
            return everything(tail)
        return IfThenElse(tile < full, everything(width), everything(tail))
