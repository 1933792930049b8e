"""What a kernel can learn from an accessor: which of its indices walk memory, and how far.

An accessor is a function from index expressions to a value, or for results to a statement.
Calling it once with fresh variables shows the memory that it reads or writes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tvm_ffi
from tvm import sym
from tvm.ir import TensorLoad

from tracejit.backends.tvm.cpu.kernels.arithmetic import Value
from tracejit.backends.tvm.ir.tir import Buffer, Expr, tirx, var


@dataclass(frozen=True)
class Access:
    """How an accessor reaches memory.

    ``strides`` has a tuple per read (or write), with the distance in elements that each index
    moves it; None stands for one that is not affine. ``plain``: a value is one read and nothing
    else, so reading it again costs no more than reading a copy.
    """

    strides: tuple[tuple[int, ...] | None, ...]
    plain: bool

    def walks(self, index: int) -> bool:
        """Whether neighbours along ``index`` are neighbours in memory (or the same element).

        True when every access agrees, and at least one really moves.
        """
        steps = [None if s is None else abs(s[index]) for s in self.strides]
        return 1 in steps and all(step in (0, 1) for step in steps)

    def step(self, index: int) -> int:
        """The longest distance that ``index`` moves any access, as far as it is known."""
        return max((abs(s[index]) for s in self.strides if s is not None), default=0)

    def scaled(self, *factors: int) -> Access:
        """The access of an accessor whose indices move in steps of these sizes."""
        strides = tuple(
            s and tuple(step * factor for step, factor in zip(s, factors, strict=True))
            for s in self.strides
        )
        return Access(strides, self.plain)

    def permuted(self, *order: int) -> Access:
        """The access of an accessor whose indices come in another order."""
        strides = tuple(s and tuple(s[i] for i in order) for s in self.strides)
        return Access(strides, self.plain)


def reading(load: Callable[..., Value], rank: int, index_dtype: str) -> tuple[Access, Value]:
    """How ``load``, of ``rank`` indices, reads; and a sample of its value."""
    indices = [var("probe", index_dtype) for _ in range(rank)]
    value = load(*indices)
    parts = value if isinstance(value, tuple) else (value,)
    strides = tuple(s for part in parts for s in _strides(part, TensorLoad, indices))
    plain = all(isinstance(part, TensorLoad) for part in parts) and None not in strides
    return Access(_of_pairs(strides, len(parts)), plain), value


def writing(store: Callable[..., Any], rank: int, value: Value, index_dtype: str) -> Access:
    """How ``store``, of ``rank`` indices and a value such as ``value``, writes."""
    indices = [var("probe", index_dtype) for _ in range(rank)]
    statement = store(*indices, value)
    parts = len(value) if isinstance(value, tuple) else 1
    return Access(_of_pairs(_strides(statement, tirx.BufferStore, indices), parts), plain=False)


def _of_pairs(
    strides: tuple[tuple[int, ...] | None, ...], parts: int
) -> tuple[tuple[int, ...] | None, ...]:
    """Strides in numbers: the two parts of complex numbers mostly lie side by side."""
    even = all(s is not None and all(step % parts == 0 for step in s) for s in strides)
    if parts == 1 or not even:
        return strides
    return tuple(s and tuple(step // parts for step in s) for s in strides)


def _strides(node: Any, kind: type, indices: list[Expr]) -> tuple[tuple[int, ...] | None, ...]:
    found: list[Any] = []
    tvm_ffi.structural_walk(node, (kind, found.append))
    return tuple(_stride(access, indices) for access in found)


def linear(access: Any, indices: list[Expr]) -> tuple[Buffer, tuple[int, ...], int | None] | None:
    """Of a read or a write of memory: which, the distance that each index moves it, and the place
    of index 0, if that is known; None for anything else, or where that is not affine."""
    if not isinstance(access, (TensorLoad, tirx.BufferStore)):
        return None
    buffer = access.source if isinstance(access, TensorLoad) else access.buffer
    address: Expr = 0
    step = 1
    for size, index in zip(reversed(buffer.shape), reversed(access.indices), strict=True):
        address = address + index * step
        step = step * int(size)
    simple = sym.Analyzer().simplify(address)
    terms = sym.detect_linear_equation(simple, indices)
    if not terms or not all(isinstance(t, tirx.IntImm) for t in terms[:-1]):
        return None
    *distances, first = terms
    begin = int(first) if isinstance(first, tirx.IntImm) else None
    return buffer, tuple(int(t) for t in distances), begin


def _stride(access: Any, indices: list[Expr]) -> tuple[int, ...] | None:
    found = linear(access, indices)
    return None if found is None else found[1]
