"""Working out values while tracing: what depends on no unknown argument has a value.

The evaluator, one function from an instruction and its operands' values to its value, is given
by the layer that joins all parts (`use_evaluator`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tracejit.graph import Instruction
from tracejit.ops.constants import CONSTANT, PARAMETER
from tracejit.ops.control import WHILE
from tracejit.trace.affine_bounds import decided
from tracejit.trace.context import Trace, find_argument, running_traces
from tracejit.traversal import in_order

Evaluator = Callable[[Instruction, Sequence[Any]], Any]
Function = Callable[..., Any]
Preparer = Callable[[Instruction], Function]


class _Installed:
    evaluator: Evaluator | None = None
    preparer: Preparer | None = None


def use_evaluator(evaluator: Evaluator, preparer: Preparer) -> None:
    """Sets the evaluator of a single instruction, and the factory of such functions."""
    _Installed.evaluator = evaluator
    _Installed.preparer = preparer


class EvaluationPlan:
    """A reusable evaluation of some values: the functions to call, in order.

    plan = Plan([loss, gradient], [w, x])
    plan([w_value, x_value])            the values of loss and gradient

    ``inputs`` are the Parameters that the roots depend on. A value is dropped after its last use.
    """

    def __init__(self, roots: Sequence[Instruction], inputs: Sequence[Instruction]) -> None:
        prepare = _Installed.preparer
        assert prepare is not None, "no evaluator is installed"
        order = in_order([*inputs, *roots])
        last_use = {operand: at for at in order for operand in at.operands}
        places = {instruction: place for place, instruction in enumerate(inputs)}
        self._literals: list[Any] = []
        for constant in order:
            if constant.op is CONSTANT:
                places[constant] = len(places)
                self._literals.append(constant.attributes["literal"])
        self._steps: list[tuple[Function, list[int], list[int]]] = []
        kept = {*roots, *places}
        for at in order:
            if at in places:
                continue
            operands = [places[operand] for operand in at.operands]
            done = {o for o in at.operands if last_use[o] is at and o not in kept}
            self._steps.append((prepare(at), operands, [places[one] for one in done]))
            places[at] = len(places)
        self._roots = [places[root] for root in roots]

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        """The values of the roots, given those of the inputs; they may share memory."""
        known: list[Any] = [*values, *self._literals]
        with np.errstate(all="ignore"):
            for function, operands, done in self._steps:
                made = function(*[known[operand] for operand in operands])
                known.append(made if type(made) in _VALUES else np.asarray(made))
                for place in done:
                    known[place] = None
        return [known[root] for root in self._roots]


_VALUES = (np.ndarray, tuple)


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
    """The Parameters without a value that ``instruction`` depends on, in order of creation.

    What several devices work out together has no value either.
    """
    unknown = []
    for at in _order([instruction], known):
        if _is_unknown_argument(at):
            unknown.append(at)
    return unknown


def _is_unknown(
    root: Instruction, known: Collection[Instruction], unknown: set[Instruction]
) -> bool:
    """Whether a value depends on an argument without one; adds it to the ``unknown`` then, with
    all that was found to depend on the same one.
    """
    visited: set[Instruction] = set()
    path: list[tuple[Instruction, Iterator[Instruction]]] = []
    at: Instruction | None = root
    while at is not None:
        visited.add(at)
        if at in unknown or _is_unknown_argument(at):
            unknown.add(at)
            unknown.update(one for one, _ in path)
            return True
        path.append((at, iter(behind(at))))
        at = None
        while path and at is None:
            rest = (one for one in path[-1][1] if one not in visited and one not in known)
            at = next(rest, None)
            if at is None:
                path.pop()
    return False


_OF_DEVICES = frozenset({"channels", "permutes", "replicas", "starts"})
"""The families of ops that several devices work out together: one of them cannot say the value."""


def _is_of_devices(at: Instruction) -> bool:
    if at.op.family not in _OF_DEVICES:
        return False
    traces = running_traces()
    return bool(traces) and traces[0].partitions > 1


def _is_unknown_argument(at: Instruction) -> bool:
    if at.op is not PARAMETER:
        return _is_of_devices(at)
    found = find_argument(at)
    return found is None or found[1].value is None


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


def _known_now(
    instruction: Instruction, trace: Trace, prepared: dict[Instruction, Function]
) -> np.ndarray | None:
    """`known_value` in the only trace that is running, which has a memory."""
    values, arguments = trace.values, trace.arguments
    assert _Installed.preparer is not None, "no evaluator is installed"
    needed: dict[int, Instruction] = {}
    stack = [instruction]
    while stack:
        at = stack.pop()
        if at in values or at.serial in needed:
            continue
        if at.op is PARAMETER:
            found = arguments.get(at)
            if found is None or found.value is None:
                return None
            values[at] = found.value
        elif at.op is CONSTANT:
            values[at] = at.attributes["literal"]
        elif _is_of_devices(at):
            return None
        else:
            needed[at.serial] = at
            stack += at.operands
    with np.errstate(all="ignore"):
        for serial in sorted(needed):
            at = needed[serial]
            function = prepared.get(at)
            if function is None:
                function = prepared[at] = _Installed.preparer(at)
            made = function(*[values[operand] for operand in at.operands])
            values[at] = made if type(made) in _VALUES else np.asarray(made)
    value: np.ndarray = values[instruction]
    return value


def known_value(instruction: Instruction, through_loops: bool = True) -> np.ndarray | None:
    """The value of an instruction if it depends on no unknown argument, else None.

    A comparison of counters that gives the same in all steps of a loop has one. Unless
    ``through_loops``, what a loop has to be run for has none.

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
    if traces and traces[0].memory is not None:
        traces[0].memory.asked += 1
        if len(traces) == 1 and through_loops and instruction not in memory:
            return _known_now(instruction, traces[0], traces[0].memory.prepared)
    if instruction not in memory:
        if _is_unknown(instruction, memory, traces[0].unknown if traces else set()):
            return None
        order = _order([instruction], memory)
        if not through_loops and any(at.op is WHILE for at in order):
            return None
        for at in order:
            memory[at] = _value(at, memory)
    value: np.ndarray = memory[instruction]
    return value
