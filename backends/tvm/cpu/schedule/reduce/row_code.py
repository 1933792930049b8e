"""Reductions of contiguous rows as LLVM text.

    way = RowReduction(ADD, FLOAT32, 0.0, lanes=32, group=4)
    code = row_code(way, 1024)
    value = code.called(address, count, start)      # an expression; `code.text` comes with it
    rows = rows_code(way, RowLayout(1024, 1024, 0), 0.0)    # a procedure that stores its results

TVM sees one call, and LLVM's optimisations find nothing to do: values are in SSA form from the
start. Elements are combined in the order of `Sweep.row`: ``group`` accumulator vectors, the
remaining vectors and numbers, then halves of vectors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tracejit.backends.tvm.cpu.llvm.builder import Value, literal, module_text
from tracejit.backends.tvm.cpu.llvm.kinds import Kind
from tracejit.backends.tvm.cpu.llvm.procedures import Procedure
from tracejit.backends.tvm.cpu.mathematics.ordered_integers import (
    higher_rank,
    maximum_of_rank,
    minimum_of_rank,
    rank_for_maximum,
    rank_for_minimum,
)
from tracejit.backends.tvm.cpu.mathematics.vocabulary import select
from tracejit.backends.tvm.ir.contracts import Contract, Region, declare, span, whole
from tracejit.backends.tvm.ir.tir import Expr, tirx
from tracejit.graph import Op
from tracejit.ops.elementwise import ADD, AND, MAX, MIN, MUL, OR, XOR

_COMBINE: dict[Op, Callable[[Value, Value], Value]] = {
    ADD: lambda a, b: a + b,
    MUL: lambda a, b: a * b,
    MAX: lambda a, b: select(a > b, a, b),
    MIN: lambda a, b: select(a < b, a, b),
    AND: lambda a, b: a & b,
    OR: lambda a, b: a | b,
    XOR: lambda a, b: a ^ b,
}
_RANKS = {MAX: (rank_for_maximum, maximum_of_rank), MIN: (rank_for_minimum, minimum_of_rank)}


@dataclass(frozen=True)
class RowReduction:
    """The reduction of numbers of one ``kind``, from ``identity`` on.

    MAX and MIN of floats are of their ranks: partial results are ranks.
    """

    op: Op
    kind: Kind
    identity: float
    lanes: int
    group: int

    def __str__(self) -> str:
        return f"{self.op.function}_{self.kind.name}x{self.lanes}x{self.group}"


@dataclass(frozen=True)
class RowLayout:
    """Rows of ``length`` numbers with stride ``apart``, from index ``first`` of memory on.

    With ``parts`` above 1 each of ``count`` rows of ``whole`` numbers is cut into that many pieces
    of ``length``, the last ones shorter; all first pieces come first.
    """

    length: int
    apart: int
    first: int
    parts: int = 1
    whole: int = 0
    count: int = 1

    def __str__(self) -> str:
        numbers = self.length, self.apart, self.first, self.parts, self.whole, self.count
        return "_".join(map(str, numbers))


@dataclass(frozen=True)
class RowCode:
    """A function ``kind name(ptr first, i64 count, kind start)`` and its text."""

    name: str
    text: str
    kind: Kind

    def called(self, first: Expr, count: Expr, start: Expr) -> Expr:
        """``start`` combined with ``count`` numbers from the address ``first`` on."""
        return tirx.call_extern(self.kind.name, self.name, first, count.astype("int64"), start)


@functools.cache
def row_code(way: RowReduction, count: int | None) -> RowCode:
    """The code for rows of ``count`` numbers; the length is an argument if that is None.

    Its input and its result are partial results.
    """
    name = f"tracejit_row_{way}_of_{'any' if count is None else count}"
    code = _Row(name, [], [], way)
    kind = way.kind.llvm
    result = code.combined("%first", "%count", count, "%start")
    declare(name, Contract(("first", "count", "start"), [span("first", 0, "count")], []))
    head = f"define {kind} @{name}(ptr %first, i64 %count, {kind} %start) {{"
    return RowCode(name, module_text([code.defined(head, result)]), way.kind)


def rows_code(way: RowReduction, rows: RowLayout, start: float) -> Procedure:
    """``int32 name(ptr source, ptr target, i64 first, i64 count)``: ``count`` results from
    ``first`` on.

    Pieces of rows give partial results, without ``start``.
    """
    name = f"tracejit_rows_{way}_of_{rows}_from_{_named(way, start)}"
    code = _Row(name, ["source", "target"], ["first", "count"], way)
    if rows.parts == 1:
        first = ("first", rows.apart), (rows.first, 1)
        read = Region("source", first, (("count", rows.apart), (rows.length, 1)))
        code.touches([read], [span("target", "first", "count")])
    else:
        read = Region("source", ((rows.first, 1),), ((rows.count, rows.apart), (rows.whole, 1)))
        code.touches([read], [span("target", "first", "count")])

    def piece(number: str) -> None:
        place, length = code.sum("%first", number), str(rows.length)
        part, row = code.quotient(place, str(rows.count))
        skipped = code.lesser(code.product(part, length), str(rows.whole))
        rest = code.sum(str(rows.whole), code.product(skipped, "-1"))
        begin = code.sum(code.product(row, str(rows.apart)), skipped)
        at = code.place("%source", code.sum(begin, str(rows.first)))
        initial = code.literal_of(way.identity)
        made = code.combined(at, code.lesser(length, rest), None, initial)
        code.put(made, code.place("%target", place))

    def all_rows() -> None:
        begin = code.sum(code.product("%first", str(rows.apart)), str(rows.first))
        source, target = code.place("%source", begin), code.place("%target", "%first")

        def one(number: str) -> None:
            at = code.place(source, code.product(number, str(rows.apart)))
            made = code.combined(at, "", rows.length, code.literal_of(start))
            code.put(code.number_of(made), code.place(target, number))

        code.loop("%count", one)

    some = code.holds("sgt", "%count", "0")
    code.when(some, all_rows if rows.parts == 1 else lambda: code.loop("%count", piece))
    return code


def parts_code(way: RowReduction, parts: int, count: int, start: float) -> Procedure:
    """``int32 name(ptr source, ptr target)``: ``count`` results of ``parts`` partial ones each."""
    name = f"tracejit_parts_{way}_of_{parts}x{count}_from_{_named(way, start)}"
    code = _Row(name, ["source", "target"], [], way)
    code.touches([whole("source", parts * count)], [whole("target", count)])

    def one(number: str) -> None:
        code.lanes = 1
        total = Value(code, way.kind, code.literal_of(start))
        for part in range(parts):
            at = code.place("%source", code.sum(number, str(part * count)))
            total = code.joined(total, code.get(way.kind, at))
        code.put(code.number_of(total), code.place("%target", number))

    code.loop(str(count), one)
    return code


def _named(way: RowReduction, number: float) -> str:
    """A number as part of a name."""
    return literal(way.kind, number).replace("-", "minus")


class _Row(Procedure):
    """The function under construction; offsets count bytes."""

    def __init__(
        self, name: str, pointers: Sequence[str], integers: Sequence[str], way: RowReduction
    ) -> None:
        super().__init__(name, pointers, integers, way.lanes)
        self._way = way
        self._kind = way.kind
        self.joined = _COMBINE[way.op]
        self._rank: Callable[[Value], Value] = lambda x: x
        self.number_of: Callable[[Value], Value] = lambda x: x
        if way.kind.is_float and way.op in _RANKS:
            self.joined = higher_rank
            self._rank, self.number_of = _RANKS[way.op]
        self._item = way.kind.bits // 8

    def defined(self, head: str, result: Value) -> str:
        """The text of a function with this ``head`` that returns ``result``."""
        return "\n".join([head, "entry:", *self._lines, f"  ret {result.typed}", "}"])

    def place(self, memory: str, index: str) -> str:
        """The address of a number in memory."""
        return self.address(memory, self.product(index, str(self._item)))

    def literal_of(self, number: float) -> str:
        """A number as a partial result."""
        lanes, self.lanes = self.lanes, 1
        text = self._rank(self.literal(self._kind, number)).text
        self.lanes = lanes
        return text

    def combined(self, first: str, count: str, known: int | None, start: str) -> Value:
        """``start`` combined with ``known`` numbers from an address on, or with ``count``."""
        way, kind = self._way, self._kind
        self.lanes = way.lanes
        along = [self._rank(self.literal(kind, way.identity))] * way.group
        done = "0"
        for each in sorted({way.group, 1}, reverse=True):
            size = way.lanes * each
            end = self._end(count, known, size)
            along[:each] = self._loop(first, done, end, size, along[:each])
            done = end
        half = way.group // 2
        while half:
            along = [self.joined(a, b) for a, b in zip(along[:half], along[half:], strict=True)]
            half //= 2
        folded = self._folded(along[0])
        end, value = self._end(count, known, 1), Value(self, kind, folded)
        if done == end and start == self.literal_of(way.identity):
            return value
        (total,) = self._loop(first, done, end, 1, [Value(self, kind, start)])
        return self.joined(total, value)

    def _end(self, count: str, known: int | None, size: int) -> str:
        """The end of the whole pieces of ``size`` numbers."""
        if known is not None:
            return str(known // size * size * self._item)
        whole = count if size == 1 else self._made(f"and i64 {count}, {-size}")
        return self._made(f"mul nsw i64 {whole}, {self._item}")

    def _loop(
        self, first: str, begin: str, end: str, step: int, into: Sequence[Value]
    ) -> list[Value]:
        """Combine the numbers from ``begin`` to ``end``, ``step`` at a time, into vectors of
        accumulators.
        """
        known = begin[0] != "%" and end[0] != "%"
        if known and int(begin) == int(end):
            return list(into)
        if known and int(begin) + step * self._item == int(end):
            return self._step(self.address(first, begin), into)
        at, following, top, body, done, more = self.fresh(
            "%i", "%next", "loop", "body", "done", "%more"
        )
        held = [Value(self, self._kind, name) for name in self.fresh(*["%acc"] * len(into))]
        before = self.block
        self.jump(top)
        self.start(top)
        places = self.reserve(1 + len(into))
        if not known:
            self.act(f"{more} = icmp slt i64 {at}, {end}")
            self.act(f"br i1 {more}, label %{body}, label %{done}")
            self.start(body)
        # Opaque, so that LLVM does not search for better addresses.
        offset = self._made(f'call i64 asm "", "=r,0"(i64 {at})')
        made = self._step(self.address(first, offset), held)
        self.act(f"{following} = add nuw nsw i64 {at}, {step * self._item}")
        if known:
            self.act(f"{more} = icmp slt i64 {following}, {end}")
            self.act(f"br i1 {more}, label %{top}, label %{done}")
        else:
            self.jump(top)
        last = self.block
        self.fill(places[0], at, f"phi i64 [ {begin}, %{before} ], [ {following}, %{last} ]")
        for where, name, given, value in zip(places[1:], held, into, made, strict=True):
            incoming = f"[ {given.text}, %{before} ], [ {value.text}, %{last} ]"
            self.fill(where, name.text, f"phi {self.type(self._kind)} {incoming}")
        self.start(done)
        return made if known else held

    def _step(self, first: str, into: Sequence[Value]) -> list[Value]:
        """Combine adjacent vectors in memory into as many accumulators."""
        made = []
        for number, value in enumerate(into):
            place = self.address(first, str(number * self.lanes * self._item))
            made.append(self.joined(value, self._rank(self.get(self._kind, place))))
        return made

    def _folded(self, vector: Value) -> str:
        """Combine the numbers of a vector, by halves."""
        while self.lanes > 1:
            low, high = self.halves(vector)
            vector = self.joined(low, high)
        return vector.text
