"""Contracts of routines written in LLVM IR: the elements they read and write, for the verifier.

    declare("twice", Contract(("x", "count"), [span("x", 0, "count")], [span("x", 0, "count")]))
    contract_of("twice").reads

A routine with a loop nest of its own has its accesses as TIR:

    def accesses(given):                # pointers and integers by the names of the parameters
        return loop(given["count"], lambda i: [given["x"].load(i), given["x"].store(i)])

The verifier trusts a contract. It proves that the buffers of a call have every element that the
contract names, and counts these elements as read and written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tracejit.backends.tvm.ir.tir import (
    Buffer,
    BufferStore,
    Evaluate,
    Expr,
    IfThenElse,
    Stmt,
    const,
    i64,
    loop,
    tirx,
    var,
)

Number = int | str
"""A number, or the name of a parameter whose value it is."""


@dataclass(frozen=True)
class Region:
    """Elements of the memory at a pointer: ``first`` and multiples of ``dimensions``' steps.

    ``pointer`` is the name of a parameter. ``first`` is the sum of its numbers, each with a factor;
    each dimension has an extent and a step.
    """

    pointer: str
    first: Sequence[tuple[Number, int]] = ()
    dimensions: Sequence[tuple[Number, int]] = ()


@dataclass(frozen=True)
class Pointer:
    """A pointer that a call passes: the address of element ``first`` of ``memory``."""

    memory: Buffer
    first: Expr

    def load(self, index: Expr) -> Stmt:
        """A statement that reads the element ``index`` elements after the pointer."""
        return Evaluate(self.value(index))

    def value(self, index: Expr) -> Expr:
        return tirx.BufferLoad(self.memory, self._indices(index))

    def store(self, index: Expr) -> Stmt:
        zero = const(0, str(self.memory.dtype))
        return BufferStore(self.memory, zero, self._indices(index))

    def use(self, first: Expr, count: int | Expr) -> Stmt:
        """A statement that may write any of ``count`` elements, and reads what it wrote."""
        stores = for_each(lambda i: self.store(first + i), count)
        return IfThenElse(var("any", "bool"), stores, None)

    def load_all(self) -> Stmt:
        """A statement that reads the whole memory."""
        size = 1
        for extent in self.memory.shape:
            size *= int(extent)
        return for_each(lambda i: self.load(i - self.first), size)

    def _indices(self, index: Expr) -> list[Expr]:
        # An offset may leave the last dimension.
        return [*(i64(0) for _ in self.memory.shape[1:]), self.first + index]


def for_each(body: Callable[..., Stmt], *extents: int | Expr) -> Stmt:
    """``body(i, j, …)`` for i below the first extent, j below the second, and so on; i64."""
    if not extents:
        return body()
    inner = extents[1:]
    return loop(extents[0], lambda i: for_each(lambda *k: body(i, *k), *inner), dtype="int64")


Accesses = Callable[[Mapping[str, Any]], Stmt]
"""From a call's arguments by the names of the parameters, each `Pointer` or an i64 expression, to
a statement with the accesses of the call.
"""


FILLS = "tracejit.fills"


def filling(statement: Stmt, memory: Buffer, first: Expr, count: int) -> Stmt:
    """A statement after which ``count`` elements of ``memory`` count as written.

    For schedules whose reads follow their writes by an argument about their data; the verifier
    trusts it.
    """
    return tirx.AttrStmt([memory, first, i64(count)], FILLS, 0, statement)


@dataclass(frozen=True)
class Contract:
    """A routine reads all of ``reads``, then writes all of ``writes``, and nothing else.

    If it ``permutes`` words, the lower half of every word it writes is the lower half of a word it
    read. It may write some elements of ``scratch``. ``counts`` pairs regions of one element with
    parameters: the element is between 0 and the parameter afterwards. ``accesses``, if given, are
    the reads and writes instead of these regions.
    """

    parameters: Sequence[str]
    reads: Sequence[Region]
    writes: Sequence[Region]
    permutes: bool = False
    scratch: Sequence[Region] = ()
    counts: Sequence[tuple[Region, str]] = ()
    accesses: Accesses | None = field(default=None, compare=False)


_declared: dict[str, Contract] = {}


def declare(routine: str, contract: Contract) -> None:
    """Register the contract of a routine; another contract for the same name is an error."""
    known = _declared.setdefault(routine, contract)
    assert known == contract, f"{routine} has two contracts"


def contract_of(routine: str) -> Contract | None:
    return _declared.get(routine)


def span(pointer: str, first: Number, count: Number) -> Region:
    """``count`` neighbours from number ``first`` on."""
    return Region(pointer, ((first, 1),), ((count, 1),))


def whole(pointer: str, count: int) -> Region:
    """The first ``count`` elements."""
    return span(pointer, 0, count)
