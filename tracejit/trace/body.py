"""Recording a function as a computation: the body of a loop, a branch, a reducer.

body = record_body(function, "body", [Abstract(...), ...])
body.captured                 what it uses of the traces around it; the computation takes these too
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tracejit import tree
from tracejit.errors import ArgumentError, TracerLeakError, UnsupportedError
from tracejit.graph import Instruction
from tracejit.ops.constants import CONSTANT, PARAMETER
from tracejit.shapes import Shape
from tracejit.trace.context import Trace, note_gaps, note_permuted
from tracejit.trace.convert import operand
from tracejit.trace.object_state import require_still, snapshot
from tracejit.trace.outside_world import calls_so_far, require_no_calls
from tracejit.trace.recording import recording
from tracejit.trace.tracer import Tracer, lift
from tracejit.traversal import rebuild


class Abstract(NamedTuple):
    """An array without its elements; see `Tracer` for what the flags mean."""

    shape: Shape
    is_weak: bool = False
    is_scalar: bool = False

    @staticmethod
    def of(value: Any) -> Abstract:
        """What a value that `operand` takes looks like."""
        given = operand(value)
        if isinstance(value, Tracer) and value.is_permuted:
            note_permuted()
        if isinstance(value, Tracer) and value.has_gaps:
            note_gaps()
        is_scalar = (
            value.is_scalar if isinstance(value, Tracer) else not isinstance(value, np.ndarray)
        )
        shape = Shape(given.element_type, given.dimensions)
        return Abstract(shape, given.is_weak, is_scalar and not shape.rank)


@dataclass(frozen=True)
class Body:
    """A recorded function: ``results`` as functions of ``parameters`` and of captured values.

    ``abstract`` and ``structure`` describe the tree that the function returned.
    """

    parameters: tuple[Instruction, ...]
    results: tuple[Instruction, ...]
    abstract: tuple[Abstract, ...]
    structure: tree.Structure
    trace: Trace

    @property
    def effects(self) -> tuple[Instruction, ...]:
        """The instructions that run for their side effects."""
        return tuple(self.trace.effects)

    @property
    def captured(self) -> list[Instruction]:
        """What is used of enclosing traces, in order of creation."""
        found: set[Instruction] = set()
        for instruction in _own_instructions((*self.results, *self.effects), self.trace):
            require_own(instruction, self.trace)
            found.update(o for o in (instruction, *instruction.operands) if self._is_foreign(o))
        return sorted(found, key=lambda instruction: instruction.serial)

    def _is_foreign(self, instruction: Instruction) -> bool:
        return not self.trace.owns(instruction) and not _is_small_constant(instruction)

    def rebuilt(
        self, replacements: Mapping[Instruction, Instruction]
    ) -> tuple[list[Instruction], list[Instruction]]:
        """Results and effects, with parameters and captured instructions exchanged for others.

        Every instruction is a new one, so that none belongs to two computations.
        """
        new = dict(replacements)
        for instruction in _own_instructions((*self.results, *self.effects), self.trace):
            for needed in (*instruction.operands, instruction):
                if needed not in new:
                    new[needed] = rebuild(needed, [new[o] for o in needed.operands])
        return [new[result] for result in self.results], [new[effect] for effect in self.effects]


def record_body(
    function: Callable[..., Any],
    title: str,
    arguments: Sequence[Abstract],
    assemble: Callable[[Sequence[Any]], Sequence[Any]] = tuple,
) -> Body:
    """Runs ``function`` on unknown arrays like ``arguments``, in a trace inside the running one.

    ``assemble`` makes the function's arguments from the arrays. Raises `ArgumentError` when it
    returns something that is no array.
    """
    with Trace(title) as trace:
        parameters = [
            trace.parameter(argument.shape, lambda: f"an argument of {title}")
            for argument in arguments
        ]
        tracers = [
            Tracer(parameter, trace, is_weak=argument.is_weak, is_scalar=argument.is_scalar)
            for parameter, argument in zip(parameters, arguments, strict=True)
        ]
        for tracer in tracers:
            tracer.lay_unknown()
        recorded = recording(function) if trace.record_numpy else function
        before = snapshot(function, only_moving=True)
        calls = calls_so_far()
        leaves, structure = tree.flatten(recorded(*assemble(tracers)))
        require_still(before, title)
        require_no_calls(calls, title)
        _require_order(trace, leaves)
        try:
            abstract = tuple(Abstract.of(leaf) for leaf in leaves)
        except ArgumentError as error:
            raise ArgumentError(f"{title}: {error.message}") from None
        results = tuple(operand(leaf).natural for leaf in leaves)
    return Body(tuple(parameters), results, abstract, structure, trace)


def with_kinds(values: Sequence[Instruction], kinds: Sequence[Abstract]) -> list[Tracer]:
    """The values as tracers of the running trace, handed out as ``kinds`` say."""
    made = []
    for value, kind in zip(values, kinds, strict=True):
        tracer = lift(value, kind.is_scalar)
        tracer.is_weak = kind.is_weak
        tracer.lay_unknown()
        made.append(tracer)
    return made


def require_own(instruction: Instruction, trace: Trace) -> None:
    """Raises `TracerLeakError` for an argument that is of an ended trace inside ``trace``."""
    if instruction.op is PARAMETER and trace.owns(instruction):
        if instruction not in trace.arguments:
            raise TracerLeakError(
                f"{trace.name}: a value made inside a loop, a branch or a function called there, "
                f"whose trace has ended, is used outside of it; assign it to a variable before"
            )


def _require_order(trace: Trace, leaves: Sequence[Any]) -> None:
    """Raises `UnsupportedError` where a body took its arguments' order for that of the first step.

    Later ones may get its results, which lie in another order.
    """
    arrays = [leaf for leaf in leaves if isinstance(leaf, Tracer)] if trace.asks_order else []
    has_next = bool(trace.arguments)
    if any(array.is_permuted or (has_next and array.has_gaps) for array in arrays):
        raise UnsupportedError(
            f"{trace.name}: it asks for the order of memory (order='K' or 'A', or a write through "
            f"ravel or reshape), and an array that it hands on does not lie row by row; write the "
            f"order, 'C' or 'F', or hand on a copy, x.copy()"
        )


def _own_instructions(results: Sequence[Instruction], trace: Trace) -> list[Instruction]:
    """What was recorded in ``trace`` and is needed, operands first; results always."""
    needed: set[Instruction] = set()
    stack = list(results)
    while stack:
        instruction = stack.pop()
        if instruction not in needed:
            needed.add(instruction)
            stack.extend(o for o in instruction.operands if trace.owns(o))
    return sorted(needed, key=lambda instruction: instruction.serial)


def _is_small_constant(instruction: Instruction) -> bool:
    return instruction.op is CONSTANT and instruction.array_shape.size <= 16
