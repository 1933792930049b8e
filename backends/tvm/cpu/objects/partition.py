"""Divides kernels into modules: as few as keep every thread busy until the end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import tvm
from tvm.tirx import For
from tvm_ffi import structural_walk

from tracejit.backends.tvm.cpu.mathematics.operations import is_operation
from tracejit.backends.tvm.ir.tir import SERIAL, UNROLLED, BufferStore, Stmt

# Costs are in units of a store: the base costs of a module, of a kernel, of a loop, and of a
# function of vector mathematics, which is inlined.
_MODULE = 12
_KERNEL = 12
_LOOP = 2
_FUNCTION = 10

# The least cost of a module, relative to its base cost; and where that leaves a thread idle.
_LEAST = 6 * _MODULE
_LEAST_OF_FEW = 2 * _MODULE
# The exponent of a module's compile time in its cost.
_MOST_KERNELS = 8

Item = TypeVar("Item")


@dataclass(frozen=True)
class Chunk(Generic[Item]):
    """Kernels that are compiled together, and their approximate cost."""

    items: list[Item]
    cost: float


def cost_to_compile(body: Stmt) -> float:
    """The approximate cost of compiling a kernel's body."""
    return _KERNEL + _size(body)


def _size(body: Stmt) -> float:
    size = 0.0

    def store(node: Any) -> None:
        nonlocal size
        size += 1

    def call(node: Any) -> None:
        nonlocal size
        size += _FUNCTION if is_operation(node) else 0

    def loop(node: Any) -> None:
        nonlocal size
        if int(node.kind) == int(UNROLLED):
            size += (int(node.extent) - 1) * _size(node.body)
        elif int(node.kind) == int(SERIAL):
            size += _LOOP

    structural_walk(body, [(BufferStore, store), (tvm.ir.Call, call), (For, loop)])
    return size


def chunks(items: Iterable[tuple[Item, float]], threads: int) -> list[Chunk[Item]]:
    """Items in chunks of decreasing size, expensive items first.

    Then no thread waits long for another at the end.
    """
    rest = sorted(items, key=lambda item: -item[1])
    left = sum(cost for _, cost in rest)
    least = max(min(_LEAST, left / threads), _LEAST_OF_FEW)
    made: list[Chunk[Item]] = []
    while rest:
        wanted = max(left / (2 * threads), least)
        count, cost = 0, 0.0
        while count < min(len(rest), _MOST_KERNELS) and cost < wanted:
            cost += rest[count][1]
            count += 1
        made.append(Chunk([item for item, _ in rest[:count]], cost + _MODULE))
        rest, left = rest[count:], left - cost
    return made
