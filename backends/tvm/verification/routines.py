"""The effects of routine calls on memory, by their contracts, and the buffers statements store to.

touched(node, reads)        # the elements that a call reads and writes, or None
StoredTo(memories, of_call).within(statement)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from tvm import tirx
from tvm.ir import Call

from tracejit.backends.abi import EVALUATE, SORT_VALUES
from tracejit.backends.tvm.ir.contracts import Number, Pointer, Region, contract_of
from tracejit.backends.tvm.ir.tir import (
    AllocBuffer,
    Buffer,
    BufferStore,
    Evaluate,
    Expr,
    For,
    IfThenElse,
    SeqStmt,
    Stmt,
    While,
    i64,
)

ROUTINES = ("tirx.call_extern", "tirx.tvm_call_packed")


@dataclass(frozen=True)
class Elements:
    """Elements of one memory: a sum of terms, each with a factor, and multiples of steps."""

    buffer: Buffer
    first: Sequence[tuple[Expr, int]]
    dimensions: Sequence[tuple[Expr, int]]


@dataclass(frozen=True)
class Touched:
    """The elements a call reads, writes, and may write; see `Contract`.

    The ``accesses`` are a statement, if there is one.
    """

    reads: Sequence[Elements]
    writes: Sequence[Elements]
    permutes: bool = False
    scratch: Sequence[Elements] = ()
    counts: Sequence[tuple[Elements, Expr]] = ()
    accesses: Stmt | None = None

    @property
    def stored(self) -> set[int]:
        """The buffers that it may store to."""
        made = {hash(each.buffer) for each in (*self.writes, *self.scratch)}
        if self.accesses is not None:
            made |= set(StoredTo((), lambda node: None).within(self.accesses))
        return made


def touched(node: Any, reads: Set[int]) -> Touched | None:
    """The effects of a routine call; None if the routine has no contract.

    The kernel never writes to the buffers whose hashes are in ``reads``.
    """
    name, given = str(node.args[0].value), [*node.args][1:]
    if name == EVALUATE:
        # After the text come the operands and the results.
        memories = [pointed(each)[0] for each in given[1:]]
        known = [m for m in memories if m is not None]
        operands = [_whole(m) for m in known if hash(m) in reads]
        return Touched(operands, [_whole(m) for m in known if hash(m) not in reads])
    if name == SORT_VALUES:
        source, target = (pointed(each)[0] for each in given[-2:])
        if source is None or target is None:
            return None
        return Touched([_whole(source)], [_whole(target)])
    contract = contract_of(name)
    if contract is None:
        return None
    values = dict(zip(contract.parameters, given, strict=True))
    if contract.accesses is not None:
        return Touched(
            (), (), accesses=contract.accesses({n: _given(v) for n, v in values.items()})
        )
    try:
        reads_, writes, scratch = (
            [_elements(region, values) for region in part]
            for part in (contract.reads, contract.writes, contract.scratch)
        )
        counts = [(_elements(r, values), values[most]) for r, most in contract.counts]
    except _UnknownPointerError:
        return None
    return Touched(reads_, writes, contract.permutes, scratch, counts)


class _UnknownPointerError(Exception):
    """A pointer that is not that of a buffer of one dimension."""


def _elements(region: Region, values: Mapping[str, Expr]) -> Elements:
    def expression(part: Number) -> Expr:
        return i64(part) if isinstance(part, int) else values[part]

    memory, place = pointed(values[region.pointer])
    if memory is None or len(memory.shape) != 1:
        raise _UnknownPointerError
    first = [(expression(term), factor) for term, factor in region.first]
    dimensions = [(expression(extent), step) for extent, step in region.dimensions]
    return Elements(memory, [*first, *((p, 1) for p in place)], dimensions)


def _given(argument: Any) -> Any:
    """A pointer of a call with its memory; other arguments as they are."""
    memory, place = pointed(argument)
    if memory is None:
        return argument
    first: Expr = i64(0)
    for index, extent in zip(place, memory.shape, strict=False):
        first = first * int(extent) + index.astype("int64")
    return Pointer(memory, first)


def pointed(pointer: Any) -> tuple[Buffer | None, Sequence[Expr]]:
    """The memory that a pointer points into, and where."""
    name = str(pointer.op.name) if isinstance(pointer, Call) else ""
    if name == "tirx.buffer_data":
        return pointer.args[0], ()
    if name == "tirx.address_of":
        return pointer.args[0].source, tuple(pointer.args[0].indices)
    return None, ()


def _whole(memory: Buffer) -> Elements:
    size = 1
    for extent in memory.shape:
        size *= int(extent)
    return Elements(memory, (), ((i64(size), 1),))


class StoredTo:
    """The buffers that a statement may store to, with the number of its stores to each.

    A call of a routine without a contract may store to all of the ``memories``.
    """

    def __init__(self, memories: Collection[int], of_call: Callable[[Any], Touched | None]) -> None:
        self._memories = memories
        self._of_call = of_call
        self._known: dict[int, Mapping[int, int]] = {}

    def within(self, statement: Stmt) -> Mapping[int, int]:
        key = hash(statement)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._counted(statement)
        return found

    def _counted(self, statement: Any) -> Mapping[int, int]:
        made: Counter[int] = Counter()
        kind = type(statement)
        if kind in (BufferStore, AllocBuffer):
            made[hash(statement.buffer)] = 1
        elif kind is SeqStmt:
            for each in statement:
                made.update(self.within(each))
        elif kind in (For, While, tirx.AttrStmt):
            made.update(self.within(statement.body))
        elif kind is IfThenElse:
            for case in (statement.then_case, statement.else_case):
                if case is not None:
                    made.update(self.within(case))
        elif kind is Evaluate and not isinstance(statement.value, tirx.IntImm):
            made.update(self._of_evaluated(statement.value))
        return made

    def _of_evaluated(self, value: Any) -> Mapping[int, int]:
        known = None
        if isinstance(value, Call) and str(getattr(value.op, "name", "")) in ROUTINES:
            known = self._of_call(value)
        if known is None:
            return dict.fromkeys(self._memories, 2)
        return dict.fromkeys(known.stored, 2)
