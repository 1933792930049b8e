"""CustomCall: the derivative that was registered with its target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.autodiff.reverse import Nested, differentiate, zero_cotangent
from tracejit.autodiff.rules.control import pullback_of_call
from tracejit.errors import DerivativeError
from tracejit.graph import Instruction
from tracejit.ops.constants import elements_of
from tracejit.ops.custom import CUSTOM_CALL
from tracejit.shapes import Shape
from tracejit.targets import differentiable_expansion_for, find_target
from tracejit.trace.body import Abstract, record_body


@differentiate.attach(CUSTOM_CALL)
def custom_call(instruction: Instruction, cotangent: Nested) -> Sequence[Nested]:
    name = instruction.attributes["custom_call_target"]
    target = find_target(name, instruction.source)
    gradient = target.gradient if target.op is None else target.op.gradient_of(instruction)
    expansion = differentiable_expansion_for(instruction)
    if expansion is not None:
        return pullback_of_call(instruction, expansion, cotangent)
    if gradient is None:
        raise DerivativeError(
            f"custom_call: target {name!r} was registered without a gradient", instruction.source
        )
    operands = _arrays(name, instruction)
    parts = [cotangent] if isinstance(cotangent, Instruction) else list(cotangent or ())
    arriving = [
        part if isinstance(part, Instruction) else zero_cotangent(shape)
        for part, shape in zip(parts, instruction.element_shapes, strict=True)
        if isinstance(shape, Shape)
    ]
    reached: list[bool] = []

    def cotangents(*values: Any) -> tuple[Any, ...]:
        made = gradient(*values)
        results = tuple(made) if isinstance(made, tuple | list) else (made,)
        reached.extend(result is not None for result in results)
        return tuple(result for result in results if result is not None)

    results_too = elements_of(instruction) if target.op is not None else ()
    given = [*operands, *results_too, *arriving]
    body = record_body(cotangents, f"the gradient of {name}", [_abstract(g) for g in given])
    replacements = dict(zip(body.parameters, given, strict=True))
    made, _ = body.rebuilt(replacements | {c: c for c in body.captured})
    values = iter(made)
    if len(reached) != len(operands):
        raise DerivativeError(
            f"custom_call: the gradient of {name!r} must return {len(operands)} cotangents, "
            f"not {len(reached)}",
            instruction.source,
        )
    results = [next(values) if there else None for there in reached]
    for result, operand in zip(results, operands, strict=True):
        if result is not None and result.shape != operand.shape:
            raise DerivativeError(
                f"custom_call: the gradient of {name!r} must return {operand.shape} for an "
                f"operand of that shape, not {result.shape}",
                instruction.source,
            )
    every = iter(results)
    return [next(every) if isinstance(o.shape, Shape) else None for o in instruction.operands]


def _arrays(name: str, instruction: Instruction) -> list[Instruction]:
    """The operands that are arrays; the others must be tokens."""
    for operand in instruction.operands:
        if operand.element_shapes != (operand.shape,):
            raise DerivativeError(
                f"custom_call: {name!r} takes a tuple, which has no derivative", instruction.source
            )
    return [o for o in instruction.operands if isinstance(o.shape, Shape)]


def _abstract(value: Instruction) -> Abstract:
    return Abstract(value.array_shape)
