"""Reverse mode as a pass over the graph: graph in, graph out.

    pullback([loss], [w, b], [one])     the cotangents of w and b, as instructions

Each op's rule calls builder functions, so the result is ordinary graph and can be differentiated
again.
"""

from __future__ import annotations

import contextvars
import functools
from collections.abc import Callable, Sequence
from typing import cast

from tracejit.autodiff.accumulator import CotangentAccumulator
from tracejit.autodiff.masks import Mask, either, step
from tracejit.errors import DerivativeError
from tracejit.graph import Instruction
from tracejit.loading import load
from tracejit.ops.constants import GET_TUPLE_ELEMENT, TUPLE
from tracejit.ops.layout import full
from tracejit.rules import RuleTable
from tracejit.shapes import Shape
from tracejit.sources import on_behalf_of
from tracejit.traversal import in_order

Cotangent = Instruction | None
Cotangents = Sequence[Cotangent]
# rule(instruction, cotangent) -> one cotangent (or None for zero) per operand. For an op whose
# result is a tuple the second argument is a sequence with one cotangent or None per element, and
# for an operand that is a tuple the rule returns such a sequence; tuples in tuples nest. An error
# in a cotangent's place is raised if the operand is on the path.
Nested = Instruction | None | Sequence["Nested"]
Found = Nested | DerivativeError
Pending = Instruction | None | CotangentAccumulator | Sequence["Pending"]
DifferentiateRule = Callable[..., Sequence[Found]]

differentiate: RuleTable[DifferentiateRule] = RuleTable("differentiate", "tracejit.autodiff.rules")


def is_differentiable(instruction: Instruction) -> bool:
    """Whether a cotangent can belong to this value: a floating or complex array with zeros."""
    shape = instruction.shape
    return isinstance(shape, Shape) and shape.element_type.is_differentiable


_active: contextvars.ContextVar[set[Instruction] | None] = contextvars.ContextVar(
    "active", default=None
)


def is_wanted(operand: Instruction) -> bool:
    """Whether the pass that asks a rule needs this operand's cotangent.

    Rules whose results are computed together, in a loop or a branch, leave out what is not.
    """
    active = _active.get()
    return active is None or operand in active


def zero_cotangent(shape: Shape) -> Instruction:
    """A cotangent of zeros, for rules that need every element of a tuple's."""
    return full(shape, 0)


def pullback(
    outputs: Sequence[Instruction],
    inputs: Sequence[Instruction],
    cotangents: Sequence[Cotangent],
    observe: Callable[[Instruction, Nested, Sequence[Found]], None] | None = None,
) -> list[Cotangent]:
    """The cotangents of ``inputs`` given those of ``outputs``; None is zero.

    ``observe(instruction, cotangent, the operands' cotangents)`` is told of every step.

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

    token = _active.set(active)
    try:
        return _walked(order, outputs, inputs, cotangents, active, observe)
    finally:
        _active.reset(token)


def _walked(
    order: Sequence[Instruction],
    outputs: Sequence[Instruction],
    inputs: Sequence[Instruction],
    cotangents: Sequence[Cotangent],
    active: set[Instruction],
    observe: Callable[[Instruction, Nested, Sequence[Found]], None] | None,
) -> list[Cotangent]:
    wanted = set(inputs)
    sums: dict[Instruction, Pending] = {}
    masks: dict[Instruction, Mask] = {}

    def accumulate(target: Instruction, cotangent: Found, mask: Mask | None = None) -> None:
        if target not in active or _is_zero(cotangent):
            return
        if isinstance(cotangent, DerivativeError):
            raise cotangent
        if isinstance(cotangent, Instruction):
            if not is_differentiable(target):
                return
            if cotangent.shape != target.shape:
                sizes = load("tracejit.autodiff.dynamic")
                if sizes.dynamic(cotangent, target):
                    cleaned = mask.cleaned(cotangent) if mask else cotangent
                    fitted: Instruction = sizes.fitted(cleaned, target)
                    cotangent, mask = fitted, None
            assert cotangent.shape == target.shape, (
                f"cotangent of {target} has shape {cotangent.shape}"
            )
        if target in sums:
            known = masks.pop(target, None)
            sums[target] = _sum(_cleaned(sums[target], known), _cleaned(cotangent, mask))
            mask = either(known, mask)
        else:
            sums[target] = cotangent
        if mask is not None:
            masks[target] = mask

    for output, cotangent in zip(outputs, cotangents, strict=True):
        accumulate(output, cotangent)

    for instruction in reversed(order):
        if instruction in wanted or instruction not in sums:
            continue
        mask = masks.pop(instruction, None)
        arriving = _whole(sums.pop(instruction))
        how = step(instruction, mask, functools.partial(_apply, instruction))
        if not how.keeps_dirty:
            arriving = _whole(_cleaned(arriving, mask))
        results = _apply(instruction, arriving)
        if observe is not None:
            observe(instruction, arriving, results)
        for operand, result, passed in zip(instruction.operands, results, how.masks, strict=True):
            accumulate(operand, result, passed)
    return [cast(Cotangent, _cleaned(_whole(sums.get(i)), masks.get(i))) for i in inputs]


def _whole(known: Pending) -> Nested:
    """The sum of the cotangents so far."""
    if isinstance(known, CotangentAccumulator):
        return known.total()
    if known is None or isinstance(known, Instruction):
        return known
    return [_whole(part) for part in known]


def _cleaned(cotangent: Pending, mask: Mask | None) -> Pending:
    if mask is None or not isinstance(cotangent, Instruction):
        return cotangent
    return mask.cleaned(cotangent)


def _is_zero(cotangent: Found) -> bool:
    if isinstance(cotangent, Instruction | DerivativeError):
        return False
    return cotangent is None or all(_is_zero(c) for c in cotangent)


def _sum(known: Pending, new: Pending) -> Pending:
    """Both cotangents together, element by element where they belong to tuples."""
    if known is None or new is None:
        return new if known is None else known
    if isinstance(new, Instruction):
        if isinstance(known, Instruction):
            known = CotangentAccumulator(known)
        assert isinstance(known, CotangentAccumulator)
        known.add(new)
        return known
    assert isinstance(known, Sequence)
    assert isinstance(new, Sequence)
    return [_sum(a, b) for a, b in zip(known, new, strict=True)]


def _apply(instruction: Instruction, cotangent: Nested) -> Sequence[Found]:
    if instruction.op is TUPLE:
        assert isinstance(cotangent, Sequence)
        return cotangent
    if instruction.op is GET_TUPLE_ELEMENT:
        (operand,) = instruction.operands
        elements: list[Nested] = [None] * len(operand.element_shapes)
        elements[instruction.attributes["index"]] = cotangent
        return [elements]
    rule = differentiate.get(instruction.op)
    if rule is not None:
        return on_behalf_of(instruction.source, rule, instruction, cotangent)
    if differentiate.reason(instruction.op) is not None:
        return [None] * len(instruction.operands)
    raise DerivativeError(f"{instruction.op.function}: has no derivative", instruction.source)
