"""Top-k selection: the first few of each row by keys.

Vectors find the least key of every block of elements. The first k elements are in the k blocks
with the first least keys, so only these are searched element by element. A few long rows are cut
into parts for the threads; the first of a row are the first among those of its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracejit.backends.tvm.analysis.sort_keys import Order
from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.loop_nest import Count, nest
from tracejit.backends.tvm.cpu import mathematics
from tracejit.backends.tvm.cpu.machine import machine_of
from tracejit.backends.tvm.cpu.mathematics.argminmax import least_of_lanes
from tracejit.backends.tvm.cpu.schedule.sort.rows import RowSort, Sorting
from tracejit.backends.tvm.ir.tir import (
    SERIAL,
    VECTORIZED,
    AllocBuffer,
    Buffer,
    Expr,
    IfThenElse,
    Stmt,
    While,
    buffer,
    const,
    loop,
    seq,
    store,
    tirx,
)

# The least length of a part, so that threads have enough work.
PART = 1 << 14
# Elements in a block: balances the cost of a block and the cost of searching a chosen one.
BLOCKS = (256, 128, 64, 32, 16)
# Vectors of a block that one iteration processes.
STEPS = 8


class _First:
    """A sorted list of the ``count`` first (key, index) pairs seen so far.

    Free slots hold the greatest key with the ``last`` index: the only element that does not
    precede them is that one itself.
    """

    def __init__(self, count: int, key_type: str, dtype: str, last: int) -> None:
        self.count = count
        self.dtype = dtype
        self.keys = buffer("keys", (count,), key_type, scope="local")
        self.places = buffer("places", (count,), dtype, scope="local")
        self.hole = buffer("hole", (1,), dtype, scope="local")
        greatest = const(2 ** int(key_type[4:]) - 1, key_type)

        def clear(i: Expr) -> list[Stmt]:
            return [store(self.keys, i, greatest), store(self.places, i, const(last, dtype))]

        locals_ = [AllocBuffer(b) for b in (self.keys, self.places, self.hole)]
        self.begin = [*locals_, loop(count, clear, dtype=dtype)]

    def offer(self, key: Expr, place: Expr) -> Stmt:
        """Insert a pair if it precedes the last; pairs may come in any order of indices."""
        at = self.hole[0]
        before = tirx.max(at - 1, 0)
        shift = seq(
            store(self.keys, at, self.keys[before]),
            store(self.places, at, self.places[before]),
            # With a known trip count LLVM would unroll it to four times the code.
            store(self.hole, 0, mathematics.kept(at - 1, self.dtype)),
        )
        enter = seq(
            store(self.hole, 0, self.count - 1),
            While(tirx.And(at > 0, self._precedes(key, place, before)), shift),
            store(self.keys, at, key),
            store(self.places, at, place),
        )
        return IfThenElse(self._precedes(key, place, self.count - 1), enter, None)

    def _precedes(self, key: Expr, place: Expr, number: Expr | int) -> Expr:
        other = self.keys[number]
        tie = tirx.And(key == other, place < self.places[number])
        return tirx.Or(key < other, tie)


class Selecting(RowSort):
    """The kernel of a selection of at least one element; addresses must fit in 32 bits."""

    def __init__(self, frame: Frame, work: Sorting, order: Order) -> None:
        super().__init__(frame, work, 2)
        self.order = order
        self.key_type = f"uint{order.bits}"
        operand = work.operands[order.operand]
        self.element_type = operand.array_shape.element_type
        self.parts = self._parts()
        self.part = -(-self.length // self.parts)
        self.block = self._block()
        self.lanes = frame.lanes(self.element_type, self.block) if self.block else 1

    def _parts(self) -> int:
        """The number of parts of each row; none is shorter than half of the others."""
        most = min(-(-machine_of(self.frame).threads // self.rows), self.length // PART)
        if most < 2 or not self.frame.is_shared(self.rows * self.length):
            return 1
        return most

    def _block(self) -> int:
        """Elements in a block; 0 if parts are too short for blocks to pay."""
        kept = self.work.kept
        least = [size for size in BLOCKS if 2 * size * size * kept <= 5 * self.part]
        size = least[0] if least else BLOCKS[-1]
        return size if self.part >= 2 * kept * size else 0

    def scratch(self) -> Sequence[Buffer]:
        return []

    def ordered(self, row: Expr, base: Expr) -> tuple[list[Stmt], Callable[[Expr], Expr]]:
        first = self._first()
        scan = self._scan(first, base, self.number(0), self.number(self.length))
        return [*first.begin, *scan], lambda number: first.places[number]

    def statement(self) -> Stmt:
        if self.parts == 1:
            return super().statement()
        room = (self.rows * self.parts * self.work.kept,)
        keys, places = buffer("keys", room, self.key_type), buffer("places", room, self.dtype)
        scan = self._of_parts(keys, places)
        counts = [Count(self.work.sizes[d], self._placing(d)) for d in self.others]
        merge = nest(counts, lambda: self._merged(keys, places), dtype=self.dtype)
        return seq(*self.frame.allocate([keys, places]), scan, merge)

    def _of_parts(self, keys: Buffer, places: Buffer) -> Stmt:
        """The first of every part, one after the other."""
        at: list[Expr] = []

        def part() -> list[Stmt]:
            (number,) = at
            row, base = self._row_and_base()
            begin, extent = number * self.number(self.part), self.number(self.part)
            if self.length % self.parts:
                extent = tirx.min(extent, self.number(self.length) - begin)
            first = self._first()
            target = (row * self.number(self.parts) + number) * self.number(self.work.kept)

            def keep(i: Expr) -> list[Stmt]:
                return [
                    store(keys, target + i, first.keys[i]),
                    store(places, target + i, first.places[i]),
                ]

            scan = self._scan(first, base, begin, extent)
            return [*first.begin, *scan, loop(self.work.kept, keep, dtype=self.dtype)]

        def place(number: Expr) -> None:
            at[:] = [number]

        counts = [Count(self.work.sizes[d], self._placing(d)) for d in self.others]
        counts.append(Count(self.parts, place))
        return nest(counts, part, parallel=self.rows * self.parts, dtype=self.dtype)

    def _merged(self, keys: Buffer, places: Buffer) -> list[Stmt]:
        """Merge the firsts of a row's parts, and store them as results."""
        row, base = self._row_and_base()
        first = self._first()
        count = self.parts * self.work.kept
        source = row * self.number(count)

        def offer(i: Expr) -> Stmt:
            return first.offer(keys[source + i], places[source + i])

        return [
            *first.begin,
            loop(count, offer, dtype=self.dtype),
            self._stored(base, lambda number: first.places[number]),
        ]

    def _first(self, places: int = 0) -> _First:
        """An empty list for the indices below ``places``, by default those of a row."""
        return _First(self.work.kept, self.key_type, self.dtype, (places or self.length) - 1)

    def _scan(self, first: _First, base: Expr, begin: Expr, extent: Expr) -> list[Stmt]:
        """``extent`` elements from index ``begin`` on, no fewer than are kept."""

        def one(place: Expr) -> list[Stmt]:
            return self._offered(first, base, place)

        if not self.block:
            return [loop(extent, lambda i: one(begin + i), dtype=self.dtype)]
        size = self.number(self.block)
        blocks = tirx.truncdiv(extent, size)
        chosen = self._first(self.part // self.block)

        def block(number: Expr) -> list[Stmt]:
            least = buffer("least", (self.lanes,), self.key_type, scope="local")
            return [
                AllocBuffer(least),
                *self._least(least, base, begin + number * size),
                chosen.offer(least[0], number),
            ]

        def elements(number: Expr) -> list[Stmt]:
            """The elements of a chosen block, or at the end those after the last block."""
            bounds = buffer("bounds", (2,), self.dtype, scope="local")
            last = self.number(self.work.kept - 1)
            where = tirx.Select(number > last, blocks, chosen.places[tirx.min(number, last)]) * size
            return [
                AllocBuffer(bounds),
                store(bounds, 0, where),
                store(bounds, 1, tirx.min(size, extent - bounds[0])),
                loop(bounds[1], lambda i: one(begin + bounds[0] + i), dtype=self.dtype),
            ]

        is_whole = isinstance(extent, tirx.IntImm) and int(extent) % self.block == 0
        return [
            *chosen.begin,
            loop(blocks, block, dtype=self.dtype),
            loop(self.work.kept + (not is_whole), elements, dtype=self.dtype),
        ]

    def _least(self, least: Buffer, base: Expr, begin: Expr) -> list[Stmt]:
        """Write the least key of a block to every lane."""
        greatest = const(2 ** int(self.key_type[4:]) - 1, self.key_type)

        steps = min(self.block // self.lanes, STEPS)

        def vectors(number: Expr) -> list[Stmt]:
            start = mathematics.kept(number, self.dtype) * self.number(steps * self.lanes)
            statements: list[Stmt] = []
            for step in range(steps):
                allocations: list[Stmt] = []
                first = begin + start + self.number(step * self.lanes)

                def vector(
                    lane: Expr, first: Expr = first, allocations: list[Stmt] = allocations
                ) -> list[Stmt]:
                    emitter = Emitter(
                        self.in_memory, {}, lanes=self.lanes, lane=lane, index_dtype=self.dtype
                    )
                    key = self._key(emitter, base, first + lane)
                    allocations.extend(emitter.allocations)
                    return [*emitter.statements, store(least, lane, tirx.min(least[lane], key))]

                body = loop(self.lanes, vector, VECTORIZED)
                statements += [*allocations, body]
            return statements

        def all_lanes(body: Callable[[Expr], Expr]) -> Stmt:
            kind = VECTORIZED if self.lanes > 1 else SERIAL
            return loop(self.lanes, lambda lane: store(least, lane, body(lane)), kind)

        return [
            all_lanes(lambda lane: greatest),
            loop(self.block // (steps * self.lanes), vectors, dtype=self.dtype),
            all_lanes(lambda lane: least_of_lanes(least[lane], self.key_type)),
        ]

    def _offered(self, first: _First, base: Expr, place: Expr) -> list[Stmt]:
        emitter = self.emitter()
        key = buffer("key", (1,), self.key_type, scope="local")
        at = buffer("at", (1,), self.dtype, scope="local")
        made = self._key(emitter, base, at[0])
        return [
            AllocBuffer(key),
            AllocBuffer(at),
            store(at, 0, place),
            *emitter.allocations,
            *emitter.statements,
            store(key, 0, made),
            first.offer(key[0], at[0]),
        ]

    def _key(self, emitter: Emitter, base: Expr, place: Expr) -> Expr:
        operand = self.work.operands[self.order.operand]
        value = self.load(emitter, operand, base, place)
        return self.order.key(emitter.hold(value, self.element_type))
