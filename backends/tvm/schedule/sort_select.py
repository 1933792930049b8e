"""The first few of each row by keys: one scan that keeps the best so far in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracejit.backends.tvm.schedule.frame import Frame
from tracejit.backends.tvm.schedule.sort_keys import Order
from tracejit.backends.tvm.schedule.sort_rows import Rows, Sorting
from tracejit.backends.tvm.tir import (
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

# More are quicker to sort: each that enters moves half of them.
SELECTED = 16


class Selecting(Rows):
    """The kernel of a selection of at least one element; addresses must be 32-bit numbers."""

    def __init__(self, frame: Frame, work: Sorting, order: Order) -> None:
        super().__init__(frame, work, 2)
        self.order = order
        self.key_type = f"uint{order.bits}"

    def scratch(self) -> Sequence[Buffer]:
        return []

    def ordered(self, row: Expr, base: Expr) -> tuple[list[Stmt], Callable[[Expr], Expr]]:
        kept = self.work.kept
        keys = buffer("keys", (kept,), self.key_type, scope="local")
        places = buffer("places", (kept,), self.dtype, scope="local")
        greatest = const(2**self.order.bits - 1, self.key_type)
        clear = loop(kept, lambda i: [store(keys, i, greatest), store(places, i, self.number(0))])
        scan = loop(self.length, lambda i: self._offer(base, keys, places, i), dtype=self.dtype)
        statements = [AllocBuffer(keys), AllocBuffer(places), clear, scan]
        return statements, lambda number: places[number]

    def _offer(self, base: Expr, keys: Buffer, places: Buffer, number: Expr) -> list[Stmt]:
        """Takes in one element if it comes before the last of the best; equals came earlier."""
        emitter = self.emitter()
        operand = self.work.operands[self.order.operand]
        value = emitter.hold(
            self.load(emitter, operand, base, number), operand.array_shape.element_type
        )
        key = buffer("key", (1,), self.key_type, scope="local")
        zero, one, last = self.number(0), self.number(1), self.number(self.work.kept - 1)
        enters = tirx.Or(number <= last, key[zero] < keys[last])
        return [
            AllocBuffer(key),
            *emitter.allocations,
            *emitter.statements,
            store(key, zero, self.order.key(value)),
            IfThenElse(enters, self._insert(keys, places, key[zero], number, zero, one), None),
        ]

    def _insert(
        self, keys: Buffer, places: Buffer, key: Expr, number: Expr, zero: Expr, one: Expr
    ) -> Stmt:
        hole = buffer("hole", (1,), self.dtype, scope="local")
        before = tirx.max(hole[zero] - one, zero)
        shift = seq(
            store(keys, hole[zero], keys[before]),
            store(places, hole[zero], places[before]),
            store(hole, zero, hole[zero] - one),
        )
        return seq(
            AllocBuffer(hole),
            store(hole, zero, tirx.min(number, self.number(self.work.kept - 1))),
            While(tirx.And(hole[zero] > zero, keys[before] > key), shift),
            store(keys, hole[zero], key),
            store(places, hole[zero], number),
        )
