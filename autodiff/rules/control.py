"""Call, Map, Conditional, While and OptimizationBarrier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from tracejit.autodiff.bounded_loops import bounded_cotangents
from tracejit.autodiff.checkpointed_while import while_cotangent
from tracejit.autodiff.composition import pullback_through
from tracejit.autodiff.leaves import assembled, flat, leaves, nested, refilled, wanted_leaves
from tracejit.autodiff.reverse import (
    Cotangent,
    Cotangents,
    Found,
    Nested,
    differentiate,
    pullback,
    zero_cotangent,
)
from tracejit.autodiff.rules.scanning import scan_rule
from tracejit.autodiff.trip_count import as_counted, as_scan
from tracejit.errors import DerivativeError
from tracejit.graph import Computation, Instruction
from tracejit.ops.constants import elements_of, parameter, tuple_
from tracejit.ops.control import (
    CALL,
    CONDITIONAL,
    MAP,
    OPTIMIZATION_BARRIER,
    WHILE,
    call,
    conditional,
    conditional_indexed,
    map_,
)
from tracejit.ops.lifting import lift, straightened
from tracejit.shapes import ElementType
from tracejit.traversal import inline


def _backward(
    computation: Computation, inputs: Sequence[Instruction], arriving: Sequence[Cotangent]
) -> list[Cotangent]:
    """The cotangents of the computation's parameters, given as leaves, from those of its root."""
    left = iter(inputs)
    root = inline(computation, [assembled(p.shape, left) for p in computation.parameters])
    return pullback(leaves(root), inputs, arriving)


def _only(results: Sequence[Cotangent], wanted: Sequence[bool]) -> list[Cotangent]:
    return [r if w else None for r, w in zip(results, wanted, strict=True)]


def _require_no_effect(instruction: Instruction, results: Sequence[Cotangent]) -> None:
    """Raises unless the cotangents are made without doing a side effect a second time."""
    if any(result is not None and result.reaches_effect for result in results):
        raise DerivativeError(
            f"{instruction.op.function}: has no derivative here, because computing it would repeat "
            "the side effect of an op that it calls",
            instruction.source,
        )


@differentiate.attach(CALL)
def call_rule(instruction: Instruction, cotangent: Nested) -> Sequence[Found]:
    own = instruction.attributes["derivative"]
    if own is not None:
        return own(instruction, cotangent)  # type: ignore[no-any-return]
    return pullback_of_call(instruction, instruction.attributes["to_apply"], cotangent)


def pullback_of_call(
    instruction: Instruction, computation: Computation, cotangent: Nested
) -> Sequence[Nested]:
    """The operands' cotangents where ``instruction`` is ``computation`` applied to them."""
    arriving = flat(computation.root.shape, cotangent)
    given = [c for c in arriving if c is not None]
    arguments = [*[leaf for o in instruction.operands for leaf in leaves(o)], *given]
    parameters = tuple(parameter(i, a.shape) for i, a in enumerate(arguments))
    count = len(arguments) - len(given)
    made_of = _backward(
        computation, parameters[:count], refilled(arriving, iter(parameters[count:]))
    )
    results = _only(made_of, [w for o in instruction.operands for w in wanted_leaves(o)])
    _require_no_effect(instruction, results)
    reached = [r for r in results if r is not None]
    if not reached:
        return [None] * len(instruction.operands)
    gradient = Computation(f"{computation.name}_gradient", parameters, tuple_(reached))
    made = iter(refilled(results, iter(elements_of(call(gradient, arguments)))))
    return [nested(o.shape, made) for o in instruction.operands]


@differentiate.attach(CONDITIONAL)
def conditional_rule(instruction: Instruction, cotangent: Nested) -> Sequence[Nested]:
    """Another Conditional, whose branch returns its own operand's cotangents and zeros for others'.

    Its operands are those of the first one, each in a tuple with the result's cotangents.
    """
    selector, *operands = instruction.operands
    arriving = flat(instruction.shape, cotangent)
    given = [c for c in arriving if c is not None]
    arguments = [tuple_([*leaves(operand), *given]) for operand in operands]
    parameters = [parameter(0, argument.shape) for argument in arguments]
    results = []
    for branch, operand, argument in zip(
        instruction.computations, operands, parameters, strict=True
    ):
        parts = elements_of(argument)
        count = len(parts) - len(given)
        found = _backward(branch, parts[:count], refilled(arriving, iter(parts[count:])))
        results.append(_only(found, wanted_leaves(operand)))
    _require_no_effect(instruction, [r for part in results for r in part])
    if all(r is None for part in results for r in part):
        return [None] * len(instruction.operands)
    gradients = []
    for number, (branch, argument) in enumerate(
        zip(instruction.computations, parameters, strict=True)
    ):
        root = tuple_(
            [
                reached if number == owner else zero_cotangent(reached.array_shape)
                for owner, part in enumerate(results)
                for reached in part
                if reached is not None
            ]
        )
        gradients.append(Computation(f"{branch.name}_gradient", (argument,), root))
    if selector.array_shape.element_type is ElementType.PRED:
        chosen = conditional(selector, arguments[0], gradients[0], arguments[1], gradients[1])
    else:
        chosen = conditional_indexed(selector, gradients, arguments)
    values = iter(elements_of(chosen))
    filled = [iter(refilled(part, values)) for part in results]
    return [None, *(nested(o.shape, f) for o, f in zip(operands, filled, strict=True))]


@differentiate.attach(OPTIMIZATION_BARRIER)
def optimization_barrier(instruction: Instruction, cotangent: Nested) -> Sequence[Nested]:
    return [cotangent]


@differentiate.attach(MAP)
def map_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    """Through elementwise ops where that is possible, else a Map of the computation's gradient."""
    computation: Computation = instruction.attributes["to_apply"]
    if straightened(computation) is not None:
        return pullback_through(
            lambda *operands: [lift(computation, operands)], instruction.operands, [cotangent]
        )
    arriving = parameter(len(computation.parameters), computation.root.shape)
    parameters = (*computation.parameters, arriving)
    found = pullback([computation.root], computation.parameters, [arriving])
    _require_no_effect(instruction, found)
    return [
        None
        if each is None
        else map_(
            [*instruction.operands, cotangent],
            Computation(f"{computation.name}_gradient_{number}", parameters, each),
        )
        for number, each in enumerate(found)
    ]


@differentiate.attach(WHILE)
def while_rule(instruction: Instruction, cotangent: Nested) -> Sequence[Nested]:
    def kept(arriving: Sequence[Cotangent], nbytes: int) -> Sequence[Cotangent] | None:
        loop = as_counted(instruction)
        if loop is None:
            return None
        made = as_scan(loop, nbytes)
        if made is None:
            return bounded_cotangents(loop, arriving, nbytes)
        found = cast(Cotangents, scan_rule(made, arriving))
        # In front is what tells a Scan how many steps there are.
        return found[len(found) - len(arriving) :]

    return [while_cotangent(instruction, cotangent, kept)]
