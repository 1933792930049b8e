"""`why_zero`: where the path of a gradient ends.

print(tj.why_zero(loss, w, x))             argument 0, at these values
print(tj.why_zero(loss, w, x, argnum=1))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracejit.autodiff.reverse import differentiate, is_differentiable, pullback
from tracejit.graph import Instruction
from tracejit.loading import supplied
from tracejit.ops.constants import GET_TUPLE_ELEMENT, TUPLE
from tracejit.ops.layout import full_like
from tracejit.shapes import Shape
from tracejit.sources import Source
from tracejit.trace.evaluation import evaluate
from tracejit.tracebacks import api_boundary
from tracejit.transforms.gradient import positions_of
from tracejit.transforms.jit.signature import Parameters, title_of
from tracejit.transforms.jit.staging import outputs_of
from tracejit.transforms.recorded import Input, Run, run
from tracejit.traversal import in_order


@dataclass(frozen=True)
class Ending:
    """One place where a path ends: the op's name, why, and the user's line."""

    op: str
    reason: str
    source: Source | None

    def __str__(self) -> str:
        return f"{self.op}: {self.reason}" + (f" ({self.source})" if self.source else "")


@dataclass(frozen=True)
class WhyZero:
    """The answer; print it. ``is_zero`` says whether the whole gradient is zero."""

    argument: str
    is_zero: bool
    endings: tuple[Ending, ...]

    def __str__(self) -> str:
        if not self.is_zero:
            return f"the gradient in {self.argument} is not zero"
        lines = [f"the gradient in {self.argument} is zero:"]
        return "\n".join([*lines, *(f"  {ending}" for ending in self.endings)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """A table of the endings, for notebooks."""
        html: str = supplied("display").html_of(self)
        return html


@api_boundary
def why_zero(function: Callable[..., Any], *args: Any, argnum: int = 0, **kwargs: Any) -> WhyZero:
    """Why the gradient of ``function`` in one of its arguments is zero at the given values.

    An argument may not be used at all; all its paths to the result may pass through operations
    without a derivative (rounding, comparisons, integers, `stop_gradient`); or a derivative may
    be zero at these values (a branch not taken, a bound exceeded). Of each path that is not dead
    from the start, the operation nearest the result where it ends is named.

    Raises as `grad` does.

    >>> print(tj.why_zero(np.floor, 1.5))
    the gradient in argument x of floor is zero:...
    """
    parameters = Parameters(function, title_of(function))
    (position,) = positions_of((argnum,), args, parameters)
    ran = run(
        function,
        parameters,
        args,
        kwargs,
        (position,),
        lambda result: outputs_of(result, parameters.title)[0],
    )
    inputs = ran.inputs_of(position)
    name = f"argument {parameters.name_of(position)} of {parameters.title}"
    roots = [output.instruction for output in ran.result]
    order = in_order(roots)
    above = _above(order, inputs)
    if not any(root in above for root in roots):
        return WhyZero(name, True, (Ending(name, "the result does not depend on it", None),))
    numbers = [one for one in inputs if is_differentiable(one.parameter)]
    if not numbers:
        shape = inputs[0].abstract.shape
        return WhyZero(name, True, (Ending(name, f"is {shape}, which has no gradient", None),))
    return _walked(ran, name, roots, numbers, above)


def _above(order: Sequence[Instruction], inputs: Sequence[Input]) -> set[Instruction]:
    """What depends on the argument."""
    above = {one.parameter for one in inputs}
    for instruction in order:
        if any(operand in above for operand in instruction.operands):
            above.add(instruction)
    return above


def _walked(
    ran: Run,
    name: str,
    roots: Sequence[Instruction],
    numbers: Sequence[Input],
    above: set[Instruction],
) -> WhyZero:
    reached: dict[Instruction, Instruction] = {}
    steps: list[tuple[Instruction, list[tuple[Instruction, Instruction | None]]]] = []

    def observe(instruction: Instruction, arriving: Any, results: Sequence[Any]) -> None:
        if isinstance(arriving, Instruction):
            reached[instruction] = arriving
        pairs = zip(instruction.operands, results, strict=True)
        steps.append((instruction, [(o, _first(r)) for o, r in pairs if o in above]))

    seeds = [full_like(r, 1) if is_differentiable(r) else None for r in roots]
    cotangents = pullback(roots, [one.parameter for one in numbers], seeds, observe)
    asked: list[Instruction] = [c for c in cotangents if c is not None]
    asked += [c for c in reached.values()]
    asked += [r for _, pairs in steps for _, r in pairs if r is not None]
    known = {i.parameter: i.known for i in ran.inputs.values()}
    values = dict(zip(asked, evaluate(asked, known), strict=True)) if asked else {}

    def dead(cotangent: Instruction | None) -> bool:
        return cotangent is None or not np.any(np.asarray(values[cotangent]) != 0)

    if not all(dead(c) for c in cotangents):
        return WhyZero(name, False, ())
    endings: dict[Ending, None] = {}
    for root in roots:
        if root in above and not is_differentiable(root):
            endings[Ending(root.op.function, f"makes {root.shape}", root.source)] = None
    reader: dict[Instruction, Instruction] = {}
    for instruction, pairs in steps:
        if instruction in reached and dead(reached[instruction]):
            continue
        # What a tuple holds belongs to the loop or branch that takes it.
        taker = reader.get(instruction, instruction)
        for operand, result in pairs:
            if operand.op is TUPLE:
                reader[operand] = taker
                if result is not None:
                    continue
            if result is None or (dead(result) and isinstance(operand.shape, Shape)):
                endings.update(dict.fromkeys(_endings(taker, operand, result)))
    return WhyZero(name, True, tuple(endings))


def _first(result: Any) -> Instruction | None:
    """A cotangent, or of a tuple's the first that is there."""
    if result is None or isinstance(result, Instruction):
        return result
    if isinstance(result, Exception):
        raise result
    return next((found for one in result if (found := _first(one)) is not None), None)


def _endings(
    instruction: Instruction, operand: Instruction, result: Instruction | None
) -> list[Ending]:
    """Where the path ends in what a loop, a branch or a call does, or else there itself."""
    is_number = not isinstance(operand.shape, Shape) or is_differentiable(operand)
    within = _within(instruction, instruction.op.function) if is_number else []
    return within or [_ending(instruction, operand, result)]


def _within(instruction: Instruction, name: str) -> list[Ending]:
    found: list[Ending] = []
    for computation in instruction.computations:
        for step in in_order([computation.root]):
            said = differentiate.reason(step.op)
            if said is not None and any(is_differentiable(o) for o in step.operands):
                if step.op not in (GET_TUPLE_ELEMENT, TUPLE):
                    found.append(Ending(step.op.function, f"{said}, in {name}", step.source))
            found += _within(step, name)
    return found


def _ending(instruction: Instruction, operand: Instruction, result: Instruction | None) -> Ending:
    if result is not None:
        reason = "its derivative is zero at these values"
    elif (said := differentiate.reason(instruction.op)) is not None:
        reason = said
    elif not is_differentiable(operand):
        made = operand.op.function
        reason = f"takes {operand.shape} of {made}, through which no gradient passes"
        return Ending(instruction.op.function, reason, operand.source or instruction.source)
    else:
        reason = "passes no gradient on to this operand"
    return Ending(instruction.op.function, reason, instruction.source)
