"""Argsort by keys of up to 32 bits in vector registers: a key and its index are one 64-bit word.

The index in the lower half makes all words different, and the sort stable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracejit.backends.tvm.analysis.sort_keys import Order
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.cpu.machine import machine_of
from tracejit.backends.tvm.cpu.schedule.sort.quicksort import VECTOR_BYTES, sorted_row
from tracejit.backends.tvm.cpu.schedule.sort.quicksort_code import SortPlan
from tracejit.backends.tvm.cpu.schedule.sort.quicksort_procedures import is_short, short_row
from tracejit.backends.tvm.cpu.schedule.sort.rows import RowSort, Sorting
from tracejit.backends.tvm.ir.tir import (
    Buffer,
    Expr,
    Stmt,
    buffer,
    const,
    loop,
    store,
    tirx,
)

_PLAN = SortPlan("uint64", VECTOR_BYTES // 8, descending=False, total=True)
_POSITION = (1 << 32) - 1


def suits_words(frame: Frame, work: Sorting, order: Order) -> bool:
    """Whether keys and indices fit into words, and the processor has vector compress."""
    return machine_of(frame).vector_bytes == VECTOR_BYTES and order.bits <= 32 and work.length > 1


class Positions(RowSort):
    """The kernel of an argsort by words; addresses must fit in 32 bits."""

    def __init__(self, frame: Frame, work: Sorting, order: Order) -> None:
        super().__init__(frame, work, max(1, work.length.bit_length() // 2))
        self.order = order
        room = (self.rows * self.length,)
        self.words = buffer("words", room, "uint64")
        short = is_short(_PLAN, self.length)
        self.free = None if short else buffer("free", room, "uint64")

    def scratch(self) -> Sequence[Buffer]:
        return [self.words] if self.free is None else [self.words, self.free]

    def ordered(self, row: Expr, base: Expr) -> tuple[list[Stmt], Callable[[Expr], Expr]]:
        first = row * self.number(self.length)
        words = tirx.address_of(self.words[first])
        if self.free is None:
            zero = const(0, "int64")
            sort = short_row(_PLAN, self.length).called([words, words, zero])
        else:
            sort = sorted_row(_PLAN, words, words, tirx.address_of(self.free[first]), self.length)
        enter = loop(self.length, lambda i: self._enter(base, first, i), dtype=self.dtype)
        statements = [enter, sort]

        def position(number: Expr) -> Expr:
            word = self.words[first + number] & const(_POSITION, "uint64")
            return tirx.Cast(self.dtype, word)

        return statements, position

    def _enter(self, base: Expr, first: Expr, number: Expr) -> list[Stmt]:
        """Store the word of one element: its key and its index."""
        made, key = self.keyed(self.order, base, number)
        high = tirx.Cast("uint64", key) << const(32, "uint64")
        word = high | tirx.Cast("uint64", number)
        return [*made, store(self.words, first + number, word)]
