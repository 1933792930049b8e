"""Working out values while tracing: what depends on no unknown argument has a value.

The evaluator, one function from an instruction and its operands' values to its value, is given
by the layer that joins all parts (`use_evaluator`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tracejit.graph import Instruction
from tracejit.ops.constants import CONSTANT, PARAMETER
from tracejit.trace.context import find_argument, running_traces
from tracejit.trace.counters import decided

Evaluator = Callable[[Instruction, Sequence[Any]], Any]


class _Installed:
    evaluator: Evaluator | None = None


def use_evaluator(evaluator: Evaluator) -> None:
    """Sets what evaluates a single instruction."""
    _Installed.evaluator = evaluator


def behind(instruction: Instruction) -> tuple[Instruction, ...]:
    """What an instruction's value is made from, looking through arguments to enclosing traces."""
    if instruction.op is not PARAMETER:
        return instruction.operands
    found = find_argument(instruction)
    if found is not None and isinstance(found[1].value, Instruction):
        return (found[1].value,)
    return ()


def _order(roots: Iterable[Instruction], known: Collection[Instruction]) -> list[Instruction]:
    """What must be worked out for ``roots``, operands first."""
    needed: set[Instruction] = set()
    stack = list(roots)
    while stack:
        at = stack.pop()
        if at in needed or at in known:
            continue
        needed.add(at)
        stack.extend(behind(at))
    return sorted(needed, key=lambda instruction: instruction.serial)


def unknown_arguments(
    instruction: Instruction, known: Collection[Instruction] = ()
) -> list[Instruction]:
    """The Parameters without a value that ``instruction`` depends on, in order of creation."""
    unknown = []
    for at in _order([instruction], known):
        if at.op is PARAMETER:
            found = find_argument(at)
            if found is None or found[1].value is None:
                unknown.append(at)
    return unknown


def _value(instruction: Instruction, known: Mapping[Instruction, Any]) -> Any:
    if instruction.op is CONSTANT:
        return instruction.attributes["literal"]
    if instruction.op is PARAMETER:
        found = find_argument(instruction)
        assert found is not None, f"{instruction} belongs to no running trace"
        assert found[1].value is not None, f"{instruction} is unknown"
        value = found[1].value
        return known[value] if isinstance(value, Instruction) else value
    assert _Installed.evaluator is not None, "no evaluator is installed"
    return _Installed.evaluator(instruction, [known[o] for o in instruction.operands])


def evaluate(roots: Sequence[Instruction], known: Mapping[Instruction, Any]) -> list[Any]:
    """The values of ``roots``, given some. Each value is dropped after its last use.

    Every argument that the roots depend on must have a value: see `unknown_arguments`.
    """
    order = _order(roots, known)
    last_use = {operand: at for at in order for operand in behind(at)}
    kept = set(roots)
    values = dict(known)
    for at in order:
        values[at] = _value(at, values)
        for operand in behind(at):
            if last_use[operand] is at and operand not in kept:
                values.pop(operand, None)
    return [values[root] for root in roots]


def known_value(instruction: Instruction) -> np.ndarray | None:
    """The value of an instruction if it depends on no unknown argument, else None.

    A comparison of counters that gives the same in all steps of a loop has one.

    Values worked out on the way are remembered until the outermost trace ends.
    """
    if instruction.op is CONSTANT:
        literal: np.ndarray = instruction.attributes["literal"]
        return literal
    answer = decided(instruction)
    if answer is not None:
        return np.asarray(answer)
    traces = running_traces()
    memory = traces[0].values if traces else {}
    if instruction not in memory:
        if unknown_arguments(instruction, memory):
            return None
        for at in _order([instruction], memory):
            memory[at] = _value(at, memory)
    value: np.ndarray = memory[instruction]
    return value
