"""Thunks: the steps of a lowered computation (kernels, control flow), before memory is assigned.

Steps refer to memory by its owner; addresses are assigned when all steps are known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Protocol

from tracejit.backends.tvm.analysis.kernel_stats import NOTHING, KernelStats
from tracejit.backends.tvm.ir.tir import Buffer, Stmt
from tracejit.backends.tvm.program.program import (
    Argument,
    Branch,
    Call,
    Kernel,
    LibraryCall,
    Loop,
    Memory,
    Node,
)
from tracejit.graph import Instruction


@dataclass(frozen=True, eq=False)
class Scratch:
    """Temporary memory of one step."""

    nbytes: int


Owner = Instruction | Scratch | int
"""An owner of memory: an instruction, a step's scratch, or the output of that number."""

AddressOf = Callable[[Owner], Argument]


class Step(Protocol):
    """One step of a program."""

    @property
    def owners(self) -> Sequence[Owner]:
        """All memory that it reads or writes."""

    def kernels(self) -> list[Kernel]:
        """The kernels that it calls."""

    def nodes(self, place: AddressOf) -> list[Node]:
        """The program nodes, given the address of every owner."""


@dataclass(frozen=True)
class KernelStep:
    """One call of one kernel, which only reads the first ``reads`` of its parameters.

    ``is_thorough`` and ``library`` are as in `Kernel`.
    """

    name: str
    body: Stmt
    parameters: Sequence[tuple[Owner, Buffer]]
    reads: int = 0
    stats: KernelStats = NOTHING
    is_thorough: bool = False
    library: LibraryCall | None = None

    @property
    def owners(self) -> Sequence[Owner]:
        return [owner for owner, _ in self.parameters]

    def kernels(self) -> list[Kernel]:
        buffers = [buffer for _, buffer in self.parameters]
        scratch = len([*self._last()])
        how = self.stats, self.is_thorough, scratch, self.library
        return [Kernel(self.name, buffers, self.body, self.reads, *how)]

    def _last(self) -> Iterator[Owner]:
        """The owners of the last parameters that are the step's own scratch."""
        owners = reversed([owner for owner, _ in self.parameters[self.reads :]])
        return takewhile(lambda owner: isinstance(owner, Scratch), owners)

    def nodes(self, place: AddressOf) -> list[Node]:
        return [Call(self.name, [place(owner) for owner, _ in self.parameters])]


@dataclass(frozen=True)
class Fragment:
    """A computation lowered by itself; the caller assigns its inputs, outputs and workspace.

    ``in_place`` are the outputs that share the memory of the parameters that they replace;
    ``aliases`` maps outputs to the parameters whose memory they share, by number.
    """

    all_kernels: Sequence[Kernel]
    calls: Sequence[Node]
    workspace_bytes: int
    in_place: frozenset[int] = frozenset()
    aliases: Mapping[int, int] = field(default_factory=dict)

    def at(
        self, inputs: Sequence[Argument], outputs: Sequence[Argument], workspace: Argument
    ) -> list[Node]:
        """The calls with the caller's memory in place of the fragment's."""

        def moved(argument: Argument) -> Argument:
            base = {Memory.INPUT: inputs, Memory.OUTPUT: outputs, Memory.WORKSPACE: [workspace]}
            if argument.memory is Memory.CONSTANT:
                return argument
            found = base[argument.memory][argument.index]
            return Argument(found.memory, found.index, found.offset + argument.offset)

        return [_moved(node, moved) for node in self.calls]


def _moved(node: Node, moved: Callable[[Argument], Argument]) -> Node:
    def all_moved(nodes: Sequence[Node]) -> list[Node]:
        return [_moved(n, moved) for n in nodes]

    if isinstance(node, Call):
        return Call(node.kernel, [moved(argument) for argument in node.arguments])
    if isinstance(node, Loop):
        return Loop(all_moved(node.condition), moved(node.predicate), all_moved(node.body))
    return Branch(moved(node.selector), [all_moved(branch) for branch in node.branches])
