"""Sort by keys: a stable LSD radix sort of keys with their indices.

One pass over a row counts every digit of every key; then a pass for each digit moves the keys in
the order of that digit. A digit that all keys of a row share is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracejit.backends.tvm.analysis.sort_keys import Order
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.cpu.schedule.sort.rows import RowSort, Sorting
from tracejit.backends.tvm.ir.contracts import filling
from tracejit.backends.tvm.ir.tir import (
    AllocBuffer,
    Buffer,
    Expr,
    IfThenElse,
    Stmt,
    buffer,
    const,
    loop,
    seq,
    store,
    tirx,
)

DIGIT = 8
"""Bits of a digit: 256 write positions use all lines of the first-level cache."""

_BUCKETS = 1 << DIGIT
_MASK = _BUCKETS - 1


class RadixSort(RowSort):
    """The kernel of a radix sort; addresses must fit in 32 bits."""

    def __init__(self, frame: Frame, work: Sorting, order: Order) -> None:
        super().__init__(frame, work, order.bits // DIGIT + 2)
        self.order = order
        self.digits = order.bits // DIGIT
        # Two halves for every row. Up to 32 bits, a key and its index share a word.
        self.word = "uint64" if order.bits <= 32 else "uint32"
        room = (2 * self.rows * self.length,)
        self.words = buffer("words", room, self.word)
        self.keys = buffer("keys", room, "uint64") if order.bits > 32 else None

    def scratch(self) -> Sequence[Buffer]:
        return [self.words] if self.keys is None else [self.words, self.keys]

    def ordered(self, row: Expr, base: Expr) -> tuple[list[Stmt], Callable[[Expr], Expr]]:
        first = row * self.number(2 * self.length)
        counts = buffer("counts", (self.digits * _BUCKETS,), "uint32", scope="local")
        source = buffer("source", (1,), "int32", scope="local")
        total = buffer("total", (1,), "uint32", scope="local")
        zero = self.number(0)
        enter = loop(self.length, lambda i: self._enter(base, first, counts, i), dtype=self.dtype)
        # A pass writes all of the other half, a bucket after the other, before it is the source.
        for memory in self.scratch():
            enter = filling(enter, memory, first, 2 * self.length)
        statements = [
            *(AllocBuffer(local) for local in (counts, source, total)),
            loop(self.digits * _BUCKETS, lambda i: store(counts, i, const(0, "uint32"))),
            store(source, zero, const(0, "int32")),
            enter,
            loop(self.digits, lambda digit: self._pass(first, source, total, counts, digit)),
        ]

        def position(number: Expr) -> Expr:
            word = self.words[first + source[zero] + number]
            # A row has less than 2**31 places: the upper half of a word is the key.
            return tirx.Cast(self.dtype, word & const((1 << 32) - 1, self.word))

        return statements, position

    def _enter(self, base: Expr, first: Expr, counts: Buffer, number: Expr) -> list[Stmt]:
        """Store the key of one element with its index, and count its digits."""
        made, key = self.keyed(self.order, base, number)
        counted = []
        for digit in range(self.digits):
            place = self._bucket(key, const(digit, "int32"))
            counted.append(store(counts, place, counts[place] + const(1, "uint32")))
        return [*made, *self._put(first + number, key, number), *counted]

    def _bucket(self, key: Expr, digit: Expr) -> Expr:
        """The index of a key's digit in the counts."""
        dtype = str(key.ty)
        shift = tirx.Cast(dtype, digit * const(DIGIT, "int32"))
        part = (key >> shift) & const(_MASK, dtype)
        return tirx.Cast("int32", part) + digit * const(_BUCKETS, "int32")

    def _put(self, place: Expr, key: Expr, position: Expr) -> list[Stmt]:
        if self.keys is not None:
            return [
                store(self.keys, place, key),
                store(self.words, place, tirx.Cast("uint32", position)),
            ]
        high = tirx.Cast("uint64", key) << const(32, "uint64")
        return [store(self.words, place, high | tirx.Cast("uint64", position))]

    def _pass(self, first: Expr, source: Buffer, total: Buffer, counts: Buffer, digit: int) -> Stmt:
        zero = self.number(0)
        # The other half of the scratch, before or after the source's.
        other = self.number(self.length) - source[zero]
        here, there = first + source[zero], first + other
        last = const(self.length - 1, "uint32")
        start = digit * const(_BUCKETS, "int32")

        def key_at(place: Expr) -> Expr:
            if self.keys is not None:
                return self.keys[place]
            return self.words[place] >> const(32, "uint64")

        def begin(bucket: Expr) -> list[Stmt]:
            """Replace the count of a bucket by the index of its first key (an exclusive scan)."""
            count = buffer("count", (1,), "uint32", scope="local")
            return [
                AllocBuffer(count),
                store(count, zero, counts[start + bucket]),
                store(counts, start + bucket, total[zero]),
                store(total, zero, total[zero] + count[zero]),
            ]

        def move(number: Expr) -> list[Stmt]:
            word = buffer("word", (1,), self.word, scope="local")
            key = buffer("key", (1,), "uint64", scope="local")
            place = buffer("place", (1,), "uint32", scope="local")
            bucket = self._bucket(key[zero], digit)
            # Counts add up to the length of a row, which the verifier does not see.
            goal = there + tirx.Cast("int32", tirx.min(place[zero], last))
            stored = [store(self.words, goal, word[zero])]
            if self.keys is not None:
                stored.append(store(self.keys, goal, key[zero]))
            return [
                *(AllocBuffer(local) for local in (word, key, place)),
                store(word, zero, self.words[here + number]),
                store(key, zero, key_at(here + number)),
                store(place, zero, counts[bucket]),
                store(counts, bucket, place[zero] + const(1, "uint32")),
                *stored,
            ]

        shared = counts[self._bucket(key_at(here), digit)]
        passed = seq(
            store(total, zero, const(0, "uint32")),
            loop(_BUCKETS, begin),
            loop(self.length, move, dtype=self.dtype),
            store(source, zero, other),
        )
        return IfThenElse(shared < const(self.length, "uint32"), passed, None)
