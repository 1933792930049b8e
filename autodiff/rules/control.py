"""Call, Map, Conditional, While and OptimizationBarrier."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracejit.autodiff.composition import pullback_through
from tracejit.autodiff.reverse import (
    Cotangent,
    Cotangents,
    Found,
    Nested,
    differentiate,
    pullback,
    zero_cotangent,
)
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
)
from tracejit.ops.lifting import lift
from tracejit.shapes import AnyShape, ElementType, TupleShape
from tracejit.traversal import inline

# Operands and results of computations may be tuples, also of tuples. Their arrays, in order, are
# their leaves; cotangents are passed leaf by leaf.


def _leaf_shapes(shape: AnyShape) -> list[AnyShape]:
    if not isinstance(shape, TupleShape):
        return [shape]
    return [leaf for element in shape.elements for leaf in _leaf_shapes(element)]


def _leaves(value: Instruction) -> list[Instruction]:
    if not isinstance(value.shape, TupleShape):
        return [value]
    return [leaf for element in elements_of(value) for leaf in _leaves(element)]


def _assembled(shape: AnyShape, leaves: Iterator[Instruction]) -> Instruction:
    """The value of ``shape`` made of the next leaves."""
    if not isinstance(shape, TupleShape):
        return next(leaves)
    return tuple_([_assembled(element, leaves) for element in shape.elements])


def _flat(shape: AnyShape, cotangent: Nested) -> list[Cotangent]:
    if cotangent is None:
        return [None] * len(_leaf_shapes(shape))
    if isinstance(cotangent, Instruction):
        return [cotangent]
    assert isinstance(shape, TupleShape)
    pairs = zip(shape.elements, cotangent, strict=True)
    return [leaf for element, part in pairs for leaf in _flat(element, part)]


def _nested(shape: AnyShape, leaves: Iterator[Cotangent]) -> Nested:
    if not isinstance(shape, TupleShape):
        return next(leaves)
    return [_nested(element, leaves) for element in shape.elements]


def _backward(
    computation: Computation, inputs: Sequence[Instruction], arriving: Sequence[Cotangent]
) -> list[Cotangent]:
    """The cotangents of the computation's parameters, given as leaves, from those of its root."""
    left = iter(inputs)
    root = inline(computation, [_assembled(p.shape, left) for p in computation.parameters])
    return pullback(_leaves(root), inputs, arriving)


def _refilled(pattern: Sequence[Cotangent], values: Iterator[Instruction]) -> list[Cotangent]:
    """``values`` where the pattern is not None."""
    return [None if entry is None else next(values) for entry in pattern]


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
    arriving = _flat(computation.root.shape, cotangent)
    given = [c for c in arriving if c is not None]
    arguments = [*[leaf for o in instruction.operands for leaf in _leaves(o)], *given]
    parameters = tuple(parameter(i, a.shape) for i, a in enumerate(arguments))
    count = len(arguments) - len(given)
    results = _backward(
        computation, parameters[:count], _refilled(arriving, iter(parameters[count:]))
    )
    _require_no_effect(instruction, results)
    reached = [r for r in results if r is not None]
    if not reached:
        return [None] * len(instruction.operands)
    gradient = Computation(f"{computation.name}_gradient", parameters, tuple_(reached))
    leaves = iter(_refilled(results, iter(elements_of(call(gradient, arguments)))))
    return [_nested(o.shape, leaves) for o in instruction.operands]


@differentiate.attach(CONDITIONAL)
def conditional_rule(instruction: Instruction, cotangent: Nested) -> Sequence[Nested]:
    """Another Conditional, whose branch returns its own operand's cotangents and zeros for others'.

    Its operands are those of the first one, each in a tuple with the result's cotangents.
    """
    selector, *operands = instruction.operands
    arriving = _flat(instruction.shape, cotangent)
    given = [c for c in arriving if c is not None]
    arguments = [tuple_([*_leaves(operand), *given]) for operand in operands]
    parameters = [parameter(0, argument.shape) for argument in arguments]
    results = []
    for branch, argument in zip(instruction.computations, parameters, strict=True):
        leaves = elements_of(argument)
        count = len(leaves) - len(given)
        results.append(_backward(branch, leaves[:count], _refilled(arriving, iter(leaves[count:]))))
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
    filled = [iter(_refilled(part, values)) for part in results]
    return [None, *(_nested(o.shape, f) for o, f in zip(operands, filled, strict=True))]


@differentiate.attach(OPTIMIZATION_BARRIER)
def optimization_barrier(instruction: Instruction, cotangent: Nested) -> Sequence[Nested]:
    return [cotangent]


@differentiate.attach(MAP)
def map_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    computation = instruction.attributes["to_apply"]
    return pullback_through(
        lambda *operands: [lift(computation, operands)], instruction.operands, [cotangent]
    )


@differentiate.attach(WHILE)
def while_rule(instruction: Instruction, cotangent: Nested) -> Sequence[Nested]:
    raise DerivativeError(
        "while: has no derivative, because how often it runs is known only while running",
        instruction.source,
    )
