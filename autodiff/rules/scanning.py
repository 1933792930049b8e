"""Scan: the derivative is a Scan in the other direction.

Each of its steps takes the slices and the carries that the forward step took, the cotangents of the
step's outputs, and carries the cotangents of the carries. What a forward step made on the way is
kept if a contraction, a loop or the like went into it, or if it is a small part of a carry, and
computed again if not. The carries and what else is kept come from a Scan with more outputs, which
compilers join with the first one. A carry that no step changes (a value from outside) is not kept
at every step.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tracejit.autodiff.composition import pullback_through
from tracejit.autodiff.intervals import knowing, range_of, ranges_of_state, times
from tracejit.autodiff.leaves import refilled
from tracejit.autodiff.reverse import (
    Cotangent,
    Cotangents,
    differentiate,
    is_differentiable,
    is_wanted,
    pullback,
    zero_cotangent,
)
from tracejit.errors import DerivativeError
from tracejit.graph import Computation, Instruction
from tracejit.ops.constants import (
    GET_TUPLE_ELEMENT,
    PARAMETER,
    elements_of,
    parameter,
    tuple_,
)
from tracejit.ops.control import OPTIMIZATION_BARRIER, WHILE
from tracejit.ops.dimensions import moved
from tracejit.ops.indexing import GATHER, SCATTER
from tracejit.ops.layout import DYNAMIC_SLICE, DYNAMIC_UPDATE_SLICE, SLICE
from tracejit.ops.scanning import SCAN, scan, scan_length
from tracejit.shapes import Shape
from tracejit.traversal import in_order, substitute

# The families of ops whose results are kept.
_COSTLY = (
    *("contraction", "control", "custom", "grouped", "linalg", "reduction", "scanning"),
    *("spectra", "windows"),
)
# Ops that read a part of an array, and those that write into one; what a small part is.
_READING = (DYNAMIC_SLICE, GATHER, SLICE)
_WRITING = (DYNAMIC_UPDATE_SLICE, SCATTER)
_SMALL = 4

Pair = tuple[Instruction, Instruction]


@differentiate.attach(SCAN)
def scan_rule(instruction: Instruction, cotangent: Cotangents) -> Cotangents:
    if instruction.attributes["dimensions"] != (0,):
        return pullback_through(
            lambda *operands: _leading(instruction, operands), instruction.operands, cotangent
        )
    return Reversed(instruction, cotangent).cotangents()


def _leading(instruction: Instruction, operands: Sequence[Instruction]) -> list[Instruction]:
    """The results of a Scan, through one over the first dimension."""
    attributes = instruction.attributes
    (dimension,) = attributes["dimensions"]
    carried = attributes["num_carries"]
    count = len(operands) - carried
    made = scan(
        [moved(o, dimension, 0) for o in operands[:count]],
        operands[count:],
        attributes["to_apply"],
        is_reverse=attributes["is_reverse"],
        length=scan_length(instruction),
    )
    results = elements_of(made)
    stacked = len(results) - carried
    return [*(moved(r, 0, dimension) for r in results[:stacked]), *results[stacked:]]


@dataclass(frozen=True)
class _Backward:
    """One step back: cotangents of the slices and carries, from ``outputs`` and ``carries``.

    These are the parameters for the cotangents of the step's results, or None.
    """

    outputs: Sequence[Cotangent]
    carries: Sequence[Cotangent]
    of_slices: Sequence[Cotangent]
    of_carries: Sequence[Cotangent]


class Reversed:
    """A Scan taken apart, and put together again as the Scan that goes back."""

    def __init__(self, instruction: Instruction, arriving: Sequence[Cotangent]) -> None:
        self.instruction = instruction
        self.step: Computation = instruction.attributes["to_apply"]
        carried = instruction.attributes["num_carries"]
        self.count = len(instruction.operands) - carried
        self.slices = self.step.parameters[: self.count]
        self.carries = self.step.parameters[self.count :]
        results = elements_of(self.step.root)
        self.stacked = len(results) - carried
        self.outputs, self.next = results[: self.stacked], results[self.stacked :]
        self.inputs = instruction.operands[: self.count]
        self.inits = instruction.operands[self.count :]
        self.of_outputs = arriving[: self.stacked]
        self.of_finals = arriving[self.stacked :]
        self.length = scan_length(instruction)

    def cotangents(self) -> list[Cotangent]:
        """The cotangents of the Scan's operands."""
        ranges = ranges_of_state(self.carries, self.next, self.inits, self.length)
        for part, array in zip(self.slices, self.inputs, strict=True):
            known = range_of(array)
            if known is not None:
                ranges[part] = known
        moving = [c for c, after in zip(self.carries, self.next, strict=True) if c is not after]
        with knowing(ranges, self._times(), [*self.slices, *moving]):
            return self._cotangents()

    def _cotangents(self) -> list[Cotangent]:
        back, residuals = self._with_residuals(self._fixpoint())
        wanted = [c for c in (*back.of_slices, *back.of_carries) if c is not None]
        if not wanted:
            return [None] * len(self.instruction.operands)
        if any(c.reaches_effect for c in wanted):
            raise DerivativeError(
                "scan: has no derivative here, because computing it would repeat the side effect "
                "of an op that it calls",
                self.instruction.source,
            )
        needed = set(in_order(wanted))
        fixed = [self.next[i] is c for i, c in enumerate(self.carries)]
        kept = [c for c, same in zip(self.carries, fixed, strict=True) if c in needed and not same]
        constant = [
            (c, init)
            for c, init, same in zip(self.carries, self.inits, fixed, strict=True)
            if c in needed and same
        ]
        used = [
            (s, array) for s, array in zip(self.slices, self.inputs, strict=True) if s in needed
        ]
        given = [
            (p, c)
            for p, c in zip(back.outputs, self.of_outputs, strict=True)
            if p is not None and c is not None
        ]
        made_before = self._history([*kept, *residuals])
        history = zip([*kept, *residuals.values()], made_before, strict=True)
        inputs = [*used, *history, *given]
        states = [
            (p, zero_cotangent(p.array_shape) if c is None else c)
            for p, c in zip(back.carries, self.of_finals, strict=True)
            if p is not None
        ]
        following = [
            zero_cotangent(p.array_shape) if c is None else c
            for p, c in zip(back.carries, back.of_carries, strict=True)
            if p is not None
        ]
        of_slices = [c for c in back.of_slices if c is not None]
        root = tuple_([*of_slices, *following, *(c for c, _ in constant)])
        results = iter(self._backwards(inputs, [*states, *constant], root))
        of_inputs = [None if c is None else next(results) for c in back.of_slices]
        return [*of_inputs, *(None if p is None else next(results) for p in back.carries)]

    def _backwards(
        self, inputs: Sequence[Pair], states: Sequence[Pair], root: Instruction
    ) -> Sequence[Instruction]:
        """The results of a loop of backward steps.

        Each step returns the tuple ``root``. ``inputs`` are pairs of a parameter for an array's
        slice and the array, ``states`` pairs of a parameter for a carry and its first value.
        """
        made = scan(
            [array for _, array in inputs],
            [value for _, value in states],
            _closed(f"{self.step.name}_gradient", [p for p, _ in (*inputs, *states)], root),
            is_reverse=not self.instruction.attributes["is_reverse"],
            length=self.length,
        )
        return elements_of(made)

    def _with_residuals(self, back: _Backward) -> tuple[_Backward, dict[Instruction, Instruction]]:
        """The step back, with parameters in place of the values that are kept for it."""
        wanted = [c for c in (*back.of_slices, *back.of_carries) if c is not None]
        moving = [c for c, after in zip(self.carries, self.next, strict=True) if c is not after]
        worth = _worth_keeping(self.step, [*self.slices, *moving], wanted, self._divided(wanted))
        kept = {value: _like(value) for value in worth}
        made = substitute(wanted, kept)
        every = [*back.of_slices, *back.of_carries]
        results = refilled(every, iter(made))
        return (
            replace(back, of_slices=results[: self.count], of_carries=results[self.count :]),
            kept,
        )

    def _times(self) -> int:
        """How often a loop around and this one keep what a step does."""
        return times() * self.length

    def _divided(self, wanted: Sequence[Instruction]) -> Sequence[Instruction]:
        """Carries that no step changes, with parts that are kept nevertheless."""
        return ()

    def _fixpoint(self) -> _Backward:
        """One step back, with a cotangent for every carry that one can reach."""
        # The cotangent of a carry that no step changes goes nowhere else.
        useful = [
            before is not after or is_wanted(init)
            for before, after, init in zip(self.carries, self.next, self.inits, strict=True)
        ]
        given = zip(self.of_finals, useful, strict=True)
        active = [c is not None and use for c, use in given]
        while True:
            back = self._backward(active, useful)
            reached = [
                known or c is not None for known, c in zip(active, back.of_carries, strict=True)
            ]
            if reached == active:
                return back
            active = reached

    def _backward(self, active: Sequence[bool], useful: Sequence[bool]) -> _Backward:
        outputs: list[Cotangent] = [
            None if c is None else _like(o)
            for c, o in zip(self.of_outputs, self.outputs, strict=True)
        ]
        carries: list[Cotangent] = [
            _like(c) if carries_on and is_differentiable(c) else None
            for carries_on, c in zip(active, self.carries, strict=True)
        ]
        asked = [
            *(s for s, operand in zip(self.slices, self.inputs, strict=True) if is_wanted(operand)),
            *(c for c, use in zip(self.carries, useful, strict=True) if use),
        ]
        found = pullback([*self.outputs, *self.next], asked, [*outputs, *carries])
        results = dict(zip(asked, found, strict=True))
        return _Backward(
            outputs,
            carries,
            [results.get(s) for s in self.slices],
            [results.get(c) for c in self.carries],
        )

    def _history(self, kept: Sequence[Instruction]) -> Iterator[Instruction]:
        """What each of these carries was at every step, stacked."""
        if not kept:
            return iter(())
        attributes = self.instruction.attributes
        root = tuple_([*self.outputs, *kept, *self.next])
        step = Computation(self.step.name, self.step.parameters, root)
        made = scan(
            self.inputs,
            self.inits,
            step,
            is_reverse=attributes["is_reverse"],
            is_associative=attributes["is_associative"],
            length=self.length,
        )
        return iter(elements_of(made)[self.stacked : self.stacked + len(kept)])


