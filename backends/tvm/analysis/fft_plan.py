"""Plans FFTs: the radix stages, the sweeps over rows and columns, and the twiddle factors.

A sweep transforms the columns of a matrix, whose elements have the stride of a row. One sweep is
enough along an axis that is not the last; a row of n = r c numbers takes two: the columns of an r
by c matrix, each result multiplied by a twiddle factor, then the columns of the transpose.

A plan is an array of integers that the kernel reads, so that one compiled body serves all stages
of one `Radix`. For short rows, where reading the plan would dominate, the plan is constant in the
code.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tracejit.graph import Instruction

LONGEST = 4096
"""The longest column: more would not fit in the cache."""

LINE = 64
"""Bytes of a cache line, the narrowest strip of a sweep over memory."""
_WIDEST = 256
"""Bytes of the widest strip."""
_SAME, _APART = 2048, 512
"""Rows this many bytes apart, or multiples, conflict in the sets of a cache."""

# The integers of one sweep: the strips of a matrix, the first column of the last strip; bytes
# between matrices and rows of source and target; numbers in a column; the offset of its twiddle
# factors in the table; the number of stages, and for each its body, m, s and offset of factors.
STRIPS, LAST, FROM_MATRIX, FROM_ROW, TO_MATRIX, TO_ROW, LENGTH, FINE, COARSE, STAGES = range(10)
BEFORE_STAGES, PER_STAGE = 10, 4

# The cost of a number in one stage, by radix, and of its twiddle factor.
_COSTS = {2: 1.0, 3: 1.3, 4: 1.15, 5: 1.7, 7: 2.3, 8: 1.5, 11: 3.6, 13: 4.4, 16: 2.0}
_TWIDDLE = 0.5
_SPILLED = 1.5
"""The factor on the cost of a radix with as many numbers as there are registers."""
_MOST_TURNED = 13
"""From 16 on there are more factors than registers."""
_WAYS, _SPLITS = 6, 3
"""The number of candidates for a column, and for dividing a row."""
# The cost factor if one of two columns is twice as long: threads then share less evenly.
_UNEVEN = 0.03
# The compile time of one more radix, as a share of the time of a call.
_BODY = 0.06


class Radix(NamedTuple):
    """A kind of stage; all but the last of a column multiply by twiddle factors."""

    radix: int
    twiddled: bool


@dataclass(frozen=True)
class Column:
    """The stages of a transform of ``length`` numbers, the first one first."""

    length: int
    radices: tuple[int, ...]

    @property
    def stages(self) -> list[Radix]:
        *others, last = self.radices
        return [*(Radix(r, True) for r in others), Radix(last, False)]

    def cost(self, registers: int = 32) -> float:
        """The cost of one number."""
        last, twiddled = _stage_costs(registers)
        return sum([twiddled[radix] for radix in self.radices[:-1]]) + last[self.radices[-1]]

    @functools.cached_property
    def bodies(self) -> frozenset[Radix]:
        return frozenset(self.stages)


@functools.lru_cache(maxsize=8)
def _stage_costs(registers: int) -> tuple[Mapping[int, float], Mapping[int, float]]:
    """The cost of a number by radix: in the last stage of a column, and in the others."""
    last = {r: cost * (_SPILLED if r >= registers else 1.0) for r, cost in _COSTS.items()}
    return last, {r: cost + _TWIDDLE * (1 - 1 / r) for r, cost in last.items()}


def smooth(length: int, greatest: int = 13) -> bool:
    """Whether a length has no prime factors above ``greatest``; all up to 13 are radices."""
    for prime in (2, 3, 5, 7, 11, 13):
        while prime <= greatest and length % prime == 0:
            length //= prime
    return length == 1


@functools.lru_cache(maxsize=256)
def columns(length: int, registers: int = 32) -> tuple[Column, ...]:
    """The best plans for a column, the fastest first; none for an unsuitable length."""
    if not 2 <= length <= LONGEST or not smooth(length):
        return ()
    last_costs, costs = _stage_costs(registers)
    found = [
        (cost + last_costs[last], (*others, last))
        for last in _COSTS
        if length % last == 0
        for cost, others in _descending(length // last, _MOST_TURNED, costs)
    ]
    best = heapq.nsmallest(_WAYS, found, key=lambda way: way[0])
    return tuple(Column(length, radices) for _, radices in best)


def _descending(
    length: int, most: int, costs: Mapping[int, float]
) -> list[tuple[float, tuple[int, ...]]]:
    """The factorisations of ``length`` into radices up to ``most``, in descending order, with
    their costs.
    """
    if length == 1:
        return [(0.0, ())]
    return [
        (costs[radix] + cost, (radix, *rest))
        for radix in _COSTS
        if radix <= most and length % radix == 0
        for cost, rest in _descending(length // radix, radix, costs)
    ]


@functools.lru_cache(maxsize=256)
def split(length: int, registers: int = 32) -> tuple[Column, ...] | None:
    """A row of ``length`` numbers as the columns of one or two matrices; None if that is
    impossible.

    One is for primes, a matrix with a single column.
    """
    halves = (n for n in range(math.isqrt(length), 1, -1) if length % n == 0)
    able = ((columns(length // n, registers), columns(n, registers)) for n in halves)
    pairs = [
        pair
        for ways in itertools.islice(filter(all, able), _SPLITS)
        for pair in itertools.product(*ways)
    ]
    whole = [(column,) for column in columns(length, registers)]
    return min(pairs or whole, key=lambda ways: _row_cost(ways, registers), default=None)


def _row_cost(ways: tuple[Column, ...], registers: int) -> float:
    first, last = ways[0], ways[-1]
    uneven = 1 + _UNEVEN * math.log2(first.length / last.length)
    cost = first.cost(registers) + last.cost(registers)
    return cost * uneven * (1 + _BODY * len(first.bodies | last.bodies))


def circle(numerators: np.ndarray, size: int, inverse: bool) -> np.ndarray:
    """Powers of the ``size``-th root of one; exact where sine and cosine are."""
    parts = 8 * (numerators % size)
    octant, rest = parts // size, parts % size
    odd = octant % 2 == 1
    angle = np.where(odd, size - rest, rest) * (np.pi / (4 * size))
    cosine, sine = np.cos(angle), np.sin(angle)
    # Within an octant the angle is measured from the nearer axis.
    near = (octant + 1) // 2 % 4
    sine = np.where(odd, -sine, sine)
    re = np.choose(near, [cosine, -sine, -cosine, sine])
    im = np.choose(near, [sine, cosine, -sine, -cosine])
    return np.asarray(re + 1j * (im if inverse else -im))


def powers(numerators: np.ndarray, count: int, size: int, inverse: bool) -> np.ndarray:
    """For each of ``numerators`` the first ``count`` powers of that power of `circle`.

    Most are computed as products, in a tenth of the time.
    """
    few = math.isqrt(count)
    ends = numerators[:, None] * np.arange(few), numerators[:, None] * np.arange(0, count, few)
    low, high = (circle(each, size, inverse) for each in ends)
    made: np.ndarray = (high[:, :, None] * low[:, None, :]).reshape(len(numerators), -1)
    return made[:, :count]


@functools.lru_cache(maxsize=32)
def halves_factors(points: int, inverse: bool) -> np.ndarray:
    """What `ir.internal_ops.FOURIER_HALVES` multiplies numbers 1 to points // 2 by: parts, f64."""
    turns = powers(np.ones(1, np.int64), points // 2 + 1, 2 * points, inverse)[0, 1:]
    made = turns * (0.5j if inverse else -0.5j)
    return np.stack([made.real, made.imag], -1).ravel()


def doubled(factors: np.ndarray) -> np.ndarray:
    """Factors in the kernel's format: (re, re), (-im, im) for each, flattened."""
    made = np.empty((*factors.shape, 4))
    made[..., 0] = made[..., 1] = factors.real
    made[..., 3] = factors.imag
    np.negative(factors.imag, out=made[..., 2])
    return made.ravel()


def stage_factors(column: Column, inverse: bool) -> list[np.ndarray]:
    """For each twiddled stage, by p and k: the p k-th powers."""
    made, left = [], column.length
    for stage in column.stages:
        if stage.twiddled:
            p, k = np.arange(left // stage.radix)[:, None], np.arange(1, stage.radix)
            made.append(doubled(circle(p * k, left, inverse)))
        left //= stage.radix
    return made


# The longest row that is transformed one by one, and the same for many rows: the data between the
# sweeps then stays in cache.
_SHORT, _RATHER_SHORT, _MANY = 4096, 1 << 14, 16
# The most bytes of one part for which every number has its own factor between the sweeps.
_FEW = 4096


@dataclass(frozen=True)
class Transform:
    """``count`` transforms of rows, or of the columns of ``count`` matrices.

    ``ways`` are one column, or two for the two sweeps of a row. Parts of numbers take ``itemsize``
    bytes, the registers of the processor ``vector_bytes``.
    """

    count: int
    columns: int
    ways: tuple[Column, ...]
    inverse: bool
    itemsize: int
    vector_bytes: int

    @property
    def name(self) -> str:
        ways = ["x".join(map(str, column.radices)) for column in self.ways]
        kind = "inverse" if self.inverse else "forward"
        sizes = f"{self.count}_{self.columns}"
        return "_".join([kind, sizes, *ways, f"f{8 * self.itemsize}"])

    @property
    def length(self) -> int:
        return math.prod(column.length for column in self.ways)

    @property
    def is_row(self) -> bool:
        return len(self.ways) == 2

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """Rows and columns of each sweep's matrices."""
        if not self.is_row:
            return [(self.length, self.columns)]
        first, second = (column.length for column in self.ways)
        return [(first, second), (second, first)]

    @property
    def lanes(self) -> int:
        """The number of columns in a vector."""
        most = max(self.vector_bytes // (2 * self.itemsize), 1)
        return min(most, 1 << (self._narrowest.bit_length() - 1))

    @property
    def vectors(self) -> int:
        """The number of vectors in a strip: several if rows conflict in the cache."""
        number = 2 * self.itemsize
        apart = max(math.gcd(number * columns, _SAME) for _, columns in self.sizes)
        wide = LINE if self.by_rows else min(LINE * max(apart // _APART, 1), _WIDEST)
        fit = 1 << (self._narrowest // self.lanes).bit_length() - 1
        return max(min(wide // (number * self.lanes), fit), 1)

    @property
    def width(self) -> int:
        """The number of columns in a strip."""
        return self.lanes * self.vectors

    @property
    def _narrowest(self) -> int:
        return min(columns for _, columns in self.sizes)

    @property
    def strips(self) -> list[int]:
        """The strips of one matrix, in each sweep."""
        return [-(-columns // self.width) for _, columns in self.sizes]

    @property
    def by_rows(self) -> bool:
        """Whether a row is finished before the next one begins."""
        many = self.count >= _MANY and self.length <= _RATHER_SHORT
        return self.is_row and (self.length <= _SHORT or many)

    @property
    def coarse(self) -> bool:
        """Whether factors between the sweeps are products of two."""
        return self.length * self.itemsize > _FEW

    @property
    def bodies(self) -> tuple[Radix, ...]:
        return tuple(sorted(frozenset[Radix]().union(*(column.bodies for column in self.ways))))

    @property
    def room(self) -> int:
        """The numbers in a scratch buffer."""
        return max(column.length for column in self.ways) * self.width

    @property
    def middle(self) -> int:
        """The numbers between the sweeps; of one row if rows are transformed one by one."""
        first, second = self.sizes[0]
        matrix = second * (first + self._gap) if self.is_row else 0
        return matrix if self.by_rows else matrix * self.count

    @property
    def _gap(self) -> int:
        """Padding numbers after rows of whole cache lines, which would conflict in the cache."""
        return self.lanes if self.sizes[0][0] % self.lanes == 0 else 0

    @property
    def stride(self) -> int:
        """The integers of one sweep's plan."""
        return BEFORE_STAGES + PER_STAGE * max(len(column.radices) for column in self.ways)

    def tables(self) -> tuple[np.ndarray, np.ndarray]:
        """The plan, i64, and the table of all factors, f64."""
        plan = np.zeros((len(self.ways), self.stride), np.int64)
        table: list[np.ndarray] = []
        places: dict[bytes, int] = {}

        def place(factors: np.ndarray) -> int:
            key = factors.tobytes()
            if key not in places:
                places[key] = self.itemsize * sum(each.size for each in table)
                table.append(factors)
            return places[key]

        number = 2 * self.itemsize
        for sweep, (column, (rows, columns)) in enumerate(zip(self.ways, self.sizes, strict=True)):
            fields = plan[sweep]
            fields[STRIPS], fields[LAST] = self.strips[sweep], columns - self.width
            fields[LENGTH], fields[STAGES] = rows, len(column.radices)
            dense = number * rows * columns, number * columns
            fields[FROM_MATRIX], fields[FROM_ROW] = fields[TO_MATRIX], fields[TO_ROW] = dense
            if self.is_row and sweep:
                fields[FROM_ROW] = number * (columns + self._gap)
                fields[FROM_MATRIX] = 0 if self.by_rows else fields[FROM_ROW] * rows
            elif self.is_row:
                fields[TO_ROW] = number * (rows + self._gap)
                fields[TO_MATRIX] = 0 if self.by_rows else fields[TO_ROW] * columns
                fine, coarse = self._turns()
                fields[FINE], fields[COARSE] = place(fine), place(coarse)
            factors = iter(stage_factors(column, self.inverse))
            left, s = rows, 1
            for n, stage in enumerate(column.stages):
                left //= stage.radix
                at = place(next(factors)) if stage.twiddled else 0
                begin = BEFORE_STAGES + PER_STAGE * n
                fields[begin : begin + PER_STAGE] = self.bodies.index(stage), left, s, at
                s *= stage.radix
        return plan.ravel(), np.concatenate(table) if table else np.zeros(1)

    def _turns(self) -> tuple[np.ndarray, np.ndarray]:
        """The twiddle factors of number k in column c.

        By strip, k and column of the strip; or as products of a factor by k and column of the
        strip, and one by strip and k.
        """
        rows, columns = self.sizes[0]
        k, lane = np.arange(rows), np.arange(self.width)
        begin = np.minimum(np.arange(self.strips[0]) * self.width, columns - self.width)
        scale = 1 / self.length if self.inverse else 1.0
        coarse = np.zeros(0)
        if self.coarse:
            coarse = doubled(powers(begin, rows, self.length, self.inverse))
            turn = k[:, None] * lane
        else:
            turn = (begin[:, None, None] + lane) * k[:, None]
        fine = circle(turn, self.length, self.inverse) * scale
        fine = fine.reshape(-1, self.lanes)
        # A vector of real parts, then one of imaginary parts with their signs.
        re, im = (np.repeat(part, 2, axis=-1) for part in (fine.real, fine.imag))
        im[..., ::2] *= -1
        return np.stack([re, im], -2).ravel(), coarse


@functools.lru_cache(maxsize=32)
def tables(what: Transform) -> tuple[np.ndarray, np.ndarray]:
    """`Transform.tables`, cached."""
    return what.tables()


def transform_of(instruction: Instruction) -> Transform:
    """The transform of an `ir.internal_ops.FOURIER`."""
    given = instruction.attributes
    ways = [given["radices"], given["more_radices"]]
    itemsize = instruction.array_shape.element_type.real.dtype.itemsize
    columns = tuple(Column(math.prod(radices), radices) for radices in ways if radices)
    return Transform(
        given["count"],
        given["columns"],
        columns,
        given["inverse"],
        itemsize,
        given["vector_bytes"],
    )
