"""Chooses the sizes of a matrix product: register tiles, packed panels, cache blocks, thread
shares.

Results never depend on the number of threads: it decides who computes a number, and never in which
order the products of one number are summed.

Costs are cycles of one core with two multiply-add units and two load ports; only their order
matters.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tracejit.backends.tvm.cpu.kernels.access import AccessPattern
from tracejit.backends.tvm.cpu.kernels.arithmetic import Arithmetic
from tracejit.backends.tvm.cpu.kernels.gemm.contraction import Contraction
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.tune.knobs import MODEL, Knobs, counts, either, ranked

_PARALLEL_CYCLES = 1 << 15
"""About eight microseconds: for less work, waking other threads does not pay."""

_TINY, _PARALLEL_TINY = 128, 1 << 17
"""Cycles of one matrix of a batch. Up to the first number, matrices come out of memory hardly
faster than one thread multiplies them; another thread, which may have to be woken, pays from the
second number on.
"""

_SPLIT_STEPS = 1 << 14
"""Vector multiply-adds that make a range of a split contraction worth its final sum."""

_MOST_SHARES = 16
"""Register tiles times ranges that are enough for all threads."""

_MANY_ROWS = 64
"""Rows that are enough for all threads."""

_MANY_COLUMNS = 4 << 10
"""Bytes of columns that are enough for all threads."""

_LATENCY = 10
"""Sums that must be in flight at once: two multiply-adds a cycle, each ready after four, and a few
more, since loads delay some."""

_SCATTERING = 3
"""Cycles to store a number far from the one before."""

_COPIED, _OF_OTHERS = 0.7, 2
"""Cycles to copy a number against the order of memory, and to read one that another core wrote."""

_PANEL_BYTES = 64 << 20
"""Packed columns take at most this much memory; a larger matrix passes by in parts."""

_MANY_TILES = 32
"""Row tiles for which a copy of the right operand pays even where that is in cache: its lines are
whole vectors."""

_SHORT_LINE = 256
"""Rows of at most this many bytes are close enough to each other to be read one after the other."""

_ALIASING = 4096
"""Rows this many bytes apart (or a multiple) conflict in the same sets of the L1 cache."""


_PASSES = 8
"""Rows of a product by sums of rows whose cost is that of clearing and storing the sums."""

_BROAD, _NARROW = 1.02, 1.15
"""Factors by which tiles of more than two vectors, and of one, which load a number for each
multiply-add, take longer than their multiply-adds.
"""


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def no_empty_share(total: int, shares: int) -> int:
    """The number of shares, at most ``shares``, that leaves none empty when `share` divides
    ``total``.
    """
    return ceil_div(total, ceil_div(total, shares))


class TileSize(NamedTuple):
    """A register tile: ``rows`` times ``vectors`` vectors of ``lanes`` numbers."""

    rows: int
    vectors: int
    lanes: int

    @property
    def columns(self) -> int:
        return self.vectors * self.lanes

    @property
    def cycles(self) -> float:
        """Cycles of one step of the contraction."""
        sums = self.rows * self.vectors
        return max(sums / 2, (self.rows + self.vectors) / 2, _LATENCY / 2) + 0.25

    def __str__(self) -> str:
        return f"{self.rows} x {self.columns}"


def tile_sizes(
    m: int, n: int, arithmetic: Arithmetic, machine: Machine, most_rows: int = 16
) -> list[TileSize]:
    """The register tiles for m x n numbers, in order of cost."""
    lanes = machine.lanes(arithmetic.dtype, n)
    parts = arithmetic.parts
    sizes = [
        TileSize(rows, vectors, lanes)
        for vectors in range(1, min(8, ceil_div(n, lanes)) + 1)
        for rows in range(1, min(m, most_rows) + 1)
        if (rows * vectors + vectors) * parts < machine.registers
        # Broad tiles are for few rows: higher tiles load less.
        if vectors <= 4 or rows == m
    ]

    def cost(size: TileSize) -> tuple[float, int]:
        cycles = _tiles(m, n, size) * size.cycles
        factor = {1: _NARROW, 2: 1}.get(size.vectors, _BROAD)
        return cycles * factor, size.vectors

    return sorted(sizes, key=cost)


def _tiles(m: int, n: int, size: TileSize) -> int:
    return ceil_div(m, size.rows) * ceil_div(n, size.columns)


def worth_sharing(cycles: float, machine: Machine, batch: int = 1) -> bool:
    """Whether ``batch`` matrices of ``cycles`` cycles are work enough for more than one thread."""
    least = _PARALLEL_TINY if batch > 1 and cycles < _TINY else _PARALLEL_CYCLES
    return machine.threads > 1 and batch * cycles >= least


def _steps(multiply_adds: int, arithmetic: Arithmetic, machine: Machine) -> int:
    """Vector multiply-adds."""
    return multiply_adds * arithmetic.parts**2 // machine.lanes(arithmetic.dtype)


def range_count(
    problem: Contraction,
    machine: Machine,
    choices: Knobs,
    along_rows: bool,
    along_columns: bool,
) -> int:
    """The number of ranges, 1, 2, 4, 8 or 16, into which a long contraction with a small result is
    split.

    Results of many register tiles are shared by threads as they are, unless operands come out of
    memory, which every thread would read. A matrix that is read ``along_rows`` has its rows shared
    whole, each a single stream of memory; one that is read ``along_columns`` its columns.
    """
    arithmetic = problem.arithmetic
    results = problem.m * problem.n
    if results * arithmetic.itemsize > 16 << 10:
        return 1
    steps = _steps(max(results, machine.lanes(arithmetic.dtype)) * problem.k, arithmetic, machine)
    most = min(16, problem.k // 256)
    pick = max(1, min(most, steps // _SPLIT_STEPS))
    if (problem.m + problem.n) * problem.k * arithmetic.itemsize <= machine.l2:
        tile = tile_sizes(problem.m, problem.n, arithmetic, machine)[0]
        pick = min(pick, ceil_div(_MOST_SHARES, _tiles(problem.m, problem.n, tile)))
    pick = 1 << (pick.bit_length() - 1)
    if along_rows and problem.m >= _MANY_ROWS:
        pick = 1
    if along_columns and problem.n * arithmetic.itemsize >= _MANY_COLUMNS:
        pick = 1
    others = [n for n in (1, 2, 4, 8, 16) if n <= most]
    return choices.of("ranges", counts(pick, others, "ranges"))


class TiledPlan(NamedTuple):
    """The plan of a matrix product by register tiles.

    tile                        the register tile
    row_tiles, column_tiles     how many cover the result
    pack_left, pack_right       whether tiles read copies of the operands
    ranges                      independent ranges of the contraction, summed at the end
    depth, blocks               steps of the contraction in a cache block, and number of blocks
    block_rows                  row tiles that stay in cache while columns pass by
    panels                      column tiles packed at a time
    shares                      by how many threads rows, columns and ranges are shared
    """

    tile: TileSize
    row_tiles: int
    column_tiles: int
    pack_left: bool
    pack_right: bool
    ranges: int
    depth: int
    blocks: int
    block_rows: int
    panels: int
    shares: tuple[int, int, int]

    @property
    def workers(self) -> int:
        return math.prod(self.shares)


def tiled_plan(
    problem: Contraction,
    machine: Machine,
    ranges: int,
    threads: int,
    choices: Knobs = MODEL,
) -> TiledPlan:
    """The plan for ``threads`` threads, with the contraction split into ``ranges``."""
    itemsize = problem.arithmetic.itemsize
    k = problem.k
    tile, pack_left = _tile_and_packing(problem, machine, choices)
    column_tiles = ceil_div(problem.n, tile.columns)
    row_tiles = ceil_div(problem.m, tile.rows)
    steps = min(k, max(256, machine.l2 // (128 * itemsize)))
    steps = choices.of("depth", counts(steps, _around(steps, 64, k), "steps"))
    blocks = max(ranges, ceil_div(k, steps))
    blocks = ceil_div(blocks, ranges) * ranges
    depth = ceil_div(k, blocks)
    blocks = ceil_div(k, depth)
    ranges = no_empty_share(blocks, ranges)
    # One thread packs panels that stay in its own cache, if it need not pack rows again for them.
    panel_bytes = _PANEL_BYTES if threads > 1 or pack_left else machine.l2 // 4
    # Rows pass by one tile at a time if all columns stay in cache, else a block that stays there.
    stays = machine.l2 // 2
    block_rows = max(1, stays // (tile.rows * depth * itemsize))
    if problem.n * k * itemsize <= stays:
        block_rows = 1
    block_rows = min(block_rows, row_tiles)
    others = [*_around(block_rows, 1, row_tiles), 1]
    pack_right = _packs_right(problem, tile, row_tiles, machine, choices)
    packed = pack_left, pack_right
    return TiledPlan(
        tile,
        row_tiles,
        column_tiles,
        pack_left,
        pack_right,
        ranges=ranges,
        depth=depth,
        blocks=blocks,
        block_rows=choices.of("block of rows", counts(block_rows, others, "tiles")),
        panels=min(column_tiles, max(1, panel_bytes // (k * tile.columns * itemsize))),
        shares=_shares(tile, (row_tiles, column_tiles, ranges), packed, threads, choices),
    )


def _tile_and_packing(
    problem: Contraction, machine: Machine, choices: Knobs
) -> tuple[TileSize, bool]:
    """The register tile, and whether tiles read copies of the left operand."""
    arithmetic = problem.arithmetic
    sizes = tile_sizes(problem.m, problem.n, arithmetic, machine)
    in_place = _reads_left_in_place(problem)
    pack_left = not in_place or ceil_div(problem.n, sizes[0].columns) >= 32
    row_step = problem.left_access.step(1) * arithmetic.itemsize
    is_aliasing = problem.left_access.walks(2) and row_step % _ALIASING == 0
    if not pack_left and is_aliasing and sizes[0].rows > 8:
        sizes = [*tile_sizes(problem.m, problem.n, arithmetic, machine, 8)[:1], *sizes]
    tile = choices.of("tile", ((str(size), size) for size in sizes))
    if in_place:
        pack_left = choices.of("left operand", either(pack_left, "packed", "in place"))
    return tile, pack_left


def _reads_left_in_place(problem: Contraction) -> bool:
    """Whether the left operand lies as tiles read it: along the contraction, or in short lines
    with one element for each step.
    """
    left = problem.left_access
    if not left.plain:
        return False
    itemsize = problem.arithmetic.itemsize
    return left.walks(2) or (left.walks(1) and left.step(2) * itemsize <= _SHORT_LINE)


def _packs_right(
    problem: Contraction, tile: TileSize, row_tiles: int, machine: Machine, choices: Knobs
) -> bool:
    """Whether tiles read copies of the right operand."""
    if _has_to_pack_right(problem, tile):
        return True
    pick = _pays_to_pack_right(problem, row_tiles, machine)
    return choices.of("right operand", either(pick, "packed", "in place"))


def _has_to_pack_right(problem: Contraction, tile: TileSize) -> bool:
    in_place = problem.right_access.plain and problem.right_access.walks(2)
    return not in_place or problem.n < tile.columns


def _pays_to_pack_right(problem: Contraction, row_tiles: int, machine: Machine) -> bool:
    """Whether copying pays for this number of row tiles, which then read one contiguous stream."""
    itemsize = problem.arithmetic.itemsize
    if problem.right_access.step(1) * itemsize <= _SHORT_LINE:
        return False
    nbytes = problem.k * problem.n * itemsize
    return row_tiles > (2 if nbytes >= machine.l2 // 2 else _MANY_TILES)


def _around(pick: int, least: int, most: int) -> list[int]:
    """Tuning candidates near ``pick``."""
    return [n for n in (2 * pick, pick // 2, 4 * pick, pick // 4) if least <= n <= most]


def _shares(
    tile: TileSize,
    tiles: tuple[int, int, int],
    packed: tuple[bool, bool],
    threads: int,
    choices: Knobs,
) -> tuple[int, int, int]:
    """The shares of rows, columns and ranges that minimise the work of the busiest thread.

    ``tiles`` has the tiles of rows and of columns, and the ranges; ``packed`` whether left and
    right operands are copied: each thread copies its own rows, and threads that share rows read
    the columns that others copied.
    """
    rows, columns, ranges = tiles
    if ranges > 1:
        return 1, 1, min(ranges, threads)
    pairs = [(r, min(columns, threads // r), 1) for r in range(1, min(rows, threads) + 1)]

    def cost(share: tuple[int, int, int]) -> tuple[float, int]:
        own = ceil_div(rows, share[0]), ceil_div(columns, share[1])
        cycles = own[0] * own[1] * tile.cycles + packed[0] * _COPIED * own[0] * tile.rows
        if packed[1]:
            cycles += _OF_OTHERS * own[1] * tile.columns * (share[0] - 1) / share[0]
        return cycles, share[1]

    return choices.of("shares", ranked(pairs, cost, lambda share: f"{share[0]} x {share[1]}"))


def tiled_cycles(problem: Contraction, machine: Machine) -> float:
    """The cost of a matrix product by register tiles."""
    tile = tile_sizes(problem.m, problem.n, problem.arithmetic, machine)[0]
    rows = ceil_div(problem.m, tile.rows)
    right = problem.right_access
    steps = _tiles(problem.m, problem.n, tile) * problem.k * problem.arithmetic.parts**2
    cost = steps * tile.cycles
    if not _reads_left_in_place(problem):
        copied = problem.m * problem.k
        cost += _copying(problem.left_access, 1, copied, problem.arithmetic, machine)
    if _has_to_pack_right(problem, tile) or _pays_to_pack_right(problem, rows, machine):
        cost += _copying(right, 2, problem.k * problem.n, problem.arithmetic, machine)
    elif problem.k * problem.n * problem.arithmetic.itemsize > machine.l2:
        # A tile takes a piece of each row, which no hardware prefetches: this matters less when
        # more is computed with it.
        cost *= 1 + 0.5 / problem.m**2
    if problem.result_access.walks(1) and not problem.result_access.walks(2):
        cost += _SCATTERING * problem.m * problem.n
    return cost


def dot_cycles(problem: Contraction, machine: Machine) -> float:
    """The cost of a matrix product by vectors along the contraction; infinite for many columns."""
    if problem.n > 4:
        return math.inf
    arithmetic = problem.arithmetic
    lanes = machine.lanes(arithmetic.dtype)
    products = problem.m * problem.n * ceil_div(problem.k, lanes) * arithmetic.parts**2
    cost = 0.75 * products + 8 * problem.m * problem.n
    cost += _copying(problem.left_access, 2, problem.m * problem.k, arithmetic, machine)
    return cost + _copying(problem.right_access, 1, problem.k * problem.n, arithmetic, machine)


def axpy_cycles(problem: Contraction, machine: Machine) -> float:
    """The cost of a matrix product row of the right operand by row; infinite for many rows."""
    if problem.m > 4:
        return math.inf
    arithmetic = problem.arithmetic
    lanes = machine.lanes(arithmetic.dtype)
    sums = problem.m * ceil_div(problem.n, lanes)
    cost = 0.6 * sums * (problem.k + _PASSES) * arithmetic.parts**2
    right = problem.right_access
    if not (right.plain and right.walks(2)):
        cost += _copying(right, 2, problem.k * problem.n, arithmetic, machine)
    return cost


def _copying(
    access: AccessPattern, index: int, count: int, arithmetic: Arithmetic, machine: Machine
) -> float:
    """The cost of moving ``count`` numbers by vectors along ``index``."""
    lanes = machine.lanes(arithmetic.dtype)
    return count * arithmetic.parts * (2 / lanes if access.walks(index) else _COPIED)
