"""Batch normalisation by the steps that XLA takes, in its order, as its own expander writes them.

as_xla(instruction, operands)     the values, denormal numbers in between taken for zeros

Types narrower than f32 are computed in f32 and rounded at the end. The other order in which we
multiply is as exact, but not where a product in between vanishes or is infinite.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.fuzz.flushing import flushed, without_denormals
from tracejit import ops
from tracejit.backends.numpy import evaluate, evaluate_instruction
from tracejit.backends.numpy.interpreter import stepping
from tracejit.graph import Computation, Instruction
from tracejit.shapes import ElementType, Shape


def is_batch_norm(instruction: Instruction) -> bool:
    return instruction.op.name in _STEPS


def as_xla(instruction: Instruction, operands: Sequence[np.ndarray]) -> Any:
    """What the instruction makes of ``operands`` in XLA's order."""

    def step(instruction: Instruction, operands: Sequence[Any]) -> Any:
        with stepping(evaluate_instruction):
            return flushed(evaluate_instruction(instruction, operands))

    with stepping(step):
        return evaluate(_expanded(instruction), [without_denormals(o) for o in operands])


def _expanded(instruction: Instruction) -> Computation:
    shapes = [operand.array_shape for operand in instruction.operands]
    parameters = [ops.parameter(i, shape) for i, shape in enumerate(shapes)]
    narrow = shapes[0].element_type
    computed = ElementType.F32 if narrow.bits < 32 else narrow
    made = _STEPS[instruction.op.name](
        _Over(shapes[0], instruction), *(ops.convert_element_type(p, computed) for p in parameters)
    )
    results = [ops.convert_element_type(result, narrow) for result in made]
    root = ops.tuple_(results) if len(results) > 1 else results[0]
    return Computation("expanded", tuple(parameters), root)


class _Over:
    """The dimensions of an operand, whose features each have numbers of their own."""

    def __init__(self, shape: Shape, instruction: Instruction) -> None:
        self.sizes = shape.dimensions
        self.feature = instruction.attributes["feature_index"]
        self.epsilon = instruction.attributes["epsilon"]
        self.others = [d for d in range(shape.rank) if d != self.feature]
        self.count = math.prod(self.sizes[d] for d in self.others)

    def spread(self, per_feature: Instruction) -> Instruction:
        return ops.broadcast_in_dim(per_feature, self.sizes, (self.feature,))

    def total(self, operand: Instruction) -> Instruction:
        return ops.reduce_sum(operand, self.others)

    def part(self, total: Instruction) -> Instruction:
        return ops.div(total, ops.full_like(total, self.count))

    def shifted(self, variance: Instruction) -> Instruction:
        return ops.add(variance, ops.full_like(variance, self.epsilon))


def _training(
    over: _Over, operand: Instruction, scale: Instruction, offset: Instruction
) -> list[Instruction]:
    mean = over.part(over.total(operand))
    squares = over.part(over.total(ops.mul(operand, operand)))
    variance = ops.sub(squares, ops.mul(mean, mean))
    inverse = over.spread(ops.rsqrt(over.shifted(variance)))
    normal = ops.mul(ops.sub(operand, over.spread(mean)), inverse)
    output = ops.add(ops.mul(normal, over.spread(scale)), over.spread(offset))
    return [output, mean, variance]


def _inference(
    over: _Over,
    operand: Instruction,
    scale: Instruction,
    offset: Instruction,
    mean: Instruction,
    variance: Instruction,
) -> list[Instruction]:
    factor = ops.mul(scale, ops.rsqrt(over.shifted(variance)))
    rest = ops.sub(offset, ops.mul(mean, factor))
    return [ops.add(ops.mul(operand, over.spread(factor)), over.spread(rest))]


def _grad(
    over: _Over,
    operand: Instruction,
    scale: Instruction,
    mean: Instruction,
    variance: Instruction,
    grad_output: Instruction,
) -> list[Instruction]:
    inverse = ops.rsqrt(over.shifted(variance))
    centred = ops.sub(operand, over.spread(mean))
    grad_offset = over.total(grad_output)
    products = over.total(ops.mul(grad_output, centred))
    counted = ops.mul(grad_output, ops.full_like(grad_output, over.count))
    slopes = ops.mul(over.spread(products), centred)
    slopes = ops.div(slopes, over.spread(over.shifted(variance)))
    inner = ops.sub(ops.sub(counted, over.spread(grad_offset)), slopes)
    grad_operand = ops.mul(over.spread(over.part(ops.mul(scale, inverse))), inner)
    return [grad_operand, ops.mul(products, inverse), grad_offset]


_STEPS: dict[str, Callable[..., list[Instruction]]] = {
    "BatchNormTraining": _training,
    "BatchNormInference": _inference,
    "BatchNormGrad": _grad,
}
