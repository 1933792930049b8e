"""Memory access patterns of accessors: the stride of each index, and whether values are plain
loads.

An accessor is a function from index expressions to a value, or for results to a statement. Calling
it once with fresh variables shows the memory that it reads or writes.
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
class AccessPattern:
    """How an accessor reaches memory.

    ``strides`` has a tuple per read (or write), with the distance in elements for a step of each
    index; None where it is not affine. ``plain``: a value is a single load, so reading it again
    costs no more than reading a copy; or it is stored as it is, once.
    """

    strides: tuple[tuple[int, ...] | None, ...]
    plain: bool

    def walks(self, index: int) -> bool:
        """Whether ``index`` is contiguous: one step moves every access by one element, or not at
        all.

        At least one access must move.
        """
        steps = [None if s is None else abs(s[index]) for s in self.strides]
        return 1 in steps and all(step in (0, 1) for step in steps)

    def step(self, index: int) -> int:
        """The longest known distance that a step of ``index`` moves any access."""
        return max((abs(s[index]) for s in self.strides if s is not None), default=0)

    def scaled(self, *factors: int) -> AccessPattern:
        """The access of an accessor whose indices are multiplied by these factors."""
        strides = tuple(
            s and tuple(step * factor for step, factor in zip(s, factors, strict=True))
            for s in self.strides
        )
        return AccessPattern(strides, self.plain)

    def permuted(self, *order: int) -> AccessPattern:
        """The access of an accessor whose indices come in another order."""
        strides = tuple(s and tuple(s[i] for i in order) for s in self.strides)
        return AccessPattern(strides, self.plain)


def reading(load: Callable[..., Value], rank: int, index_dtype: str) -> tuple[AccessPattern, Value]:
    """The access of ``load``, a function of ``rank`` indices, and a sample of its value."""
    indices = [var("probe", index_dtype) for _ in range(rank)]
    value = load(*indices)
    parts = value if isinstance(value, tuple) else (value,)
    strides = tuple(s for part in parts for s in _strides(part, TensorLoad, indices))
    plain = all(isinstance(part, TensorLoad) for part in parts) and None not in strides
    return AccessPattern(_of_pairs(strides, len(parts)), plain), value


def writing(store: Callable[..., Any], rank: int, value: Value, index_dtype: str) -> AccessPattern:
    """The access of ``store``, which takes ``rank`` indices and a value such as ``value``."""
    indices = [var("probe", index_dtype) for _ in range(rank)]
    statement = store(*indices, value)
    parts = len(value) if isinstance(value, tuple) else 1
    plain = isinstance(statement, tirx.BufferStore) and statement.value.same_as(value)
    return AccessPattern(_of_pairs(_strides(statement, tirx.BufferStore, indices), parts), plain)


def _of_pairs(
    strides: tuple[tuple[int, ...] | None, ...], parts: int
) -> tuple[tuple[int, ...] | None, ...]:
    """Strides in complex numbers: real and imaginary parts mostly alternate in memory."""
    even = all(s is not None and all(step % parts == 0 for step in s) for s in strides)
    if parts == 1 or not even:
        return strides
    return tuple(s and tuple(step // parts for step in s) for s in strides)


def _strides(node: Any, kind: type, indices: list[Expr]) -> tuple[tuple[int, ...] | None, ...]:
    found: list[Any] = []
    tvm_ffi.structural_walk(node, (kind, found.append))
    return tuple(_stride(access, indices) for access in found)


def linear(access: Any, indices: list[Expr]) -> tuple[Buffer, tuple[int, ...], int | None] | None:
    """The buffer, strides and base offset of a load or store.

    The offset is None if it is not constant. None for other nodes and for indices that are not
    affine.
    """
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
