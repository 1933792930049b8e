"""LLVM's text of one row reduced: neighbours in memory become one number.

    code = row_code(ADD, FLOAT32, lanes=32, group=4, count=1024)
    value = code.called(address, count, start)      # an expression; `code.text` comes with it

TVM sees one call, and LLVM's passes over the IR find nothing to do: numbers are values from the
beginning. They are combined as `sweep.Sweep.row` combines them: ``group`` vectors side by side, the
vectors and numbers that are left over, then halves of vectors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tracejit.backends.tvm.mathematics.kinds import Kind
from tracejit.backends.tvm.mathematics.llvm import Function, Value, module_text
from tracejit.backends.tvm.mathematics.ranks import (
    higher_rank,
    rank_for_maximum,
    rank_for_minimum,
)
from tracejit.backends.tvm.mathematics.vocabulary import select
from tracejit.backends.tvm.tir import Expr, tirx
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
_RANKS = {MAX: rank_for_maximum, MIN: rank_for_minimum}


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
def row_code(
    op: Op, kind: Kind, identity: float, lanes: int, group: int, count: int | None
) -> RowCode:
    """The code for ``op``, of rows of ``count`` numbers, or of as many as it is told.

    Floats are compared by their ranks, MAX and MIN: what goes in and what comes out are such.
    """
    size = "any" if count is None else str(count)
    name = f"tracejit_row_{op.function}_{kind.name}x{lanes}x{group}_of_{size}"
    text = _Row(name, op, kind, identity, lanes).whole(group, count)
    return RowCode(name, module_text([text]), kind)


class _Row(Function):
    """The function under construction; integers are texts of i64, offsets count bytes."""

    def __init__(self, name: str, op: Op, kind: Kind, identity: float, lanes: int) -> None:
        super().__init__(name, [], lanes)
        self._kind = kind
        self._combine = _COMBINE[op]
        self._rank: Callable[[Value], Value] = lambda x: x
        if kind.is_float and op in _RANKS:
            self._combine, self._rank = higher_rank, _RANKS[op]
        self._identity = identity
        self._item = kind.bits // 8

    def whole(self, group: int, count: int | None) -> str:
        lanes, kind = self.lanes, self._kind
        along = [self._rank(self.literal(kind, self._identity))] * group
        done = "0"
        for each in sorted({group, 1}, reverse=True):
            size = lanes * each
            end = self._end(count, size)
            along[:each] = self._loop(done, end, size, along[:each])
            done = end
        half = group // 2
        while half:
            along = [self._combine(a, b) for a, b in zip(along[:half], along[half:], strict=True)]
            half //= 2
        folded = self._folded(along[0])
        self.lanes = 1
        (total,) = self._loop(done, self._end(count, 1), 1, [Value(self, kind, "%start")])
        result = self._combine(total, Value(self, kind, folded))
        parameters = f"ptr %first, i64 %count, {kind.llvm} %start"
        return "\n".join(
            [
                f"define {kind.llvm} @{self.name}({parameters}) {{",
                "entry:",
                *self._lines,
                f"  ret {result.typed}",
                "}",
            ]
        )

    def _end(self, count: int | None, size: int) -> str:
        """Where whole pieces of ``size`` numbers end."""
        if count is not None:
            return str(count // size * size * self._item)
        whole = "%count" if size == 1 else self._made(f"and i64 %count, {-size}")
        return self._made(f"mul nsw i64 {whole}, {self._item}")

    def _made(self, instruction: str) -> str:
        (name,) = self.fresh("%n")
        self.act(f"{name} = {instruction}")
        return name

    def _loop(self, begin: str, end: str, step: int, into: Sequence[Value]) -> list[Value]:
        """Numbers from ``begin`` to ``end``, ``step`` at a time, combined into so many vectors."""
        known = begin[0] != "%" and end[0] != "%"
        if known and int(begin) == int(end):
            return list(into)
        at, following, top, body, done, more = self.fresh(
            "%i", "%next", "loop", "body", "done", "%more"
        )
        held = self.fresh(*["%acc"] * len(into))
        before = self.block
        self.jump(top)
        self.start(top)
        places = self.reserve(1 + len(into))
        if not known:
            self.act(f"{more} = icmp slt i64 {at}, {end}")
            self.act(f"br i1 {more}, label %{body}, label %{done}")
            self.start(body)
        # Opaque, so that LLVM searches for no better addresses.
        offset = self._made(f'call i64 asm "", "=r,0"(i64 {at})')
        made = []
        for number, name in enumerate(held):
            bytes_before = number * self.lanes * self._item
            base = self._made(f"getelementptr i8, ptr %first, i64 {offset}")
            place = self._made(f"getelementptr i8, ptr {base}, i64 {bytes_before}")
            vector = f"load {self.type(self._kind)}, ptr {place}, align {self._item}"
            value = self._rank(self.emit(self._kind, vector))
            made.append(self._combine(Value(self, self._kind, name), value))
        self.act(f"{following} = add nuw nsw i64 {at}, {step * self._item}")
        if known:
            self.act(f"{more} = icmp slt i64 {following}, {end}")
            self.act(f"br i1 {more}, label %{top}, label %{done}")
        else:
            self.jump(top)
        last = self.block
        self.fill(places[0], at, f"phi i64 [ {begin}, %{before} ], [ {following}, %{last} ]")
        for where, name, first, value in zip(places[1:], held, into, made, strict=True):
            incoming = f"[ {first.text}, %{before} ], [ {value.text}, %{last} ]"
            self.fill(where, name, f"phi {self.type(self._kind)} {incoming}")
        self.start(done)
        return made if known else [Value(self, self._kind, name) for name in held]

    def _folded(self, vector: Value) -> str:
        """The numbers of a vector combined, halves with halves."""
        while self.lanes > 1:
            width = self.lanes // 2
            halves = [self._part(vector, begin, width) for begin in (0, width)]
            self.lanes = width
            vector = self._combine(*(Value(self, self._kind, half) for half in halves))
        return vector.text

    def _part(self, vector: Value, begin: int, width: int) -> str:
        """``width`` numbers of a vector, from number ``begin`` on."""
        if width == 1:
            return self._made(f"extractelement {vector.typed}, i64 {begin}")
        mask = ", ".join(f"i32 {begin + lane}" for lane in range(width))
        nothing = f"{self.type(self._kind)} poison"
        return self._made(f"shufflevector {vector.typed}, {nothing}, <{width} x i32> <{mask}>")
