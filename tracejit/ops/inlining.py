"""Calls written out, and how large and how deep a program is then.

inlined(computation)            the same without Call, equal calls written out once
Extents().add(computation)      raises for what would never end to be compiled
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tracejit.errors import UnsupportedError
from tracejit.graph import Computation, Instruction, Module
from tracejit.ops.control import CALL, CONDITIONAL
from tracejit.traversal import called_computations, instructions

MOST_INSTRUCTIONS = 1 << 20
"""Instructions, calls written out, of a program that is compiled or evaluated."""

MOST_NESTED = 64
"""How deep Maps, Conditionals, loops … may lie in each other. Calls may be deeper."""

# Where calls are written out with care, instead of one by one as they are met.
_DEEP, _LARGE = 16, 20_000


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


def inlined(computation: Computation, one_branch: bool = False) -> Computation:
    """The computation without calls, where they are deep or many; equal calls become one.

    Calls with a side effect stay. Raises `TooLargeError` for what is too large written out, as
    `Extents` counts it.
    """
    found = extents(computation, one_branch)
    if found.calls[computation] <= _DEEP and found.size[computation] <= _LARGE:
        return computation
    order = called_computations(Module("inlined", computation))
    kept = {computation}
    for each in order:
        for instruction in instructions(each):
            if not _is_written_out(instruction):
                kept.update(instruction.computations)
    made: dict[Computation, Computation] = {}
    for each in order:
        if each in kept:
            made[each] = _Writing(each, made).computation()
    return made[computation]


def _is_written_out(instruction: Instruction) -> bool:
    return instruction.op is CALL and not instruction.has_effect


class _Frame:
    """A computation being written out for some operands, up to one of its instructions."""

    def __init__(self, computation: Computation, operands: Sequence[Instruction]) -> None:
        self.computation = computation
        self.values = dict(zip(computation.parameters, operands, strict=True))
        self.left = iter(instructions(computation))
        self.waiting: Instruction | None = None


class _Writing:
    """Writes a computation's calls out, without recursion; ``made`` has those that others call."""

    def __init__(self, computation: Computation, made: Mapping[Computation, Computation]) -> None:
        self.whole = computation
        self.made = made
        self.known: dict[object, Instruction] = {}

    def computation(self) -> Computation:
        outermost = _Frame(self.whole, self.whole.parameters)
        stack = [outermost]
        while stack:
            inner = self._advanced(stack[-1])
            if inner is not None:
                stack.append(inner)
                continue
            done = stack.pop()
            if stack:
                caller = stack[-1]
                assert caller.waiting is not None
                result = done.values[done.computation.root]
                caller.values[caller.waiting] = self.known[_key(caller)] = result
        root, *effects = (outermost.values[each] for each in (self.whole.root, *self.whole.effects))
        return Computation(self.whole.name, self.whole.parameters, root, tuple(effects))

    def _advanced(self, frame: _Frame) -> _Frame | None:
        """Goes on to the end of a frame, or to a call that is to be written out first."""
        for instruction in frame.left:
            if instruction in frame.values:
                continue
            if not _is_written_out(instruction):
                frame.values[instruction] = self._rebuilt(instruction, frame)
                continue
            frame.waiting = instruction
            known = self.known.get(_key(frame))
            if known is None:
                operands = [frame.values[o] for o in instruction.operands]
                return _Frame(instruction.attributes["to_apply"], operands)
            frame.values[instruction] = known
        return None

    def _rebuilt(self, instruction: Instruction, frame: _Frame) -> Instruction:
        operands = tuple([frame.values[o] for o in instruction.operands])
        same = all(a is b for a, b in zip(operands, instruction.operands, strict=True))
        if same and not instruction.computations and not instruction.has_effect:
            return instruction
        attributes = {name: self._attribute(v) for name, v in instruction.attributes.items()}
        return Instruction(
            instruction.op,
            operands,
            instruction.shape,
            attributes,
            instruction.source,
            sharding=instruction.sharding,
        )

    def _attribute(self, value: object) -> object:
        if isinstance(value, Computation):
            return self.made[value]
        if isinstance(value, tuple) and value and isinstance(value[0], Computation):
            return tuple(self.made[each] for each in value)
        return value


def _key(frame: _Frame) -> object:
    """A call by what it calls and the operands it has."""
    assert frame.waiting is not None
    operands = tuple(frame.values[o] for o in frame.waiting.operands)
    return frame.waiting.attributes["to_apply"], operands
