"""Finds kernels that read 32-bit indices back from an array that they have stored them in.

    left[0] = order[i]; out[i] = x[left[0]]      # after order[j] = ...: True

LLVM 22 compiles some of them wrongly for x86: its SLP vectoriser stores two indices at once, its
selection of instructions takes the 64 bits of the store for the first index that is loaded, and
scales both to one address. Without that vectoriser the stores stay apart; see `build._is_quick`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from typing import Any

from tvm import tirx
from tvm.ir import TensorLoad
from tvm_ffi import structural_walk

from tracejit.backends.tvm.ir.tir import BufferStore, Expr, For, Stmt

_WIDTH = ("int32", "uint32")


def indexes_by_stored(body: Stmt) -> bool:
    """Whether an index may be an element of an array of 32-bit integers that ``body`` writes.

    Indices are followed through arrays, registers and bound variables.
    """
    sources: dict[Hashable, list[Expr]] = defaultdict(list)
    indices: list[Expr] = []
    stored: set[Hashable] = set()

    def store(node: Any) -> None:
        name = hash(node.buffer)
        sources[name].append(node.value)
        indices.extend(node.indices)
        if str(node.buffer.dtype) in _WIDTH and not _is_register(node.buffer):
            stored.add(name)

    def load(node: Any) -> None:
        indices.extend(node.indices)

    def bind(node: Any) -> None:
        sources[hash(node.var)].append(node.value)

    def loop(node: Any) -> None:
        sources[hash(node.loop_var)] += [node.min, node.extent]

    structural_walk(body, [(BufferStore, store), (TensorLoad, load)])
    if not stored:
        return False
    structural_walk(body, [(tirx.Bind, bind), (For, loop)])
    reached: set[Hashable] = set()

    def visit(node: Any) -> None:
        name = hash(node.source if isinstance(node, TensorLoad) else node)
        if name not in reached:
            reached.add(name)
            indices.extend(sources[name])

    while indices:
        structural_walk(indices.pop(), [(TensorLoad, visit), (tirx.Var, visit)])
    return not reached.isdisjoint(stored)


def _is_register(buffer: Any) -> bool:
    """Whether a buffer is one variable: LLVM keeps none of those in memory."""
    return all(isinstance(extent, tirx.IntImm) and int(extent) == 1 for extent in buffer.shape)
