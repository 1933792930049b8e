"""Turns several calls of one large computation into a loop that holds one call of it.

    a = call(p), to_apply=f         state = (0, p, 0)
    b = call(a), to_apply=f         while state.step < 2:
    r = add(a, b)                       each step computes the operands of its own call, by a
                                        Conditional, then calls f; values that are used later
                                        are state

Maps, Reduces, loops … of one computation count as calls of it. Without this pass the size of a
program whose computations call each other twice is a power of their number; with it, it is linear.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tracejit.graph import Computation, Instruction, Module
from tracejit.ops.comparison import compare
from tracejit.ops.constants import (
    CONSTANT,
    PARAMETER,
    constant,
    elements_of,
    get_tuple_element,
    parameter,
    tuple_,
)
from tracejit.ops.control import CONDITIONAL, call, conditional_indexed, while_
from tracejit.ops.elementwise import add
from tracejit.ops.layout import full
from tracejit.ops.program_size import Extents
from tracejit.shapes import AnyShape, ElementType, Shape, TupleShape
from tracejit.traversal import (
    called_computations,
    instructions,
    rebuild,
    substitute,
    transform,
)

_LARGE = 60
"""Instructions, its own calls written out, of a computation whose calls become a loop."""


def rerolled(computation: Computation) -> Computation:
    """The computation, and all that it calls, with such loops in place of such calls."""
    made: dict[Computation, Computation] = {}
    extents = Extents()
    for each in called_computations(Module("rerolled", computation)):
        renewed = _with_called(each, made)
        extents.add(renewed)
        calls = _repeated(renewed, extents)
        made[each] = _Loop(renewed, calls).computation() if calls else renewed
        extents.add(made[each])
    return made[computation]


def _with_called(computation: Computation, made: Mapping[Computation, Computation]) -> Computation:
    """The computation, which calls what was ``made`` of the others, without equal calls."""
    order = instructions(computation)
    if not any(i.computations for i in order):
        return computation
    equal: dict[object, Instruction] = {}

    def visit(instruction: Instruction, operands: tuple[Instruction, ...]) -> Instruction | None:
        if not instruction.computations:
            return None
        attributes = {k: _replaced(v, made) for k, v in instruction.attributes.items()}
        renewed = Instruction(
            instruction.op, operands, instruction.shape, attributes, instruction.source
        )
        if instruction.op is CONDITIONAL:
            renewed = _with_one_branch(renewed)
        if renewed.has_effect:
            return renewed
        return equal.setdefault((_key(renewed), renewed.operands), renewed)

    root, *effects = transform([computation.root, *computation.effects], visit)
    return Computation(computation.name, computation.parameters, root, tuple(effects))


def _with_one_branch(conditional: Instruction) -> Instruction:
    """A Conditional whose branches are all f, as f of the operand that it chooses."""
    called, *others = conditional.computations
    if any(each is not called for each in others):
        return conditional
    given = parameter(0, called.parameters[0].shape)
    same = Computation("same", (given,), given)
    attributes = {k: _replaced(v, {called: same}) for k, v in conditional.attributes.items()}
    chosen = Instruction(
        CONDITIONAL, conditional.operands, given.shape, attributes, conditional.source
    )
    return call(called, [chosen])


def _replaced(value: Any, made: Mapping[Computation, Computation]) -> Any:
    if isinstance(value, Computation):
        return made[value]
    if isinstance(value, tuple) and value and isinstance(value[0], Computation):
        return tuple(made[each] for each in value)
    return value


def _key(instruction: Instruction) -> object:
    """Equal for calls, Maps, … of one computation that differ in their operands alone."""
    shapes = tuple(operand.shape for operand in instruction.operands)
    return instruction.op, shapes, tuple(instruction.attributes.items())


def _repeated(computation: Computation, extents: Extents) -> list[Instruction]:
    """The calls of large computations that the computation calls more than once."""
    order = instructions(computation)
    if any(i.has_effect for i in order) or not all(_has_zeros(i.shape) for i in order):
        return []
    large = [i for i in order if sum(extents.size[each] for each in i.computations) >= _LARGE]
    count = Counter(map(_key, large))
    return [each for each in large if count[_key(each)] > 1]


def _has_zeros(shape: AnyShape) -> bool:
    """Whether there are zeros of a shape: of arrays of known sizes, and tuples of them."""
    if isinstance(shape, TupleShape):
        return all(map(_has_zeros, shape.elements))
    return isinstance(shape, Shape) and not shape.is_dynamic


def _zeros(shape: AnyShape) -> Instruction:
    if isinstance(shape, TupleShape):
        return tuple_([_zeros(element) for element in shape.elements])
    assert isinstance(shape, Shape)
    return full(shape, 0)


class _Loop:
    """A computation being rewritten: a segment of it before each of its ``calls``, one after all.

    ``segment`` has the number of the segment in which each value is first there.
    """

    def __init__(self, computation: Computation, calls: Sequence[Instruction]) -> None:
        self.whole = computation
        self.calls = calls
        self.callees = {_key(each): each for each in reversed(calls)}
        self.segment: dict[Instruction, int] = {}
        self._divide()
        self._stored = self._used_later()
        # The state: the number of the step and of the callee, then each array.
        self._shapes: list[AnyShape] = [Shape(ElementType.S32), Shape(ElementType.S32)]
        self._places = {value: self._new(value.shape) for value in self._stored}
        self._operands = {
            key: [self._new(operand.shape) for operand in each.operands]
            for key, each in self.callees.items()
        }
        self._results = {key: self._new(each.shape) for key, each in self.callees.items()}

    def computation(self) -> Computation:
        state = parameter(0, TupleShape(tuple(self._shapes)))
        init = [_zeros(shape) for shape in self._shapes]
        for value, place in self._places.items():
            if value.op is PARAMETER:
                init[place] = value
        left = compare(get_tuple_element(state, 0), _number(len(self.calls)), "LT")
        condition = Computation("more_calls", (state,), left)
        loop = while_(condition, self._body(), tuple_(init))
        (root,) = substitute([self.whole.root], self._known(loop, len(self.calls)))
        return Computation(self.whole.name, self.whole.parameters, root)

    def _new(self, shape: AnyShape) -> int:
        self._shapes.append(shape)
        return len(self._shapes) - 1

    def _divide(self) -> None:
        """Each value is computed before the first call that needs it."""
        for value in self.whole.parameters:
            self.segment[value] = -1
        for number, each in enumerate(self.calls):
            self._assign(each.operands, number)
            self.segment[each] = number + 1
        self._assign([self.whole.root], len(self.calls))

    def _assign(self, roots: Sequence[Instruction], number: int) -> None:
        waiting = list(roots)
        while waiting:
            value = waiting.pop()
            if value not in self.segment and value.op is not CONSTANT:
                self.segment[value] = number
                waiting.extend(value.operands)

    def _used_later(self) -> list[Instruction]:
        """The values that another segment uses than the one that computes them."""
        found: dict[Instruction, None] = {}
        for number, roots in enumerate([*(e.operands for e in self.calls), [self.whole.root]]):
            for value in self._inside(roots, number):
                if self.segment[value] < number:
                    found[value] = None
        return list(found)

    def _inside(self, roots: Sequence[Instruction], number: int) -> list[Instruction]:
        """What a segment computes and reads for its ``roots``, but for constants."""
        found: dict[Instruction, None] = {}
        waiting = list(roots)
        while waiting:
            value = waiting.pop()
            if value in found or value.op is CONSTANT:
                continue
            found[value] = None
            if self.segment[value] == number and value not in self.calls:
                waiting.extend(value.operands)
        return list(found)

    def _known(self, state: Instruction, number: int) -> dict[Instruction, Instruction]:
        """What stands in the state at the start of a segment, by the values."""
        known = {
            value: get_tuple_element(state, place)
            for value, place in self._places.items()
            if self.segment[value] < number
        }
        if number:
            before = self.calls[number - 1]
            known[before] = get_tuple_element(state, self._results[_key(before)])
        return known

    def _segment(self, number: int) -> Computation:
        """From the state to the state in which the call of that number can be made."""
        state = parameter(0, TupleShape(tuple(self._shapes)))
        called = self.calls[number]
        own = [value for value in self._stored if self.segment[value] == number]
        made = substitute([*called.operands, *own], self._known(state, number))
        places = [*self._operands[_key(called)], *(self._places[value] for value in own)]
        which = [*self.callees].index(_key(called))
        changed = {**dict(zip(places, made, strict=True)), 1: _number(which)}
        return Computation(f"before_call{number}", (state,), _with(state, changed))

    def _body(self) -> Computation:
        state = parameter(0, TupleShape(tuple(self._shapes)))
        segments = [self._segment(number) for number in range(len(self.calls))]
        step = get_tuple_element(state, 0)
        ready = conditional_indexed(step, segments, [state] * len(segments))
        if len(self.callees) == 1:
            done = self._called(ready, *self.callees)
        else:
            branches = [self._branch(key) for key in self.callees]
            which = get_tuple_element(ready, 1)
            done = conditional_indexed(which, branches, [ready] * len(branches))
        return Computation("one_call", (state,), _with(done, {0: add(step, _number(1))}))

    def _called(self, state: Instruction, key: object) -> Instruction:
        """The state after one of the callees has run."""
        operands = [get_tuple_element(state, place) for place in self._operands[key]]
        return _with(state, {self._results[key]: rebuild(self.callees[key], operands)})

    def _branch(self, key: object) -> Computation:
        state = parameter(0, TupleShape(tuple(self._shapes)))
        return Computation("called", (state,), self._called(state, key))


def _with(state: Instruction, changed: Mapping[int, Instruction]) -> Instruction:
    return tuple_([changed.get(n, element) for n, element in enumerate(elements_of(state))])


def _number(value: int) -> Instruction:
    return constant(value, ElementType.S32)
