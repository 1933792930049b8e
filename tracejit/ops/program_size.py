"""How large and how deep a program is with its calls written out.

Extents().add(computation)      raises for what would never end to be compiled
"""

from __future__ import annotations

from tracejit.errors import UnsupportedError
from tracejit.graph import Computation, Instruction, Module
from tracejit.ops.control import CALL, CONDITIONAL
from tracejit.traversal import called_computations, instructions

MOST_INSTRUCTIONS = 1 << 20
"""Instructions, calls written out, of a program that is compiled or evaluated."""

MOST_NESTED = 64
"""How deep Maps, Conditionals, loops … may lie in each other. Calls may be deeper."""


class TooLargeError(UnsupportedError):
    """A program that is too large or too deep; ``instruction`` is where it becomes so."""

    def __init__(self, message: str, instruction: Instruction) -> None:
        super().__init__(message, instruction.source)
        self.instruction = instruction


class Extents:
    """The sizes and depths of computations, found soonest where callees come before callers.

    With ``one_branch`` only the largest branch of a Conditional counts: the interpreter runs one,
    while compiled code holds all.
    """

    def __init__(self, one_branch: bool = False) -> None:
        self._one_branch = one_branch
        self.size: dict[Computation, int] = {}
        self.depth: dict[Computation, int] = {}
        self.calls: dict[Computation, int] = {}

    def add(self, computation: Computation) -> None:
        """Raises `TooLargeError` where the computation exceeds what can be compiled."""
        size, depth, calls = 0, 0, 0
        equal: dict[object, Instruction] = {}
        first: dict[Instruction, Instruction] = {}
        for instruction in instructions(computation):
            size += 1
            called = instruction.computations
            if not called:
                continue
            for callee in called:
                if callee not in self.size:
                    for each in called_computations(Module("called", callee)):
                        self.add(each)
            is_call = instruction.op is CALL
            if is_call and not instruction.has_effect:
                key = (called, tuple(first.get(o, o) for o in instruction.operands))
                first[instruction] = equal.setdefault(key, instruction)
                if first[instruction] is not instruction:
                    continue
            counted = max if self._one_branch and instruction.op is CONDITIONAL else sum
            size += counted(self.size[each] for each in called)
            depth = max(depth, *(self.depth[each] + (not is_call) for each in called))
            calls = max(calls, *(self.calls[each] + is_call for each in called))
            if size > MOST_INSTRUCTIONS:
                raise TooLargeError(
                    f"{instruction.op.function}: with all that is called written out, the program "
                    f"has {size} instructions, more than {MOST_INSTRUCTIONS}",
                    instruction,
                )
            if depth > MOST_NESTED:
                raise TooLargeError(
                    f"{instruction.op.function}: computations lie more than {MOST_NESTED} deep in "
                    "each other",
                    instruction,
                )
        self.size[computation], self.depth[computation] = size, depth
        self.calls[computation] = calls


def extents(computation: Computation, one_branch: bool = False) -> Extents:
    """Those of a computation and all it calls. Raises `TooLargeError`."""
    made = Extents(one_branch)
    for each in called_computations(Module("extents", computation)):
        made.add(each)
    return made
