"""Calls written out.

inlined(computation)            the same without Call, equal calls written out once
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tracejit.graph import Computation, Instruction, Module
from tracejit.ops.call_rerolling import rerolled
from tracejit.ops.control import CALL
from tracejit.ops.program_size import extents
from tracejit.traversal import called_computations, instructions

# Where calls are written out with care, instead of one by one as they are met.
_DEEP, _LARGE = 16, 20_000


def inlined(
    computation: Computation, one_branch: bool = False, rerolls: bool = False
) -> Computation:
    """The computation without calls, where they are deep or many; equal calls become one.

    Calls with a side effect stay. If it ``rerolls``, several calls of one large computation become
    one in a loop, where the program is large. Raises `TooLargeError` for what is too large written
    out, as `Extents` counts it.
    """
    found = extents(computation, one_branch)
    if found.calls[computation] <= _DEEP and found.size[computation] <= _LARGE:
        return computation
    if rerolls and found.size[computation] > _LARGE:
        computation = rerolled(computation)
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
