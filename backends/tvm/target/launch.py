"""How a program's calls are run: by an entry that obeys `backends.abi` and calls the kernels.

entry = host_loop(program, kernels, memory)     # a Python function; the CPU's is machine code
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tracejit.backends.abi import ArraySpec
from tracejit.backends.tvm.program.program import Argument, Call, Loop, Memory, Node, Program
from tracejit.backends.tvm.target.memory_spaces import MemorySpaces

Entry = Callable[[int], int]
"""What takes the address of a call's tuple and returns 0, or -1 for arguments that do not fit."""

Kernels = Mapping[str, Any]
"""Compiled kernels by name, in the form that the target's own build gives them."""

Launch = Callable[[Program, Kernels], Entry]


def host_loop(
    program: Program, kernels: Mapping[str, Callable[..., object]], memory: MemorySpaces
) -> Entry:
    """The entry of a program whose kernels are called with addresses, one by one, by Python.

    Constants are placed once, the workspace is allocated anew for each call.
    """
    constants = [memory.place(array) for array in program.constants]
    count = len(program.inputs) + len(program.outputs)

    def entry(address: int) -> int:
        _, *arrays = ctypes.cast(address, ctypes.py_object).value
        arrays = arrays[:count]
        if not all(map(_fits, arrays, [*program.inputs, *program.outputs])):
            return -1
        # An argument that becomes a result is the same array twice.
        places = {id(array): memory.place(array) for array in arrays}
        given = [places[id(array)] for array in arrays]
        workspace = memory.allocate(program.workspace_bytes)
        bases = {
            Memory.INPUT: given[: len(program.inputs)],
            Memory.OUTPUT: given[len(program.inputs) :],
            Memory.CONSTANT: constants,
            Memory.WORKSPACE: [workspace],
        }
        try:
            _Run(kernels, memory, bases).run(program.calls)
        finally:
            memory.free(workspace)
            for array in {id(array): array for array in arrays}.values():
                memory.fetch(places[id(array)], array)
        return 0

    return entry


class _Run:
    """One call of a program."""

    def __init__(
        self,
        kernels: Mapping[str, Callable[..., object]],
        memory: MemorySpaces,
        bases: Mapping[Memory, Sequence[int]],
    ) -> None:
        self._kernels = kernels
        self._memory = memory
        self._bases = bases

    def run(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            if isinstance(node, Call):
                self._kernels[node.kernel](*map(self._address, node.arguments))
            elif isinstance(node, Loop):
                self.run(node.condition)
                while self._memory.read(self._address(node.predicate), 1) != b"\0":
                    self.run(node.body)
                    self.run(node.condition)
            else:
                selector = self._memory.read(self._address(node.selector), 4)
                number = int.from_bytes(selector, "little", signed=True)
                last = len(node.branches) - 1
                self.run(node.branches[number if 0 <= number < last else last])

    def _address(self, argument: Argument) -> int:
        return self._bases[argument.memory][argument.index] + argument.offset


def _fits(array: object, spec: ArraySpec) -> bool:
    return (
        type(array) is np.ndarray
        and array.dtype == spec.dtype
        and array.shape == spec.shape
        and array.flags.c_contiguous
        and array.flags.aligned
    )
