"""Rebases pointers: removes constant base offsets from a kernel's indices, so that kernels are
equal.

    found = constant_offsets(kernel)        # by parameter, the elements before all that are used
    moved = rebased(kernel, found, rooms)   # for pointers to the first element that is used

A loop that Python has unrolled gives a kernel for each iteration, which differ only in the offset
of the iteration's slice of an array.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import tvm
from tvm import tirx
from tvm.ir import TensorLoad
from tvm_ffi import StructuralMutator, structural_mutate, structural_walk

from tracejit.backends.tvm.ir.tir import Buffer, BufferStore, Expr, itemsize
from tracejit.backends.tvm.program.program import Kernel

_DIVISIONS = tirx.FloorDiv | tirx.FloorMod


def constant_offsets(kernel: Kernel) -> dict[str, int]:
    """For each parameter, the constant offset of all its accesses, if it is positive.

    The offset is a constant term of the indices; a parameter that is passed on as a pointer has
    none.
    """
    least = {str(parameter.name): -1 for parameter in kernel.parameters}
    handed: set[str] = set()

    def access(memory: Buffer, indices: Any) -> None:
        name = str(memory.name)
        if name not in least:
            return
        place = _constant(indices[0]) if len(indices) == 1 else 0
        least[name] = place if least[name] < 0 else min(least[name], place)

    def call(node: Any) -> None:
        handed.update(str(given.name) for given in node.args if isinstance(given, tirx.Buffer))

    structural_walk(
        kernel.body,
        [
            (TensorLoad, lambda node: access(node.source, node.indices)),
            (BufferStore, lambda node: access(node.buffer, node.indices)),
            (tvm.ir.Call, call),
        ],
    )
    return {name: place for name, place in least.items() if place > 0 and name not in handed}


def rebased(kernel: Kernel, places: Mapping[str, int], rooms: Mapping[str, int]) -> Kernel:
    """The kernel for pointers moved by ``places`` elements; ``rooms`` are the elements that
    remain.
    """
    made = {
        str(old.name): tirx.decl_buffer(
            (int(old.shape[0]) - rooms.get(str(old.name), 0),),
            str(old.dtype),
            name=str(old.name),
            data_alignment=itemsize(old),
        )
        for old in kernel.parameters
        if str(old.name) in places or str(old.name) in rooms
    }

    def moved(memory: Buffer, indices: Any) -> tuple[Buffer, Any]:
        name = str(memory.name)
        new = made.get(name)
        if new is None:
            return memory, indices
        return new, [_without(indices[0], places.get(name, 0))]

    def load(node: Any, mutator: StructuralMutator) -> Any:
        inside = mutator.default_mutate(node)
        return tirx.BufferLoad(*moved(inside.source, inside.indices))

    def store(node: Any, mutator: StructuralMutator) -> Any:
        value, indices = mutator.mutate(node.value), mutator.mutate(node.indices)
        memory, places = moved(node.buffer, indices)
        return BufferStore(memory, value, places)

    body = structural_mutate(kernel.body, [(TensorLoad, load), (BufferStore, store)])
    parameters = [made.get(str(old.name), old) for old in kernel.parameters]
    return replace(kernel, parameters=parameters, body=body)


def _constant(index: Expr) -> int:
    """The constant term of an index, if the other terms are not negative; else 0."""
    parts = _parts(index)
    return 0 if parts is None else max(parts[0], 0)


def _without(index: Expr, number: int) -> Expr:
    """An index minus a number that its constant term contains."""
    constant, rest = _parts(index) or (0, None)
    left = tirx.IntImm(str(index.ty), constant - number)
    if rest is None:
        return left
    return rest if constant == number else left + rest


def _parts(index: Expr) -> tuple[int, Expr | None] | None:
    """The constant term of an index and the rest, if the rest counts up from 0; None if unknown."""
    if isinstance(index, tirx.IntImm):
        return int(index), None
    if isinstance(index, tirx.Add):
        a, b = _parts(index.a), _parts(index.b)
        if a is None or b is None:
            return None
        if a[1] is None or b[1] is None:
            return a[0] + b[0], b[1] if a[1] is None else a[1]
        return a[0] + b[0], a[1] + b[1]
    if isinstance(index, tirx.Mul) and isinstance(index.b, tirx.IntImm) and int(index.b) >= 0:
        inside = _parts(index.a)
        if inside is None:
            return None
        constant, rest = inside
        return constant * int(index.b), None if rest is None else rest * index.b
    if isinstance(index, tirx.Var | tirx.Cast):
        # A loop variable, or a clamped start.
        return 0, index
    if isinstance(index, _DIVISIONS | tirx.Min):
        # The expression itself, if it is not negative.
        both = _parts(index.a), _parts(index.b)
        return (0, index) if all(part is not None and part[0] >= 0 for part in both) else None
    return None
