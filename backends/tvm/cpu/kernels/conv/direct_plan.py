"""Plans a direct convolution: vector axis, register tiles, cache blocks, shares of threads.

As in `cpu.kernels.tiling`, results never depend on the number of threads, and costs are rough
cycles.
"""

from __future__ import annotations

import enum
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tracejit.backends.tvm.cpu.kernels.conv.correlation import Correlation
from tracejit.backends.tvm.cpu.kernels.conv.planes import in_planes
from tracejit.backends.tvm.cpu.kernels.tiling import ceil_div, no_empty_share
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.tune.knobs import MODEL, Knobs, either, ranked

_MOST_ROWS = 16
"""Rows of a register tile: more would not fit, or take long to compile."""

_UNROLLED_PRODUCTS = 16
"""Products per result whose loop LLVM unrolls: their weights take registers, too."""

_UNROLLED_SUMS = 4
"""Most vectors of sums of such a tile; its results are stored as quickly as computed."""

_FEW_PRODUCTS = 512
"""Products per result that amortise loading and storing its sum."""

_LEAST_PRODUCTS = 128
"""Products per result between loading and storing its sum, at the least."""

_TRANSPOSING = 3
"""Cycles to copy a number between memories of different order."""

_MOST_RANGES = 8
"""Ranges that a sum is split into; more threads than that go idle."""

_SPLIT_BYTES = 1 << 20
"""Results of at most this size have their sums split."""

_LINE_BYTES = 64
"""Bytes that a load takes from the first-level cache at once."""

_PARALLEL_CYCLES = 1 << 15
"""Work below which waking other threads does not pay."""


class Across(enum.Enum):
    """What the lanes of a vector are; the rows of a register tile are the other results."""

    FEATURES = "out features of one group"
    GROUPS = "out features of all groups"
    PIXELS = "neighbours on the last axis"


class Role(enum.Enum):
    """The role of a dimension of the results."""

    IMAGE = enum.auto()
    FEATURE = enum.auto()
    AXIS = enum.auto()


@dataclass(frozen=True)
class Dimension:
    """A dimension of the results (``axis`` says which one if it is an axis).

    A register tile has ``tile`` of its ``extent`` indices; a unit of work has ``block`` of them,
    which is a multiple of ``tile`` or all.
    """

    role: Role
    axis: int
    extent: int
    tile: int
    block: int

    @property
    def blocks(self) -> int:
        return ceil_div(self.extent, self.block)

    @property
    def tiles(self) -> int:
        """The most tiles in a block."""
        return ceil_div(self.block, self.tile)


@dataclass(frozen=True)
class DirectPlan:
    """The plan of one convolution.

    rows, column    the dimensions of the results; vectors run along ``column``
    groups          groups that are computed one after the other
    depth, window   in features, and taps of the first axis, that are summed at a time
    parts           how many of those there are, for in features and for taps
    ranges          independent ranges of those sums, put together at the end
    shares          by how many threads units, column tiles and ranges are shared
    """

    across: Across
    rows: tuple[Dimension, ...]
    column: Dimension
    vectors: int
    lanes: int
    groups: int
    depth: int
    window: int
    parts: tuple[int, int]
    ranges: int
    shares: tuple[int, int, int]

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        return (*self.rows, self.column)

    def of_role(self, role: Role, axis: int = 0) -> int:
        """The position of the dimension with this role."""
        return next(i for i, d in enumerate(self.dimensions) if d.role is role and d.axis == axis)

    @property
    def tile_rows(self) -> int:
        return math.prod(row.tile for row in self.rows)

    @property
    def units(self) -> int:
        """Blocks of results, over all groups."""
        return self.groups * math.prod(d.blocks for d in self.dimensions)

    @property
    def workers(self) -> int:
        return math.prod(self.shares)


def positions(window: int, dilation: int, stride: int, results: int) -> int:
    """The number of positions of an axis that ``results`` adjacent results read."""
    return (results - 1) * stride + (window - 1) * dilation + 1


