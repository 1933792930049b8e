"""Products of plain arrays with few columns and short sums, as LLVM text with constant sizes.

For such products the address computations of the routine would take too long.
"""

from __future__ import annotations

from tracejit.backends.tvm.cpu.kernels.gemm.contraction import Contraction
from tracejit.backends.tvm.cpu.kernels.gemm.product import Plain, is_for_routine
from tracejit.backends.tvm.cpu.kernels.gemm.product_text import LlvmProduct
from tracejit.backends.tvm.cpu.kernels.tiling import TileSize, ceil_div
from tracejit.backends.tvm.cpu.llvm.builder import Value
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.ir.tir import Stmt
from tracejit.backends.tvm.tune.knobs import Knobs, ranked

_MOST_VECTORS = 8
"""The most vectors in a row of a tile, which has all columns."""

_UNROLLED = 96
"""The most vector multiply-adds of a tile whose steps are unrolled."""

_MOST_ROWS = 16


def small_product(
    problem: Contraction, found: Plain, machine: Machine, batch: int, workers: int, choices: Knobs
) -> Stmt | None:
    """The product; ``workers`` threads share a batch, or the rows of a single matrix.

    None if the routine is faster, or if there are too many columns.
    """
    if is_for_routine(problem, machine, batch) or found.right_steps[-1] != found.itemsize:
        return None
    if not (problem.left_access.walks(1) or problem.left_access.walks(2)):
        return None
    tiles = _tiles(problem, machine)
    if not tiles:
        return None
    m = problem.m
    tile = choices.of("tile", ranked(tiles, lambda t: ceil_div(m, t.rows) * t.cycles, str))
    return _Products(problem, found, tile, batch).shared(workers)


def _tiles(problem: Contraction, machine: Machine) -> list[TileSize]:
    """Tiles of all columns, whose last vector is moved to end with them."""
    lanes = machine.lanes(problem.arithmetic.dtype, problem.n)
    while lanes > problem.n:
        lanes //= 2
    vectors = ceil_div(problem.n, lanes)
    if vectors > _MOST_VECTORS:
        return []
    most = min(problem.m, _MOST_ROWS, (machine.registers - 1) // vectors - 1)
    return [TileSize(rows, vectors, lanes) for rows in range(1, most + 1)]


class _Products(LlvmProduct):
    """Each piece is a tile of rows."""

    def __init__(self, problem: Contraction, found: Plain, tile: TileSize, batch: int) -> None:
        pieces = ceil_div(problem.m, tile.rows)
        choices = tile.rows, tile.lanes
        super().__init__(
            "tracejit_products", choices, problem, found, batch, pieces, lanes=tile.lanes
        )
        self._tile = tile
        last = problem.n - tile.lanes
        self._columns = [min(u * tile.lanes, last) * found.itemsize for u in range(tile.vectors)]

    def piece(self, number: str, left: str, right: str, result: str) -> None:
        """The last tile is moved to end with the matrix."""
        height, m, k = self._tile.rows, self.problem.m, self.problem.k
        left_row, left_step = self.found.left_steps[2:]
        right_step, result_row = self.found.right_steps[2], self.found.result_steps[2]
        start = self.product(number, str(height))
        if m % height:
            start = self.lesser(start, str(m - height))
        left = self.address(left, self.product(start, str(left_row)))
        result = self.address(result, self.product(start, str(result_row)))
        sums = [self.literal(self.kind, 0.0)] * (height * self._tile.vectors)
        if len(sums) * k <= _UNROLLED:
            for q in range(k):
                at = [(left, q * left_step), (right, q * right_step)]
                sums = self._step([self.address(a, str(offset)) for a, offset in at], sums)
        else:
            first = [(left, left_step), (right, right_step)]
            sums = self.steps(str(k), first, sums, self._step)
        for place, total in enumerate(sums):
            a, u = divmod(place, self._tile.vectors)
            self.put(total, self.address(result, str(a * result_row + self._columns[u])))

    def _step(self, addresses: list[str], sums: list[Value]) -> list[Value]:
        """Add the products of one step to all sums of a tile."""
        left, right = addresses
        kind, made = self.kind, []
        row = [self.get(kind, self.address(right, str(offset))) for offset in self._columns]
        for number, total in enumerate(sums):
            a, u = divmod(number, self._tile.vectors)
            if u == 0:
                offset = str(a * self.found.left_steps[2])
                splat = self.everywhere(kind, self.address(left, offset))
            made.append(self.fused(splat, row[u], total))
        return made
