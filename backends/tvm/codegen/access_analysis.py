"""Access analysis: the buffers that elements are loaded from, and the indices, found
symbolically.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tracejit.affine import Affine
from tracejit.backends.tvm.analysis.element_rules import Value, indexed, own_indices
from tracejit.backends.tvm.ir.affine import (
    Index,
    LoopVariable,
    Opaque,
    index_variables,
    linear,
    split_row_major,
)
from tracejit.graph import Instruction
from tracejit.shapes import ElementType


@dataclass(frozen=True)
class Load:
    """A load during analysis: its address, unless that depends on data (``known`` is false)."""

    instruction: Instruction
    address: Affine
    known: bool


class Accesses:
    """The analysing scope: records loads, opaque uses of loop variables, and requests to split
    loops.
    """

    def __init__(self, is_input: Callable[[Instruction], bool]) -> None:
        self._is_input = is_input
        self._seen: set[Any] = set()
        self.known: set[Instruction] = set()
        self.loads: list[Load] = []
        self.opaque: set[LoopVariable] = set()
        self.splits: dict[LoopVariable, int] = {}

    def forget(self) -> None:
        """Forget which elements were visited: a later part of the kernel loads them again."""
        self._seen.clear()

    def value(self, instruction: Instruction, indices: Sequence[Index]) -> Value:
        key = (instruction, tuple(indices))
        if key in self._seen or instruction in self.known:
            return None
        self._seen.add(key)
        if self._is_input(instruction):
            self.load(instruction, *linear(indices, instruction.array_shape.dimensions))
            return None
        return self.compute(instruction, indices)

    def result(self, instruction: Instruction, indices: Sequence[Index]) -> Value:
        """One element of a kernel's own result."""
        return self.compute(instruction, indices)

    def compute(self, instruction: Instruction, indices: Sequence[Index]) -> Value:
        """One element by the instruction's rule, even if it has memory."""
        rule = indexed.get(instruction.op)
        if rule is not None:
            return rule(self, instruction, indices)
        for operand in instruction.operands:
            self.value(operand, own_indices(operand, indices))
        return None

    def load(self, instruction: Instruction, address: Affine, opaque: list[Opaque]) -> None:
        """Record a load of an instruction's memory."""
        self.opaque |= index_variables(opaque)
        self.loads.append(Load(instruction, address, not opaque))

    def reshaped(
        self, instruction: Instruction, dimensions: Sequence[int], indices: Sequence[Index]
    ) -> Value:
        address, opaque = linear(indices, dimensions)
        if self._is_input(instruction):
            self.load(instruction, address, opaque)
            return None
        own = instruction.array_shape.dimensions
        parts = None if opaque and 0 not in own else split_row_major(address, own)
        if parts is not None:
            return self.value(instruction, parts)
        wish = None if opaque else _wish_to_split(address, own)
        if wish is not None:
            self.splits[wish[0]] = wish[1]
        variables = address.variables | index_variables(opaque)
        self.opaque |= variables
        return self.value(instruction, [Opaque(None, variables) for _ in own])

    def number(self, index: Index, element_type: ElementType) -> Value:
        self.opaque |= index.variables
        return None

    def start(self, instruction: Instruction, indices: Sequence[Index], limit: int) -> Opaque:
        self.value(instruction, indices)
        return Opaque(None, index_variables(indices))

    def shifted(self, index: Index, by: Opaque) -> Opaque:
        return Opaque(None, index.variables | by.variables)

    def map(self, function: Callable[..., Value], *values: Value) -> Value:
        return None


def _wish_to_split(address: Affine, dimensions: Sequence[int]) -> tuple[LoopVariable, int] | None:
    """A loop variable, and the inner extent to split it at, that keeps a reshape affine.

    A variable that crosses the boundary of a dimension is split at that boundary's stride.
    """
    stride = 1
    for size in reversed(dimensions):
        stride *= size
        for variable, coefficient in address.terms.items():
            inner, remainder = divmod(stride, coefficient)
            if remainder == 0 and 1 < inner < variable.extent and variable.extent % inner == 0:
                return variable, inner
    return None
