"""Reverse mode as a pass over the graph: graph in, graph out.

    pullback([loss], [w, b], [one])     the cotangents of w and b, as instructions

Each op's rule is made of builder functions, so the result is ordinary graph and can be
differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracejit.errors import DerivativeError
from tracejit.graph import Instruction
from tracejit.ops.constants import GET_TUPLE_ELEMENT, TUPLE
from tracejit.ops.elementwise import add
from tracejit.ops.layout import full
from tracejit.rules import RuleTable
from tracejit.shapes import Shape, TupleShape
from tracejit.traversal import in_order

Cotangent = Instruction | None
Cotangents = Sequence[Cotangent]
# rule(instruction, cotangent) -> one cotangent (or None for zero) per operand. For an op whose
# result is a tuple the second argument is a sequence with one cotangent or None per element.
DifferentiateRule = Callable[..., Cotangents]

differentiate: RuleTable[DifferentiateRule] = RuleTable("differentiate")


def is_differentiable(instruction: Instruction) -> bool:
    """Whether a cotangent can belong to this value: a floating or complex array."""
    shape = instruction.shape
    return isinstance(shape, Shape) and shape.element_type.is_inexact


def zero_cotangent(shape: Shape) -> Instruction:
    """A cotangent of zeros, for rules that need every element of a tuple's."""
    return full(shape, 0)


def pullback(
    outputs: Sequence[Instruction],
    inputs: Sequence[Instruction],
    cotangents: Sequence[Cotangent],
) -> list[Cotangent]:
    """The cotangents of ``inputs`` given those of ``outputs``; None stands for zero.

    Only instructions between inputs and outputs are visited. An op on that path without a
    derivative raises `DerivativeError` naming the op and the user's line; ops that are declared
    piecewise constant end the path.
    """
    order = in_order(outputs)
    wanted = set(inputs)
    active: set[Instruction] = set()
    for instruction in order:
        if instruction in wanted or any(o in active for o in instruction.operands):
            active.add(instruction)
    if not any(output in active for output in outputs):
        return [None] * len(inputs)

    sums: dict[Instruction, Instruction] = {}
    tuples: dict[Instruction, list[Cotangent]] = {}

    def accumulate(target: Instruction, cotangent: Cotangent) -> None:
        if cotangent is None or target not in active:
            return
        if target.op is GET_TUPLE_ELEMENT:
            parts = tuples.setdefault(
                target.operands[0], [None] * len(target.operands[0].element_shapes)
            )
            index = target.attributes["index"]
            known = parts[index]
            parts[index] = cotangent if known is None else add(known, cotangent)
            return
        known = sums.get(target)
        sums[target] = cotangent if known is None else add(known, cotangent)

    for output, cotangent in zip(outputs, cotangents, strict=True):
        accumulate(output, cotangent)

    for instruction in reversed(order):
        if instruction not in active or instruction in wanted:
            continue
        if isinstance(instruction.shape, TupleShape):
            parts = tuples.pop(instruction, None)
            if parts is None:
                continue
            results = parts if instruction.op is TUPLE else _apply(instruction, parts)
        else:
            cotangent = sums.pop(instruction, None)
            if cotangent is None:
                continue
            results = _apply(instruction, cotangent)
        for operand, result in zip(instruction.operands, results, strict=True):
            if result is not None and is_differentiable(operand):
                assert result.shape == operand.shape, (
                    f"derivative of {instruction} for {operand} has shape {result.shape}"
                )
                accumulate(operand, result)
    return [sums.get(i) for i in inputs]


def _apply(instruction: Instruction, cotangent: Cotangent | Cotangents) -> Cotangents:
    rule = differentiate.get(instruction.op)
    if rule is not None:
        return rule(instruction, cotangent)
    if differentiate.reason(instruction.op) is not None:
        return [None] * len(instruction.operands)
    raise DerivativeError(f"{instruction.op.function}: has no derivative", instruction.source)
