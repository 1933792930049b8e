"""Sort by keys: a stable LSD radix sort of keys with their indices.

One pass over a row counts every digit of every key; then a pass for each digit moves the keys in
the order of that digit. A digit that all keys of a row share is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracejit.backends.tvm.analysis.sort_keys import Order
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.cpu.schedule.sort.rows import RowSort, Sorting
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


class Radix(RowSort):
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
        counts = buffer("counts", (self.digits * _BUCKETS,), "int32", scope="local")
        source = buffer("source", (1,), "int32", scope="local")
        total = buffer("total", (1,), "int32", scope="local")
        zero = self.number(0)
        statements = [
            *(AllocBuffer(local) for local in (counts, source, total)),
            loop(self.digits * _BUCKETS, lambda i: store(counts, i, const(0, "int32"))),
            store(source, zero, first),
            loop(self.length, lambda i: self._enter(base, first, counts, i), dtype=self.dtype),
            loop(self.digits, lambda digit: self._pass(first, source, total, counts, digit)),
        ]

        def position(number: Expr) -> Expr:
            return tirx.Cast(self.dtype, self.words[source[zero] + number])

        return statements, position

    def _enter(self, base: Expr, first: Expr, counts: Buffer, number: Expr) -> list[Stmt]:
        """Store the key of one element with its index, and count its digits."""
        made, key = self.keyed(self.order, base, number)
        counted = []
        for digit in range(self.digits):
            place = self._bucket(key, const(digit, "int32"))
            counted.append(store(counts, place, counts[place] + const(1, "int32")))
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
        zero, one = self.number(0), const(1, "int32")
        # The other half of the scratch, before or after the source's.
        target = first + first + self.number(self.length) - source[zero]
        start = digit * const(_BUCKETS, "int32")

        def key_at(place: Expr) -> Expr:
            if self.keys is not None:
                return self.keys[place]
            return self.words[place] >> const(32, "uint64")

        def begin(bucket: Expr) -> list[Stmt]:
            """Replace the count of a bucket by the index of its first key (an exclusive scan)."""
            count = buffer("count", (1,), "int32", scope="local")
            return [
                AllocBuffer(count),
                store(count, zero, counts[start + bucket]),
                store(counts, start + bucket, total[zero]),
                store(total, zero, total[zero] + count[zero]),
            ]

        def move(number: Expr) -> list[Stmt]:
            word = buffer("word", (1,), self.word, scope="local")
            key = buffer("key", (1,), "uint64", scope="local")
            place = buffer("place", (1,), "int32", scope="local")
            bucket = self._bucket(key[zero], digit)
            stored = [store(self.words, target + place[zero], word[zero])]
            if self.keys is not None:
                stored.append(store(self.keys, target + place[zero], key[zero]))
            return [
                *(AllocBuffer(local) for local in (word, key, place)),
                store(word, zero, self.words[source[zero] + number]),
                store(key, zero, key_at(source[zero] + number)),
                store(place, zero, counts[bucket]),
                store(counts, bucket, place[zero] + one),
                *stored,
            ]

        shared = counts[self._bucket(key_at(source[zero]), digit)]
        passed = seq(
            store(total, zero, const(0, "int32")),
            loop(_BUCKETS, begin),
            loop(self.length, move, dtype=self.dtype),
            store(source, zero, target),
        )
        return IfThenElse(shared < self.number(self.length), passed, None)