def _worth_keeping(
    step: Computation,
    moving: Sequence[Instruction],
    wanted: Sequence[Instruction],
    divided: Sequence[Instruction],
) -> list[Instruction]:
    """The values of a step that its derivative reads and that cost more than they take to keep.

    What does not depend on the parameters that are ``moving`` is the same in all steps; but parts
    of those that are ``divided`` are kept as well.
    """
    forward = {*in_order([step.root]), *_forward_loops(step, wanted)}
    read: dict[Instruction, None] = {}
    for instruction in in_order(wanted):
        if instruction.op is GET_TUPLE_ELEMENT and instruction.operands[0] in forward:
            forward.add(instruction)
        if instruction not in forward:
            read.update(dict.fromkeys(o for o in instruction.operands if o in forward))
    varying, costly = set(moving), set[Instruction]()
    for instruction in in_order([step.root, *read]):
        if not any(operand in varying for operand in instruction.operands):
            continue
        varying.add(instruction)
        if instruction.op.family in _COSTLY or any(o in costly for o in instruction.operands):
            costly.add(instruction)
    kept = [v for v in read if v in costly and isinstance(v.shape, Shape) and not v.reaches_effect]
    return [*kept, *small_parts(wanted, [*moving, *divided], forward, kept)]


def small_parts(
    wanted: Sequence[Instruction],
    moving: Sequence[Instruction],
    forward: Collection[Instruction],
    kept: Sequence[Instruction] = (),
) -> list[Instruction]:
    """What a step reads of great arrays that it writes into: kept, so that those need not be."""
    found: dict[Instruction, None] = {}
    seen, stack = {*kept}, [*wanted]
    while stack:
        instruction = stack.pop()
        if instruction in seen:
            continue
        seen.add(instruction)
        if instruction in forward and _is_small_part(instruction, moving):
            found[instruction] = None
        else:
            stack.extend(instruction.operands)
    return list(found)


