"""The explanation of a program for users: each kernel's loops and costs, and the order of calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvm.tirx import AttrStmt, For, IfThenElse, IntImm, SeqStmt, While

from tracejit.backends.explanation import (
    SIGNALS,
    ArgumentAddress,
    Explanation,
    KernelFacts,
    Nest,
    Node,
)
from tracejit.backends.tvm.ir.tir import PARALLEL, SERIAL, UNROLLED, VECTORIZED, Stmt
from tracejit.backends.tvm.program.program import Argument, Call, Kernel, Loop, Program
from tracejit.backends.tvm.program.program import Node as Step

_KINDS = {
    int(SERIAL): "serial",
    int(PARALLEL): "parallel",
    int(VECTORIZED): "vectorized",
    int(UNROLLED): "unrolled",
}


def explanation(
    program: Program, callbacks: Mapping[str, tuple[str, ...]], threads: int
) -> Explanation:
    """The explanation; ``callbacks`` are the Python functions that kernels call, by their names."""
    kernels = [_facts(k, callbacks.get(k.name, ()), threads) for k in program.kernels]
    numbers = {kernel.name: number for number, kernel in enumerate(program.kernels)}
    return Explanation(kernels, _Steps(numbers, program.state).told(program.calls))


def _facts(kernel: Kernel, callbacks: tuple[str, ...], threads: int) -> KernelFacts:
    loops = _loops(kernel.body)
    most = max((nest.extent for nest in loops if nest.kind == "parallel"), default=1)
    found = kernel.stats
    return KernelFacts(
        kernel.name,
        found.ops,
        found.schedule,
        loops,
        min(threads, most),
        found.bytes_read,
        found.bytes_written,
        found.flops,
        found.transcendentals,
        found.wide,
        callbacks,
        found.changes,
        found.gain,
        tuple((line.file, line.line) for line in found.sources),
    )


def _loops(body: Stmt) -> tuple[Nest, ...]:
    """The loops of a body, outermost first; of equal adjacent loops only the first."""
    found: list[Nest] = []

    def visit(statement: Stmt, depth: int) -> None:
        if isinstance(statement, For | While):
            nest = Nest(depth, "while", -1)
            if isinstance(statement, For):
                extent = statement.extent
                count = int(extent) if isinstance(extent, IntImm) else -1
                nest = Nest(depth, _KINDS[int(statement.kind)], count)
            before = len(found)
            found.append(nest)
            visit(statement.body, depth + 1)
            length = len(found) - before
            if found[before - length : before] == found[before:]:
                del found[before:]
        elif isinstance(statement, SeqStmt):
            for each in statement.seq:
                visit(each, depth)
        elif isinstance(statement, IfThenElse):
            visit(statement.then_case, depth)
            if statement.else_case is not None:
                visit(statement.else_case, depth)
        elif isinstance(statement, AttrStmt):
            visit(statement.body, depth)

    visit(body, 0)
    return tuple(found)


@dataclass(frozen=True)
class _Steps:
    """Steps of a program, told with the numbers of kernels.

    ``state`` is the memory that lets signals end the program.
    """

    numbers: Mapping[str, int]
    state: Argument | None

    def told(self, nodes: Sequence[Step]) -> list[Node]:
        made: list[Node] = []
        for node in nodes:
            if isinstance(node, Call):
                places = [self._place(argument) for argument in node.arguments]
                made.append(("call", self.numbers[node.kernel], places))
            elif isinstance(node, Loop):
                condition, body = self.told(node.condition), self.told(node.body)
                made.append(("loop", condition, self._place(node.predicate), body, node.steps))
            else:
                branches: Any = [self.told(branch) for branch in node.branches]
                made.append(("branch", self._place(node.selector), branches))
        return made

    def _place(self, argument: Argument) -> ArgumentAddress:
        if argument == self.state:
            return SIGNALS, 0, 0
        return argument.memory.value, argument.index, argument.offset
