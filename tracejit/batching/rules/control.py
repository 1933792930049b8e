"""Call, Map, Conditional, While: their computations are batched. OptimizationBarrier."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.batching.batch import (
    Batched,
    any_of,
    batch,
    batch_computation,
    batched_shape,
    batching,
    stretch,
    uniform,
    union,
)
from tracejit.batching.derivative import BatchedDerivative
from tracejit.batching.passing import passed_on
from tracejit.batching.predication import may_run_on, predicated
from tracejit.errors import UnsupportedError
from tracejit.graph import Computation, Instruction
from tracejit.ops.base import make
from tracejit.ops.comparison import eq
from tracejit.ops.constants import constant, elements_of, parameter, tuple_
from tracejit.ops.control import (
    CALL,
    CONDITIONAL,
    MAP,
    OPTIMIZATION_BARRIER,
    WHILE,
    call,
    while_,
)
from tracejit.ops.elementwise import and_, select
from tracejit.ops.elementwise_unary import not_
from tracejit.ops.layout import broadcast_in_dim, full
from tracejit.ops.lifting import applied_to_elements
from tracejit.ops.reduction import reduce_or
from tracejit.shapes import ElementType, TupleShape

batching.attach(OPTIMIZATION_BARRIER)(passed_on)


@batching.attach(CALL)
def call_rule(instruction: Instruction, operands: Sequence[Batched], size: int) -> Batched:
    flags = [operand.flag for operand in operands]
    computation, flag = batch_computation(instruction.attributes["to_apply"], flags, size)
    values = [operand.value for operand in operands]
    derivative = instruction.attributes["derivative"]
    if derivative is not None:
        derivative = BatchedDerivative(instruction, flags, flag, size)
    return Batched(call(computation, values, derivative), flag)


@batching.attach(MAP)
def map_rule(instruction: Instruction, operands: Sequence[Batched], size: int) -> Instruction:
    values = [operand.stretched(size) for operand in operands]
    (made,) = applied_to_elements(instruction.attributes["to_apply"], values)
    return made


@batching.attach(CONDITIONAL)
def conditional_rule(
    instruction: Instruction, operands: Sequence[Batched], size: int
) -> Batched | Instruction:
    selector, *arguments = operands
    if selector.is_batched:
        return _chosen(instruction, operands, size)
    made = [
        batch_computation(branch, [argument.flag], size)
        for branch, argument in zip(instruction.computations, arguments, strict=True)
    ]
    flag = made[0][1]
    for _, other in made[1:]:
        flag = union(flag, other)
    branches = [
        Computation(c.name, c.parameters, stretch(c.root, own, flag, size), c.effects)
        for c, own in made
    ]
    values = [selector.value, *(argument.value for argument in arguments)]
    if selector.value.array_shape.element_type is ElementType.PRED:
        on_true, on_false = branches
        result = make(CONDITIONAL, *values, true_computation=on_true, false_computation=on_false)
    else:
        result = make(CONDITIONAL, *values, branch_computations=tuple(branches))
    return Batched(result, flag)


def _chosen(instruction: Instruction, operands: Sequence[Batched], size: int) -> Instruction:
    """Every branch runs, and each element of the batch takes the result of its own."""
    selector, *arguments = operands
    require_no_effect(instruction)
    masks = _masks(selector.value, len(arguments))
    results = []
    for branch, argument, mask in zip(instruction.computations, arguments, masks, strict=True):
        results.append(_run_under(mask, branch, argument, size).stretched(size))
    *others, chosen = results
    for mask, result in zip(masks, others, strict=False):
        chosen = select_rows(mask, result, chosen)
    return chosen


def _masks(selector: Instruction, count: int) -> list[Instruction]:
    """For each branch the elements of the batch that take it, the last of those out of range."""
    if selector.array_shape.element_type is ElementType.PRED:
        return [selector, not_(selector)]
    size = selector.array_shape.dimensions
    numbers = [constant(number, ElementType.S32) for number in range(count - 1)]
    masks = [eq(selector, broadcast_in_dim(number, size, ())) for number in numbers]
    rest = full(selector.array_shape.with_element_type(ElementType.PRED), True)
    for mask in masks:
        rest = and_(rest, not_(mask))
    return [*masks, rest]


def _run_under(
    mask: Instruction, computation: Computation, argument: Batched, size: int
) -> Batched:
    """A computation for the whole batch, its loops for the elements of ``mask`` only."""
    known = {computation.parameters[0]: argument}
    if may_run_on(computation):
        computation = predicated(computation)
        known[computation.parameters[1]] = Batched(mask, True)
    (made,) = batch([computation.root], known, size)
    return made


def require_no_effect(instruction: Instruction) -> None:
    """Raises for an effect that would happen to elements of the batch that do not ask for it."""
    if instruction.has_effect:
        raise UnsupportedError(
            f"{instruction.op.function}: cannot be batched, because what it runs has a side effect "
            "and would run for every element of the batch",
            instruction.source,
        )


def select_rows(predicate: Instruction, on_true: Instruction, on_false: Instruction) -> Instruction:
    """Rows of one or the other, as ``predicate``, pred[batch], says; of tuples too."""
    if isinstance(on_true.shape, TupleShape):
        pairs = zip(elements_of(on_true), elements_of(on_false), strict=True)
        return tuple_([select_rows(predicate, a, b) for a, b in pairs])
    wide = broadcast_in_dim(predicate, on_true.array_shape.dimensions, (0,))
    return select(wide, on_true, on_false)


@batching.attach(WHILE)
def while_rule(instruction: Instruction, operands: Sequence[Batched], size: int) -> Batched:
    """The loop runs as often as the longest needs; who has finished keeps its values."""
    condition, body = instruction.computations
    (init,) = operands
    flag = init.flag
    while True:
        step, made = batch_computation(body, [flag], size)
        found = union(flag, made)
        test, going_flag = batch_computation(condition, [found], size)
        own = any_of(going_flag)
        if own:
            found = uniform(instruction.shape, True)
        if found == flag:
            break
        flag = found
    start = stretch(init.value, init.flag, flag, size)
    if not own:
        stretched = stretch(step.root, made, flag, size)
        step = Computation(step.name, step.parameters, stretched, step.effects)
        return Batched(while_(test, step, start), flag)
    require_no_effect(instruction)
    shape = batched_shape(instruction.shape, flag, size)
    state = parameter(0, shape)
    given = Batched(state, flag)
    running = Computation(f"{condition.name}_any", test.parameters, reduce_or(test.root))
    (going,) = batch([condition.root], {condition.parameters[0]: given}, size)
    moved = _run_under(going.stretched(size), body, given, size)
    following = select_rows(going.value, moved.stretched(size), state)
    step = Computation(f"{body.name}_batched", (state,), following)
    return Batched(while_(running, step, start), flag)