@dataclass(frozen=True)
class _RegisterTile:
    """A register tile: ``box`` has its rows' extents."""

    across: Across
    box: tuple[int, ...]
    vectors: int
    lanes: int

    @property
    def columns(self) -> int:
        return self.vectors * self.lanes

    def __str__(self) -> str:
        return f"{' x '.join(map(str, self.box))} x {self.columns} {self.across.value}"


_Priced = tuple[float, int, int, _RegisterTile]


def direct_plan(problem: Correlation, machine: Machine, choices: Knobs = MODEL) -> DirectPlan:
    """The cheapest plan for a convolution that has results, features and taps."""
    priced = [
        (_cycles(problem, tile), -tile.box[-1], order, tile)
        for order, tile in enumerate(_register_tiles(problem, machine))
    ]
    cycles, _, _, tile = choices.of("tile", _unlike(priced))
    threads = machine.threads
    if threads > 1:
        pick = cycles >= _PARALLEL_CYCLES
        threads = threads if choices.of("threads", either(pick, "all", "1")) else 1
    slab = choices.of("slab", _slabs(machine.l2 // 2))
    return _shared(_cut(problem, slab, machine.l1, tile), threads)


def _unlike(priced: Sequence[_Priced]) -> Iterator[tuple[str, _Priced]]:
    """The cheapest tile, then the cheapest of each other kind, then the rest."""
    kinds: set[tuple[Across, int]] = set()
    alike: list[tuple[str, _Priced]] = []
    for name, each in ranked(priced, lambda p: p[:3], lambda p: str(p[3])):
        kind = each[3].across, each[3].vectors
        if kind in kinds:
            alike.append((name, each))
        else:
            kinds.add(kind)
            yield name, each
    yield from alike


def _slabs(pick: int) -> Iterator[tuple[str, int]]:
    """Candidates for the bytes of a unit's slab."""
    for nbytes in (pick, pick // 2, pick * 2, pick // 4, pick * 4):
        yield f"{nbytes >> 10} KiB", nbytes


def _extents(problem: Correlation, across: Across) -> tuple[tuple[int, ...], int]:
    """The sizes of rows and of columns."""
    results = tuple(axis.result for axis in problem.axes)
    if across is Across.PIXELS:
        return (problem.batch, problem.out_features, *results[:-1]), results[-1]
    groups = problem.groups if across is Across.GROUPS else 1
    return (problem.batch, *results), problem.out_features * groups


def _register_tiles(problem: Correlation, machine: Machine) -> Iterator[_RegisterTile]:
    parts = problem.arithmetic.parts
    for across in Across:
        if across is Across.GROUPS and problem.groups == 1:
            continue
        rows, columns = _extents(problem, across)
        lanes = machine.lanes(problem.arithmetic.dtype, columns)
        images = 1 if across is Across.PIXELS else rows[0]
        sizes = [range(1, min(most, _MOST_ROWS) + 1) for most in (images, *rows[1:])]
        for box in itertools.product(*sizes):
            count = math.prod(box)
            if count > _MOST_ROWS:
                continue
            most = _UNROLLED_SUMS if _is_unrolled(problem, across, box) else machine.registers
            # Across pixels, each feature is multiplied with the vectors of all other rows.
            shared = count // box[1] if across is Across.PIXELS and box[1] > 1 else 1
            for vectors in range(1, min(8, ceil_div(columns, lanes)) + 1):
                fits = (count + shared) * vectors * parts < machine.registers
                if fits and count * vectors <= most:
                    yield _RegisterTile(across, box, vectors, lanes)


def _is_unrolled(problem: Correlation, across: Across, box: tuple[int, ...]) -> bool:
    """Whether a tile of one feature has a few products, as those of a convolution by depth."""
    few = problem.in_features * problem.taps <= _UNROLLED_PRODUCTS
    return few and across is Across.PIXELS and box[1] == 1


def _cycles(problem: Correlation, choice: _RegisterTile) -> float:
    rows, columns = _extents(problem, choice.across)
    count = math.prod(choice.box)
    sums = count * choice.vectors
    if choice.across is Across.FEATURES:
        loads: float = count + choice.vectors
    elif choice.across is Across.GROUPS:
        loads = sums + choice.vectors
    else:
        features = choice.box[1]
        last = problem.axes[-1]
        gather = 1 if last.stride == 1 or in_planes(last, choice.lanes) else choice.lanes
        loads = features + count / features * choice.vectors * gather * _lines(problem, choice)
    # A sum waits four cycles for the one before it, unless the next tile overlaps.
    latency = 0 if _is_unrolled(problem, choice.across, choice.box) else 4
    # Loads that overlap with multiply-adds are not quite free.
    step = max(sums / 2, (loads + 1) / 2, latency) + 0.5 + loads / 64
    tiles = math.prod(ceil_div(e, t) for e, t in zip(rows, choice.box, strict=True))
    tiles *= ceil_div(columns, choice.columns)
    groups = 1 if choice.across is Across.GROUPS else problem.groups
    parts = problem.arithmetic.parts
    products = problem.in_features * problem.taps * parts**2
    results = problem.batch * problem.groups * problem.out_features * problem.results * parts
    cycles = tiles * groups * products * step + results * _storing(problem, choice)
    return cycles + _filling(problem, choice)


def _lines(problem: Correlation, choice: _RegisterTile) -> float:
    """The cost of unaligned vector loads: proportional to how often they cross a cache line."""
    return 1 + 1.5 * (choice.lanes - 1) * problem.arithmetic.itemsize / _LINE_BYTES


def _filling(problem: Correlation, choice: _RegisterTile) -> float:
    """Cycles to fill the slabs: one number at a time if the operand has another order."""
    numbers = problem.batch * problem.groups * problem.in_features * problem.arithmetic.parts
    numbers *= math.prod(axis.input for axis in problem.axes)
    transposed = choice.across is Across.GROUPS and not problem.left_access.walks(1)
    return numbers * (_TRANSPOSING if transposed else 2 / choice.lanes)


def _storing(problem: Correlation, choice: _RegisterTile) -> float:
    """Cycles to store one result."""
    feature, last = 1, 1 + len(problem.axes)
    along, other = (last, feature) if choice.across is Across.PIXELS else (feature, last)
    if problem.result_access.walks(along):
        return 2 / choice.lanes
    return 0.8 if problem.result_access.walks(other) and choice.box[-1] >= 4 else 3


def _depth(problem: Correlation, l1: int, choice: _RegisterTile) -> int:
    """In features whose products' operands stay in a first-level cache from tile to tile."""
    is_pixels = choice.across is Across.PIXELS
    if choice.across is Across.GROUPS:
        return problem.in_features
    weights = problem.taps * (choice.box[1] if is_pixels else choice.columns)
    box = (*choice.box[2:], choice.columns) if is_pixels else choice.box[1:]
    *outer, inner = (
        positions(axis.window, axis.dilation, axis.stride, count)
        for axis, count in zip(problem.axes, box, strict=True)
    )
    itemsize = problem.arithmetic.itemsize
    lines = choice.box[0] * math.prod(outer) * (inner * itemsize + _LINE_BYTES // 2)
    most = max(l1 * 3 // 4 // (weights * itemsize + lines), ceil_div(_LEAST_PRODUCTS, problem.taps))
    return ceil_div(problem.in_features, ceil_div(problem.in_features, most))


def _cut(problem: Correlation, limit: int, l1: int, choice: _RegisterTile) -> DirectPlan:
    """The plan with slabs of at most ``limit`` bytes: by default half of a second-level cache.

    The operands of one tile take at most ``l1`` bytes.
    """
    rows, columns = _extents(problem, choice.across)
    is_pixels, is_groups = choice.across is Across.PIXELS, choice.across is Across.GROUPS
    axes = problem.axes
    first = axes[0]
    spread = columns if is_groups else 1

    tiles = [*choice.box, choice.columns]
    cut = 2 if is_pixels else 1  # the first axis among the dimensions
    images, results = problem.batch, first.result
    depth, window = _depth(problem, l1, choice), first.window
    partial = columns * math.prod(rows[1:]) // first.result if depth < problem.in_features else 0

    def size(images: int, depth: int, results: int, window: int) -> int:
        count = positions(window, first.dilation, first.stride, results)
        for a in axes[1:]:
            count *= positions(a.window, a.dilation, a.stride, a.result)
        count = images * (depth * count * spread + results * partial)
        return count * problem.arithmetic.itemsize

    is_split = problem.in_features * problem.taps > problem.batch * problem.results
    if is_split:
        # Few results of long sums, such as a gradient of weights: the sums are split.
        depth = min(depth, ceil_div(_FEW_PRODUCTS, problem.taps))
        window = min(window, ceil_div(4 * _FEW_PRODUCTS * window, depth * problem.taps))
        inner = depth * problem.taps // first.window
        # The products of a part of the window are contiguous for one feature only.
        while (
            depth == 1
            and size(images, depth, results, window) > limit
            and window * inner > _FEW_PRODUCTS
        ):
            window = ceil_div(window, 2)
        while size(images, depth, results, window) > limit and images > tiles[0]:
            images = _multiple(ceil_div(images, 2), tiles[0])
    else:
        images = tiles[0]
        while size(images, depth, results, window) > limit and results > tiles[cut]:
            results = _multiple(ceil_div(results, 2), tiles[cut])
        while size(images, depth, results, window) > 2 * limit and depth > 1:
            depth = ceil_div(depth, 2)
    blocks = [*rows, columns]
    blocks[0], blocks[cut] = min(images, problem.batch), min(results, first.result)
    middle = [(Role.FEATURE, 0)] if is_pixels else []
    last = (Role.AXIS, len(axes) - 1) if is_pixels else (Role.FEATURE, 0)
    others = [(Role.AXIS, i) for i in range(len(axes) - is_pixels)]
    roles = [(Role.IMAGE, 0), *middle, *others, last]
    dimensions = [
        Dimension(role, axis, extent, tile, block)
        for (role, axis), extent, tile, block in zip(
            roles, [*rows, columns], tiles, blocks, strict=True
        )
    ]
    parts = (ceil_div(problem.in_features, depth), ceil_div(first.window, window))
    plan = DirectPlan(
        across=choice.across,
        rows=tuple(dimensions[:-1]),
        column=dimensions[-1],
        vectors=choice.vectors,
        lanes=choice.lanes,
        groups=1 if is_groups else problem.groups,
        depth=depth,
        window=window,
        parts=parts,
        ranges=1,
        shares=(1, 1, 1),
    )
    results_bytes = math.prod(rows) * columns * problem.arithmetic.itemsize
    if is_split and plan.units == 1 and not is_pixels and results_bytes <= _SPLIT_BYTES:
        return replace(plan, ranges=no_empty_share(math.prod(parts), _MOST_RANGES))
    return plan


def _shared(plan: DirectPlan, threads: int) -> DirectPlan:
    """The plan for ``threads`` threads: a first axis with too few units is cut finer."""
    if plan.ranges > 1:
        return replace(plan, shares=(1, 1, min(plan.ranges, threads)))
    # Across pixels the columns are the inner loop, and not shared.
    column_tiles = 1 if plan.across is Across.PIXELS else plan.column.tiles
    at = plan.of_role(Role.AXIS)
    dimensions = list(plan.dimensions)
    while column_tiles * plan.units < threads and dimensions[at].block > dimensions[at].tile:
        d = dimensions[at]
        dimensions[at] = replace(d, block=_multiple(ceil_div(d.block, 2), d.tile))
        if dimensions[at].block == d.block:
            break
        plan = replace(plan, rows=tuple(dimensions[:-1]), column=dimensions[-1])
    units = plan.units
    by_units, by_columns = min(
        ((u, min(column_tiles, threads // u)) for u in range(1, min(units, threads) + 1)),
        key=lambda pair: (ceil_div(units, pair[0]) * ceil_div(column_tiles, pair[1]), pair[1]),
    )
    return replace(plan, shares=(by_units, by_columns, 1))


def _multiple(count: int, of: int) -> int:
    """``count`` rounded up to a multiple."""
    return ceil_div(count, of) * of


def horner(indices: Sequence[int], extents: Sequence[int]) -> int:
    """The row-major offset of ``indices`` in an array of ``extents``."""
    place = 0
    for index, extent in zip(indices, extents, strict=True):
        place = place * extent + index
    return place
