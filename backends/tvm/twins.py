"""Kernels that differ in their names alone are one kernel, called with other memory.

Layers that repeat give the same kernels again and again; the machine code of one serves them all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tvm import tirx
from tvm.ir import PrimType
from tvm_ffi import StructuralKey

from tracejit.backends.tvm.codegen import pointers_and_body
from tracejit.backends.tvm.program import Branch, Call, Kernel, Loop, Node, Program


def without_twins(program: Program) -> Program:
    """The program with the first kernel of each kind, which every call of its twins calls."""
    first: dict[Any, Kernel] = {}
    names: dict[str, str] = {}
    for kernel in program.kernels:
        names[kernel.name] = first.setdefault(_key(kernel), kernel).name
    if len(first) == len(program.kernels):
        return program
    return replace(program, kernels=[*first.values()], calls=_renamed(program.calls, names))


def _key(kernel: Kernel) -> tuple[Any, int]:
    """Equal for kernels that do the same to parameters of the same sizes."""
    pointers, body = pointers_and_body(kernel)
    function = tirx.PrimFunc(pointers, body, ret_type=PrimType("int32"))
    return StructuralKey(function), kernel.reads


def _renamed(nodes: Sequence[Node], names: Mapping[str, str]) -> list[Node]:
    renamed: list[Node] = []
    for node in nodes:
        if isinstance(node, Call):
            renamed.append(replace(node, kernel=names.get(node.kernel, node.kernel)))
        elif isinstance(node, Loop):
            condition, body = (_renamed(part, names) for part in (node.condition, node.body))
            renamed.append(replace(node, condition=condition, body=body))
        elif isinstance(node, Branch):
            branches = [_renamed(branch, names) for branch in node.branches]
            renamed.append(replace(node, branches=branches))
    return renamed
