"""Scalar replacement of short buffers: their contents as SSA values while a kernel is translated.

    found = in_registers(body)                  # buffers whose indices are all known statically
    registers = Registers(function)
    registers.write(memory, 0, total)           # a vector, to the elements from an index on
    half = registers.read(memory, 8, 8)

A vector may be read in other slices than it was written in; shuffles put the lanes together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm.ir import Call, Op, TensorLoad
from tvm_ffi import structural_equal, structural_walk

from tracejit.backends.tvm.cpu.llvm.builder import Function, Value
from tracejit.backends.tvm.ir.tir import (
    PARALLEL,
    SERIAL,
    VECTORIZED,
    AllocBuffer,
    Buffer,
    BufferStore,
    Expr,
    For,
    Stmt,
    tirx,
)

_MOST = 128
"""The most elements of a buffer in registers; LLVM would spill more of them to memory."""
_STRAIGHT = 4
"""The most statements, and calls of functions, of a short body."""
_DATA, _ADDRESS = (Op.get(f"tirx.{name}") for name in ("buffer_data", "address_of"))


@dataclass(frozen=True)
class VectorSlice:
    """``count`` lanes of a vector of ``width`` lanes, from lane ``first`` on."""

    value: Value
    width: int
    first: int
    count: int

    @property
    def is_whole(self) -> bool:
        return self.count == self.width

    def within(self, begin: int, end: int) -> VectorSlice:
        """The lanes of this slice that are in range(begin, end)."""
        return VectorSlice(self.value, self.width, self.first + begin, end - begin)


State = dict[int, dict[int, VectorSlice]]
"""The contents of buffers: their hash, the index where each slice begins, and the slice."""


class UntranslatableError(Exception):
    """The TIR construct has no translation here; TVM compiles the kernel."""


def in_registers(body: Stmt) -> set[int]:
    """The hashes of buffers that a body allocates and indexes only by constants and unrolled
    loops.
    """
    found: set[int] = set()
    known: set[int] = set()
    accesses: list[tuple[int, Expr]] = []
    elsewhere: set[int] = set()

    def loop(node: Any) -> None:
        kind = int(node.kind)
        if kind == int(PARALLEL):
            elsewhere.update(_foreign(node.body))
        elif kind != int(SERIAL) or isinstance(node.extent, tirx.IntImm):
            # Short loops: the translation decides whether to unroll them.
            if kind != int(SERIAL) or int(node.extent) == 1:
                known.add(hash(node.loop_var))

    def allocation(node: Any) -> None:
        size = math.prod(int(extent) for extent in node.buffer.shape)
        if size <= _MOST or node.buffer.scope() == "local":
            found.add(hash(node.buffer))

    def call(node: Any) -> None:
        if _DATA.same_as(node.op):
            elsewhere.add(hash(node.args[0]))
        elif _ADDRESS.same_as(node.op):
            elsewhere.add(hash(node.args[0].source))

    structural_walk(
        body,
        [
            (For, loop),
            (AllocBuffer, allocation),
            (BufferStore, lambda node: accesses.append((hash(node.buffer), node.indices))),
            (TensorLoad, lambda node: accesses.append((hash(node.source), node.indices))),
            (Call, call),
        ],
    )
    found -= elsewhere
    for memory, indices in accesses:
        if memory in found and not all(_is_known(index, known) for index in indices):
            found.discard(memory)
    return found


def _is_known(index: Expr, variables: set[int]) -> bool:
    """Whether an index is a sum or a product of these variables and constants."""
    kind = type(index)
    if kind in (tirx.Add, tirx.Sub, tirx.Mul):
        return _is_known(index.a, variables) and _is_known(index.b, variables)
    return kind is tirx.IntImm or (kind is tirx.Var and hash(index) in variables)


def is_added_to(store: Any) -> bool:
    """Whether a store reads the element that it writes, as an accumulation does."""
    found: list[bool] = []

    def load(node: Any) -> None:
        is_same = hash(node.source) == hash(store.buffer)
        found.append(is_same and structural_equal(node.indices, store.indices))

    structural_walk(store.value, [(TensorLoad, load)])
    return any(found)


def stored_in(body: Stmt) -> list[Buffer]:
    """The buffers that a body stores to, each once."""
    found: dict[Any, None] = {}
    structural_walk(body, [(BufferStore, lambda node: found.setdefault(node.buffer))])
    return [*found]


def is_straight(body: Stmt) -> bool:
    """Whether a body is a few statements that contain no loop once short ones are unrolled."""
    loops: list[bool] = []
    stores: list[Any] = []
    structural_walk(
        body,
        [
            (For, lambda node: loops.append(int(node.kind) != int(VECTORIZED))),
            (BufferStore, stores.append),
            (Call, stores.append),
        ],
    )
    return not any(loops) and len(stores) <= _STRAIGHT


def is_arithmetic(body: Stmt) -> bool:
    """Whether a short body has only operations that are single instructions."""
    calls: list[Any] = []
    structural_walk(body, [(Call, calls.append)])
    return not calls and is_straight(body)


def _foreign(body: Stmt) -> set[int]:
    """The hashes of variables and buffers that a body uses and does not define."""
    own: set[int] = set()
    used: set[int] = set()
    structural_walk(
        body,
        [
            (AllocBuffer, lambda node: own.add(hash(node.buffer))),
            (BufferStore, lambda node: used.add(hash(node.buffer))),
            (TensorLoad, lambda node: used.add(hash(node.source))),
        ],
    )
    return used - own


class RegisterContents:
    """The contents of register buffers at the current point of ``function``."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self.state: State = {}

    def parts(self, memory: Buffer) -> list[tuple[int, int]]:
        """The first index and the length of each slice that a buffer holds."""
        return [(start, part.count) for start, part in self.state.get(hash(memory), {}).items()]

    def forget(self, memory: Buffer) -> None:
        """Forget the contents of a buffer."""
        self.state.pop(hash(memory), None)

    def write(self, memory: Buffer, start: int, count: int, value: Value) -> None:
        """Write a vector, or a scalar, to a buffer."""
        made: dict[int, VectorSlice] = {}
        for begin, part in self.state.get(hash(memory), {}).items():
            end = begin + part.count
            if begin < start:
                made[begin] = part.within(0, min(end, start) - begin)
            if end > start + count:
                first = max(begin, start + count)
                made[first] = part.within(first - begin, part.count)
        made[start] = VectorSlice(value, count, 0, count)
        self.state = {**self.state, hash(memory): made}

    def read(self, memory: Buffer, start: int, count: int) -> Value:
        """Read ``count`` elements from index ``start`` on. Raises `UntranslatableError` if any was
        not written.
        """
        found = []
        for begin, part in sorted(
            self.state.get(hash(memory), {}).items(), key=lambda item: item[0]
        ):
            first, last = max(begin, start), min(begin + part.count, start + count)
            if first < last:
                found.append(part.within(first - begin, last - begin))
        if sum(part.count for part in found) != count:
            raise UntranslatableError
        return self._value(found[0]) if len(found) == 1 else self._together(found, count)

    def _value(self, part: VectorSlice) -> Value:
        if part.is_whole:
            return part.value
        function, kind = self._function, part.value.kind
        function.lanes = part.width
        if part.count == 1:
            return function.emit(kind, f"extractelement {part.value.typed}, i64 {part.first}")
        mask = ", ".join(f"i32 {part.first + lane}" for lane in range(part.count))
        nothing = f"{function.type(kind)} poison"
        lanes = f"<{part.count} x i32> <{mask}>"
        return function.emit(kind, f"shufflevector {part.value.typed}, {nothing}, {lanes}")

    def _together(self, parts: Sequence[VectorSlice], count: int) -> Value:
        """Concatenate adjacent slices to one vector."""
        function = self._function
        values = [(self._value(part), part.count) for part in parts]
        kind = values[0][0].kind
        if all(width == 1 for _, width in values):
            function.lanes = count
            whole = Value(function, kind, "poison")
            for lane, (value, _) in enumerate(values):
                number = f"{kind.llvm} {value.text}"
                whole = function.emit(kind, f"insertelement {whole.typed}, {number}, i64 {lane}")
            return whole
        while len(values) > 1:
            pairs = zip(values[::2], values[1::2], strict=False)
            values = [self._joined(*a, *b) for a, b in pairs] + values[len(values) // 2 * 2 :]
        return values[0][0]

    def _joined(self, a: Value, width: int, b: Value, other: int) -> tuple[Value, int]:
        """Two vectors, one after the other, and their number of lanes."""
        most = max(width, other, 2)
        a, b = self._widened(a, width, most), self._widened(b, other, most)
        self._function.lanes = most
        mask = ", ".join(f"i32 {n}" for n in (*range(width), *range(most, most + other)))
        lanes = f"<{width + other} x i32> <{mask}>"
        made = self._function.emit(a.kind, f"shufflevector {a.typed}, {b.typed}, {lanes}")
        return made, width + other

    def _widened(self, value: Value, width: int, most: int) -> Value:
        """A vector with more lanes, of any contents."""
        if width == most:
            return value
        function, kind = self._function, value.kind
        function.lanes = most
        nothing = f"{function.type(kind)} poison"
        if width == 1:
            return function.emit(kind, f"insertelement {nothing}, {kind.llvm} {value.text}, i64 0")
        function.lanes = width
        mask = ", ".join(f"i32 {n}" if n < width else "i32 poison" for n in range(most))
        source = f"{value.typed}, {function.type(kind)} poison"
        return function.emit(kind, f"shufflevector {source}, <{most} x i32> <{mask}>")
