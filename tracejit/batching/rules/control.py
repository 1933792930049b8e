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
from tracejit.ops.elementwise import select
from tracejit.ops.layout import broadcast_in_dim
from tracejit.ops.lifting import lift
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
    return lift(instruction.attributes["to_apply"], values)


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
    results = []
    for branch, argument in zip(instruction.computations, arguments, strict=True):
        (root,) = batch([branch.root], {branch.parameters[0]: argument}, size)
        results.append(root.stretched(size))
    if selector.value.array_shape.element_type is ElementType.PRED:
        return select_rows(selector.value, results[0], results[1])
    # An index out of range takes the last branch.
    *others, chosen = results
    for number, result in enumerate(others):
        here = broadcast_in_dim(constant(number, ElementType.S32), (size,), ())
        chosen = select_rows(eq(selector.value, here), result, chosen)
    return chosen


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
    (moved,) = batch([body.root], {body.parameters[0]: given}, size)
    following = select_rows(going.value, moved.stretched(size), state)
    step = Computation(f"{body.name}_batched", (state,), following)
    return Batched(while_(running, step, start), flag)
