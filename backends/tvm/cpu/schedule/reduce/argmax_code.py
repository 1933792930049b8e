"""Argmax and argmin of contiguous rows as LLVM text: the best of blocks, then its index in one.

    code = argmax_code(RowReduction(MAX, FLOAT32, -inf, lanes=16, group=2, apart=True), 1024)
    index = code.called(address, count)     # of the first best number; `code.text` comes with it

To carry an index along takes six instructions for a vector; the best number alone takes three, and
the block that has it is then in the first cache. NaN is better than any number, and zeros of
either sign are equal.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from tracejit.backends.tvm.cpu.llvm.builder import Value, literal, module_text
from tracejit.backends.tvm.cpu.llvm.kinds import BOOL
from tracejit.backends.tvm.cpu.schedule.reduce.row_code import RowProcedure, RowReduction
from tracejit.backends.tvm.ir.contracts import Contract, declare, span
from tracejit.backends.tvm.ir.tir import Expr, tirx
from tracejit.ops.elementwise import MAX

# The bytes of a block, which half of the smallest first cache holds.
BLOCK = 16 << 10


@dataclass(frozen=True)
class ArgmaxCode:
    """A function ``i64 name(ptr first, i64 count)`` and its text."""

    name: str
    text: str

    def called(self, first: Expr, count: Expr) -> Expr:
        """The index of the first best of ``count`` numbers, at least one, from an address on."""
        return tirx.call_extern("int64", self.name, first, count.astype("int64"))


@functools.cache
def argmax_code(way: RowReduction, count: int | None) -> ArgmaxCode:
    """The code for rows of ``count`` numbers; the length is an argument if that is None."""
    name = f"tracejit_arg{way}_of_{'any' if count is None else count}"
    declare(name, Contract(("first", "count"), [span("first", 0, "count")], []))
    code = _Argmax(name, [], [], way)
    found = code.found(count)
    head = f"define i64 @{name}(ptr %first, i64 %count) {{"
    lines = [head, "entry:", *code._rooms, *code._lines, f"  ret i64 {found}", "}"]
    return ArgmaxCode(name, module_text(["\n".join(lines)]))


class _Argmax(RowProcedure):
    def found(self, count: int | None) -> str:
        """The index of the first best number."""
        size = BLOCK // self._item
        if count is not None and count <= size:
            best = self._best("%first", str(count), count)
            return self._index("%first", str(count), best)
        length, kind = "%count" if count is None else str(count), self._kind.llvm
        self.make_room(f"%best = alloca {kind}")
        self.make_room("%where = alloca i64")
        worst = literal(self._kind, self._way.identity)
        self.act(f"store {kind} {worst}, ptr %best")
        self.act("store i64 0, ptr %where")

        def block(number: str) -> None:
            self.lanes = 1
            begin = self.product(number, str(size))
            some = self.lesser(str(size), self.difference(length, begin))
            new = self._best(self.place("%first", begin), some, None)
            old = self.emit(self._kind, f"load {kind}, ptr %best")
            better = ~(new <= old if self._way.op is MAX else new >= old) & old.equals(old)

            def keep() -> None:
                self.act(f"store {new.typed}, ptr %best")
                self.act(f"store i64 {begin}, ptr %where")

            self.when(better.text, keep)

        blocks, _ = self.quotient(self.sum(length, str(size - 1)), str(size))
        self.loop(blocks, block)
        best = self.emit(self._kind, f"load {kind}, ptr %best")
        begin = self._made("load i64, ptr %where")
        some = self.lesser(str(size), self.difference(length, begin))
        return self.sum(begin, self._index(self.place("%first", begin), some, best))

    def _best(self, first: str, count: str, known: int | None) -> Value:
        """The best of some numbers."""
        identity = self.literal_of(self._way.identity)
        return self.number_of(self.combined(first, count, known, identity))

    def _index(self, first: str, count: str, best: Value) -> str:
        """The index of the first number that is not worse than ``best``, or is NaN as it is."""
        lanes, kind, is_float = self._way.lanes, self._kind, self._kind.is_float
        no_nan = best.equals(best)
        whole = self.chosen(no_nan.text, "i64", self._made(f"and i64 {count}, {-lanes}"), "0")
        how = {True: "ge", False: "le"}[self._way.op is MAX]
        compared = f"fcmp o{how}" if is_float else f"icmp s{how}"
        names = ("vectors", "vector", "next", "hit", "numbers", "number", "later", "found")
        vectors, vector, more, hit, numbers, number, later, found = self.fresh(*names)
        i, following, j, after = self.fresh("%i", "%i", "%j", "%j")
        before = self.block
        self.jump(vectors)
        self.start(vectors)
        self.act(f"{i} = phi i64 [ 0, %{before} ], [ {following}, %{more} ]")
        self.act(f"br i1 {self.holds('slt', i, whole)}, label %{vector}, label %{numbers}")
        self.start(vector)
        self.lanes = lanes
        x = self.get(kind, self.place(first, i))
        everywhere = self._repeated(best)
        mask = self.emit(BOOL, f"{compared} {x.typed}, {everywhere}")
        bits = self._made(f"bitcast {mask.typed} to i{lanes}")
        self.lanes = 1
        self.act(f"{following} = add nuw nsw i64 {i}, {lanes}")
        some = self._made(f"icmp ne i{lanes} {bits}, 0")
        self.act(f"br i1 {some}, label %{hit}, label %{more}")
        self.start(more)
        self.jump(vectors)
        self.start(hit)
        zeros = self._made(f"call i{lanes} @llvm.cttz.i{lanes}(i{lanes} {bits}, i1 true)")
        wide = self._made(f"zext i{lanes} {zeros} to i64") if lanes < 64 else zeros
        index = self.sum(i, wide)
        self.jump(found)
        # The last numbers, and all of a block with NaN.
        self.start(numbers)
        self.act(f"{j} = phi i64 [ {i}, %{vectors} ], [ {after}, %{later} ]")
        self.jump(number)
        self.start(number)
        x = self.get(kind, self.place(first, j))
        is_it = self.emit(BOOL, f"{compared} {x.typed}, {best.text}")
        if is_float:
            is_it = is_it | x.is_nan
        self.act(f"{after} = add nuw nsw i64 {j}, 1")
        self.act(f"br i1 {is_it.text}, label %{found}, label %{later}")
        self.start(later)
        self.act(f"br i1 {self.holds('slt', after, count)}, label %{numbers}, label %{found}")
        self.start(found)
        ways = f"[ {index}, %{hit} ], [ {j}, %{number} ], [ {j}, %{later} ]"
        return self._made(f"phi i64 {ways}")

    def _repeated(self, number: Value) -> str:
        """A number in all lanes."""
        vector = self.type(self._kind)
        one = self._made(f"insertelement {vector} poison, {self._kind.llvm} {number.text}, i64 0")
        lanes = f"<{self.lanes} x i32> zeroinitializer"
        return self._made(f"shufflevector {vector} {one}, {vector} poison, {lanes}")
