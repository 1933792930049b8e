"""Loops under a mask: what a batch runs for all, must end for those that do not ask for it.

predicated(branch)      with one more parameter, pred[]: where it is false, loops take no step

All branches of a Conditional run where elements of a batch choose differently, and the body of a
While runs until the last element is done. A loop in there could run forever for an element that
should not be there at all.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.graph import Computation, Instruction
from tracejit.ops.base import make
from tracejit.ops.comparison import COMPARE, eq
from tracejit.ops.constants import (
    CONSTANT,
    GET_TUPLE_ELEMENT,
    TUPLE,
    constant,
    get_tuple_element,
    parameter,
    tuple_,
)
from tracejit.ops.control import CALL, CONDITIONAL, WHILE, call
from tracejit.ops.elementwise import ADD, and_, or_
from tracejit.ops.elementwise_unary import not_
from tracejit.shapes import ElementType, Shape
from tracejit.traversal import inline, instructions, transform

_CALLS = (CALL, CONDITIONAL, WHILE)


def may_run_on(computation: Computation) -> bool:
    """Whether the computation has a loop whose number of steps depends on what it is given."""
    todo, seen = [computation], {computation}
    while todo:
        for instruction in instructions(todo.pop()):
            if _is_unbounded(instruction):
                return True
            if instruction.op in _CALLS:
                new = [c for c in instruction.computations if c not in seen]
                todo += new
                seen.update(new)
    return False


def predicated(computation: Computation) -> Computation:
    """The computation with a predicate as its last parameter, without which no loop takes a step.

    What it returns where the predicate is false has no meaning.
    """
    active = parameter(len(computation.parameters), Shape(ElementType.PRED))

    def visit(instruction: Instruction, operands: tuple[Instruction, ...]) -> Instruction | None:
        if instruction.op not in _CALLS:
            return None
        if not _is_unbounded(instruction) and not any(map(may_run_on, instruction.computations)):
            return None
        if instruction.op is CALL:
            return call(predicated(instruction.attributes["to_apply"]), [*operands, active])
        if instruction.op is CONDITIONAL:
            return _conditional(instruction, operands, active)
        return _while(instruction, operands[0], active)

    (root,) = transform([computation.root], visit)
    name = f"{computation.name}_predicated"
    return Computation(name, (*computation.parameters, active), root)


def with_predicate(computation: Computation) -> Computation:
    """`predicated`, its one argument and the predicate in a tuple."""
    (given,) = computation.parameters
    shape = tuple_([given, parameter(1, Shape(ElementType.PRED))]).shape
    both = parameter(0, shape)
    made = predicated(computation)
    root = inline(made, [get_tuple_element(both, 0), get_tuple_element(both, 1)])
    return Computation(made.name, (both,), root)


def _conditional(
    instruction: Instruction, operands: Sequence[Instruction], active: Instruction
) -> Instruction:
    selector, *arguments = operands
    branches = [with_predicate(branch) for branch in instruction.computations]
    if selector.array_shape.element_type is ElementType.PRED:
        chosen = [selector, not_(selector)]
    else:
        chosen = [eq(selector, constant(n, ElementType.S32)) for n in range(len(branches) - 1)]
        others = constant(False, ElementType.PRED)
        for choice in chosen:
            others = or_(others, choice)
        chosen.append(not_(others))
    given = [tuple_([a, and_(active, c)]) for a, c in zip(arguments, chosen, strict=True)]
    if selector.array_shape.element_type is ElementType.PRED:
        on_true, on_false = branches
        return make(
            CONDITIONAL, selector, *given, true_computation=on_true, false_computation=on_false
        )
    return make(CONDITIONAL, selector, *given, branch_computations=tuple(branches))


def _while(instruction: Instruction, init: Instruction, active: Instruction) -> Instruction:
    """The loop with the predicate in its state; loops in its body run while it does itself."""
    condition, body = instruction.computations
    start = tuple_([init, active])
    state = parameter(0, start.shape)
    own, on = get_tuple_element(state, 0), get_tuple_element(state, 1)
    test = Computation(condition.name, (state,), and_(inline(condition, [own]), on))
    if may_run_on(body):
        following = inline(predicated(body), [own, test.root])
    else:
        following = inline(body, [own])
    step = Computation(body.name, (state,), tuple_([following, on]))
    return get_tuple_element(make(WHILE, start, condition=test, body=step), 0)


def _is_unbounded(instruction: Instruction) -> bool:
    return instruction.op is WHILE and not _is_counted(instruction)


def _is_counted(instruction: Instruction) -> bool:
    """Whether a While counts a number from a constant by a constant up to a constant."""
    condition, body = instruction.computations
    (init,), test = instruction.operands, condition.root
    if test.op is not COMPARE or body.root.op is not TUPLE or init.op is not TUPLE:
        return False
    counter, limit = test.operands
    if limit.op is not CONSTANT or counter.op is not GET_TUPLE_ELEMENT:
        return False
    if counter.operands != condition.parameters:
        return False
    number: int = counter.attributes["index"]
    start, following = init.operands[number], body.root.operands[number]
    if start.op is not CONSTANT or following.op is not ADD:
        return False
    here = [o for o in following.operands if o.op is GET_TUPLE_ELEMENT]
    by = [o for o in following.operands if o.op is CONSTANT]
    return (
        len(here) == len(by) == 1
        and here[0].operands == body.parameters
        and here[0].attributes["index"] == number
    )
