"""Identical code folding: merges kernels that are equal up to their names and base offsets.

Repeated layers give equal kernels; one machine code serves all of them. It also serves kernels
that work on different parts of their arrays: each call passes pointers to its parts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from tvm import tirx
from tvm.ir import PrimType
from tvm_ffi import StructuralKey

from tracejit.backends.tvm.cpu.objects.rebase_pointers import constant_offsets, rebased
from tracejit.backends.tvm.cpu.objects.tir_pipeline import pointers_and_body
from tracejit.backends.tvm.ir.tir import itemsize
from tracejit.backends.tvm.program.program import Branch, Call, Kernel, Loop, Node, Program

Offsets = Sequence[int]
"""For each parameter of a kernel, the bytes to add to its pointer."""


def fold_identical_kernels(program: Program) -> Program:
    """The program with one kernel of each group of equal ones; calls of the others call that."""
    first: dict[Any, Kernel] = {}
    written: dict[int, Kernel] = {}
    names: dict[str, str] = {}
    for kernel in program.kernels:
        same = written.setdefault(id(kernel.body), kernel)
        if same is kernel or [*same.parameters] != [*kernel.parameters]:
            same = first.setdefault(_key(kernel), kernel)
        names[kernel.name] = names.get(same.name, same.name)
    kept = {kernel.name: kernel for kernel in first.values()}
    served: dict[str, tuple[str, Offsets]] = {}
    for group in _alike(first.values()):
        for one, members in _one_of_each(group):
            served |= {name: (one.name, offsets) for name, offsets in members.items()}
            kept = {name: k for name, k in kept.items() if name not in members}
            kept[one.name] = one
    if len(kept) == len(program.kernels):
        return program

    def called(call: Call) -> Call:
        name = names.get(call.kernel, call.kernel)
        if name not in served:
            return replace(call, kernel=name)
        name, offsets = served[name]
        pairs = zip(call.arguments, offsets, strict=True)
        return Call(name, [replace(place, offset=place.offset + by) for place, by in pairs])

    return replace(program, kernels=[*kept.values()], calls=_renamed(program.calls, called))


def _alike(kernels: Iterable[Kernel]) -> list[list[Kernel]]:
    """Groups of kernels with equal statistics and parameter sizes."""
    groups: dict[Any, list[Kernel]] = defaultdict(list)
    for kernel in kernels:
        if all(len(p.shape) == 1 for p in kernel.parameters):
            stats = kernel.stats
            sizes = tuple((int(p.shape[0]), str(p.dtype)) for p in kernel.parameters)
            what = tuple(sorted(stats.ops)), stats.schedule, stats.flops, stats.transcendentals
            groups[sizes, what, kernel.reads, kernel.is_thorough].append(kernel)
    return [group for group in groups.values() if len(group) > 1]


def _one_of_each(group: Sequence[Kernel]) -> list[tuple[Kernel, dict[str, Offsets]]]:
    """One kernel per group of those equal up to base offsets, and each member's offsets."""
    found: dict[Any, list[tuple[Kernel, Kernel, list[int]]]] = defaultdict(list)
    for kernel in group:
        places = constant_offsets(kernel)
        moved = rebased(kernel, places, {}) if places else kernel
        numbers = [places.get(str(p.name), 0) for p in kernel.parameters]
        found[_key(moved)].append((kernel, moved, numbers))
    made = []
    for members in found.values():
        if len(members) == 1:
            continue
        kernel = members[0][1]
        parameters = kernel.parameters
        furthest = map(max, zip(*(numbers for _, _, numbers in members), strict=True))
        rooms = {str(p.name): most for p, most in zip(parameters, furthest, strict=True) if most}
        sizes = [itemsize(p) for p in parameters]
        offsets: dict[str, Offsets] = {
            one.name: [number * size for number, size in zip(numbers, sizes, strict=True)]
            for one, _, numbers in members
        }
        made.append((rebased(kernel, {}, rooms), offsets))
    return made


def _key(kernel: Kernel) -> tuple[Any, int]:
    """A key that is equal for kernels with the same body and parameter sizes."""
    pointers, body = pointers_and_body(kernel)
    function = tirx.PrimFunc(pointers, body, ret_type=PrimType("int32"))
    return StructuralKey(function), kernel.reads


def _renamed(nodes: Sequence[Node], called: Callable[[Call], Call]) -> list[Node]:
    renamed: list[Node] = []
    for node in nodes:
        if isinstance(node, Call):
            renamed.append(called(node))
        elif isinstance(node, Loop):
            condition, body = (_renamed(part, called) for part in (node.condition, node.body))
            renamed.append(replace(node, condition=condition, body=body))
        elif isinstance(node, Branch):
            branches = [_renamed(branch, called) for branch in node.branches]
            renamed.append(replace(node, branches=branches))
    return renamed
