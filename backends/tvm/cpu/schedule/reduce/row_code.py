"""Maxima and minima of contiguous numbers as LLVM text.

    way = RowReduction(MAX, FLOAT32, -inf, lanes=32, group=4, apart=True)
    code = row_code(way, 1024)
    value = code.called(address, count, start)      # an expression; `code.text` comes with it

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
from tracejit.backends.tvm.cpu.schedule.reduce.float_extremes import FloatExtremes
from tracejit.backends.tvm.ir.contracts import Contract, declare, span
from tracejit.backends.tvm.ir.tir import Expr, tirx
from tracejit.graph import Op
from tracejit.ops.elementwise import MAX, MIN

_BETTER: dict[Op, Callable[[Value, Value], Value]] = {
    MAX: lambda a, b: select(a > b, a, b),
    MIN: lambda a, b: select(a < b, a, b),
}
# Combines loaded vectors with as many accumulators, and with what was seen of all.
CombineVectors = Callable[
    [Sequence[Value], Sequence[Value], Sequence[Value]], tuple[list[Value], list[Value]]
]
_RANKS = {MAX: (rank_for_maximum, maximum_of_rank), MIN: (rank_for_minimum, minimum_of_rank)}


@dataclass(frozen=True)
class RowReduction:
    """MAX or MIN of numbers of one ``kind``, from ``identity`` on.

    Floats are compared by their ranks, or in vectors by `FloatExtremes` if NaN is ``apart``.
    Partial results of `row_code` are ranks if they are ``ranked``.
    """

    op: Op
    kind: Kind
    identity: float
    lanes: int
    group: int
    ranked: bool = False
    apart: bool = False

    def __str__(self) -> str:
        how = "_ranks" * self.ranked + "_apart" * self.apart
        return f"{self.op.function}_{self.kind.name}x{self.lanes}x{self.group}{how}"


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
    code = RowProcedure(name, [], [], way)
    kind = way.kind.llvm
    if way.ranked:
        result = code.combined("%first", "%count", count, "%start")
    else:
        result = code.number_of(code.combined("%first", "%count", count, code.rank_of("%start")))
    declare(name, Contract(("first", "count", "start"), [span("first", 0, "count")], []))
    head = f"define {kind} @{name}(ptr %first, i64 %count, {kind} %start) {{"
    return RowCode(name, module_text([code.defined(head, result)]), way.kind)


class RowProcedure(Procedure):
    """The function under construction; offsets count bytes."""

    def __init__(
        self, name: str, pointers: Sequence[str], integers: Sequence[str], way: RowReduction
    ) -> None:
        super().__init__(name, pointers, integers, way.lanes)
        self._way = way
        self._kind = way.kind
        self.joined = _BETTER[way.op]
        self._rank: Callable[[Value], Value] = lambda x: x
        self.number_of: Callable[[Value], Value] = lambda x: x
        if way.kind.is_float:
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
        return self.rank_of(literal(self._kind, number))

    def rank_of(self, number: str) -> str:
        """A number in a register as a partial result."""
        lanes, self.lanes = self.lanes, 1
        text = self._rank(Value(self, self._kind, number)).text
        self.lanes = lanes
        return text

    def combined(self, first: str, count: str, known: int | None, start: str) -> Value:
        """``start`` combined with ``known`` numbers from an address on, or with ``count``."""
        way, kind = self._way, self._kind
        self.lanes = way.lanes
        identity = self.literal(kind, way.identity)
        extremes = FloatExtremes(kind, way.op is MIN) if way.apart else None
        seen = extremes.seen(identity, way.group) if extremes else []
        along = [identity if extremes else self._rank(identity)] * way.group
        step = extremes.step if extremes else self._step
        done = "0"
        for each in sorted({way.group, 1}, reverse=True):
            size = way.lanes * each
            end = self._end(count, known, size)
            along[:each], seen = self._loop(first, done, end, size, along[:each], seen, step)
            done = end
        join = extremes.better if extremes else self.joined
        half = way.group // 2
        while half:
            along = [join(a, b) for a, b in zip(along[:half], along[half:], strict=True)]
            half //= 2
        last = self._rank(extremes.value(along[0], seen)) if extremes else along[0]
        end, value = self._end(count, known, 1), Value(self, kind, self._folded(last))
        if done == end and start == self.literal_of(way.identity):
            return value
        initial = [Value(self, kind, start)]
        (total,), _ = self._loop(first, done, end, 1, initial, [], self._step)
        return self.joined(total, value)

    def _end(self, count: str, known: int | None, size: int) -> str:
        """The end of the whole pieces of ``size`` numbers."""
        if known is not None:
            return str(known // size * size * self._item)
        whole = count if size == 1 else self._made(f"and i64 {count}, {-size}")
        return self._made(f"mul nsw i64 {whole}, {self._item}")

    def _loop(
        self,
        first: str,
        begin: str,
        end: str,
        size: int,
        into: Sequence[Value],
        seen: Sequence[Value],
        step: CombineVectors,
    ) -> tuple[list[Value], list[Value]]:
        """Combine the numbers from ``begin`` to ``end``, ``size`` at a time, by ``step``."""
        known = begin[0] != "%" and end[0] != "%"
        if known and int(begin) == int(end):
            return list(into), list(seen)
        if known and int(begin) + size * self._item == int(end):
            return step(self._vectors(self.address(first, begin), len(into)), into, seen)
        before_loop = [*into, *seen]
        at, following, top, body, done, more = self.fresh(
            "%i", "%next", "loop", "body", "done", "%more"
        )
        names = self.fresh(*["%acc"] * len(before_loop))
        held = [Value(self, v.kind, name) for v, name in zip(before_loop, names, strict=True)]
        before = self.block
        self.jump(top)
        self.start(top)
        places = self.reserve(1 + len(held))
        if not known:
            self.act(f"{more} = icmp slt i64 {at}, {end}")
            self.act(f"br i1 {more}, label %{body}, label %{done}")
            self.start(body)
        # Opaque, so that LLVM does not search for better addresses.
        offset = self._made(f'call i64 asm "", "=r,0"(i64 {at})')
        vectors = self._vectors(self.address(first, offset), len(into))
        made = [
            each for some in step(vectors, held[: len(into)], held[len(into) :]) for each in some
        ]
        self.act(f"{following} = add nuw nsw i64 {at}, {size * self._item}")
        if known:
            self.act(f"{more} = icmp slt i64 {following}, {end}")
            self.act(f"br i1 {more}, label %{top}, label %{done}")
        else:
            self.jump(top)
        last = self.block
        self.fill(places[0], at, f"phi i64 [ {begin}, %{before} ], [ {following}, %{last} ]")
        for where, name, given, value in zip(places[1:], held, before_loop, made, strict=True):
            incoming = f"[ {given.text}, %{before} ], [ {value.text}, %{last} ]"
            self.fill(where, name.text, f"phi {self.type(name.kind)} {incoming}")
        self.start(done)
        results = made if known else held
        return results[: len(into)], results[len(into) :]

    def _vectors(self, first: str, count: int) -> list[Value]:
        """Load adjacent vectors."""
        places = [str(number * self.lanes * self._item) for number in range(count)]
        return [self.get(self._kind, self.address(first, place)) for place in places]

    def _step(
        self, loaded: Sequence[Value], into: Sequence[Value], seen: Sequence[Value]
    ) -> tuple[list[Value], list[Value]]:
        """Combine vectors with as many accumulators."""
        pairs = zip(into, loaded, strict=True)
        return [self.joined(value, self._rank(each)) for value, each in pairs], list(seen)

    def _folded(self, vector: Value) -> str:
        """Combine the numbers of a vector, by halves."""
        while self.lanes > 1:
            low, high = self.halves(vector)
            vector = self.joined(low, high)
        return vector.text