def _is_small_part(instruction: Instruction, moving: Sequence[Instruction]) -> bool:
    if instruction.op not in _READING:
        return False
    array = instruction.operands[0]
    if instruction.array_shape.size * _SMALL > array.array_shape.size:
        return False
    while array.op in _WRITING:
        array = array.operands[0]
    return array in moving


def _forward_loops(step: Computation, wanted: Sequence[Instruction]) -> list[Instruction]:
    """Loops of the derivative that no cotangent goes into, and all that they need.

    Not what stands behind a barrier, which is there to have it computed again.
    """
    late: set[Instruction] = set()
    found = []
    for instruction in in_order(wanted):
        is_cotangent = instruction.op is PARAMETER and instruction not in step.parameters
        if is_cotangent or instruction.op is OPTIMIZATION_BARRIER:
            late.add(instruction)
        elif not late.isdisjoint(instruction.operands):
            late.add(instruction)
        elif instruction.op is WHILE:
            found.append(instruction)
    return in_order(found)


def _like(value: Instruction) -> Instruction:
    """A parameter for a cotangent; `_closed` numbers it."""
    return parameter(0, value.shape)


def _closed(name: str, parameters: Sequence[Instruction], root: Instruction) -> Computation:
    """The computation of ``parameters``, numbered in this order."""
    fresh = [parameter(i, p.shape) for i, p in enumerate(parameters)]
    replacements: Mapping[Instruction, Instruction] = dict(zip(parameters, fresh, strict=True))
    (new,) = substitute([root], replacements)
    return Computation(name, tuple(fresh), new)
