"""BatchNormTraining, BatchNormInference and BatchNormGrad."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.autodiff.composition import pullback_through
from tracejit.autodiff.reverse import Cotangent, Cotangents, differentiate
from tracejit.graph import Instruction
from tracejit.ops.constants import elements_of, get_tuple_element
from tracejit.ops.elementwise import add, div, mul, sub
from tracejit.ops.elementwise_unary import rsqrt
from tracejit.ops.layout import broadcast_in_dim, scalar_like
from tracejit.ops.normalisation import (
    BATCH_NORM_GRAD,
    BATCH_NORM_INFERENCE,
    BATCH_NORM_TRAINING,
    batch_norm_grad,
)
from tracejit.ops.reduction import reduce_sum


class _Features:
    """Spreading numbers over an operand's other dimensions, and summing over these."""

    def __init__(self, operand: Instruction, feature_index: int) -> None:
        self.sizes = operand.array_shape.dimensions
        self.feature = feature_index
        self.others = [d for d in range(len(self.sizes)) if d != feature_index]
        self.count = operand.array_shape.size // max(self.sizes[feature_index], 1)

    def spread(self, per_feature: Instruction) -> Instruction:
        return broadcast_in_dim(per_feature, self.sizes, [self.feature])

    def sum(self, operand: Instruction) -> Instruction:
        return reduce_sum(operand, self.others)


def _inverse_deviation(instruction: Instruction, variance: Instruction) -> Instruction:
    """1 / sqrt(variance + epsilon)."""
    epsilon = scalar_like(variance, instruction.attributes["epsilon"])
    return rsqrt(add(variance, epsilon))


@differentiate.attach(BATCH_NORM_TRAINING)
def batch_norm_training_rule(instruction: Instruction, cotangents: Cotangents) -> Cotangents:
    operand, scale, _ = instruction.operands
    feature = instruction.attributes["feature_index"]
    features = _Features(operand, feature)
    of_output, of_mean, of_variance = cotangents
    mean, variance = (get_tuple_element(instruction, i) for i in (1, 2))
    of_operand: Cotangent = None
    of_scale: Cotangent = None
    of_offset: Cotangent = None
    if of_output is not None:
        of_operand, of_scale, of_offset = elements_of(
            batch_norm_grad(
                operand,
                scale,
                mean,
                variance,
                of_output,
                instruction.attributes["epsilon"],
                feature,
            )
        )
    # mean = sum(x) / count, variance = sum((x - mean)^2) / count
    if of_mean is not None:
        share = div(of_mean, scalar_like(of_mean, features.count))
        of_operand = _plus(of_operand, features.spread(share))
    if of_variance is not None:
        share = div(of_variance, scalar_like(of_variance, 0.5 * features.count))
        centred = sub(operand, features.spread(mean))
        of_operand = _plus(of_operand, mul(centred, features.spread(share)))
    return of_operand, of_scale, of_offset


def _plus(known: Cotangent, new: Instruction) -> Instruction:
    return new if known is None else add(known, new)


@differentiate.attach(BATCH_NORM_INFERENCE)
def batch_norm_inference_rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
    # y = scale * (x - mean) * r + offset, r = 1 / sqrt(variance + epsilon), dr/dvariance = -r^3/2
    operand, scale, _, mean, variance = instruction.operands
    features = _Features(operand, instruction.attributes["feature_index"])
    r = _inverse_deviation(instruction, variance)
    centred = sub(operand, features.spread(mean))
    total = features.sum(cotangent)
    products = features.sum(mul(cotangent, centred))
    slope = mul(scale, r)
    half = scalar_like(r, -0.5)
    return (
        mul(cotangent, features.spread(slope)),
        mul(products, r),
        total,
        mul(mul(total, slope), scalar_like(total, -1)),
        mul(mul(products, slope), mul(half, mul(r, r))),
    )


@differentiate.attach(BATCH_NORM_GRAD)
def batch_norm_grad_rule(instruction: Instruction, cotangents: Cotangents) -> Cotangents:
    def formulas(
        operand: Instruction,
        scale: Instruction,
        mean: Instruction,
        variance: Instruction,
        grad_output: Instruction,
    ) -> Sequence[Instruction]:
        features = _Features(operand, instruction.attributes["feature_index"])
        r = _inverse_deviation(instruction, variance)
        normal = mul(sub(operand, features.spread(mean)), features.spread(r))
        grad_offset = features.sum(grad_output)
        grad_scale = features.sum(mul(grad_output, normal))
        count = scalar_like(r, features.count)
        average = features.spread(div(grad_offset, count))
        slant = mul(normal, features.spread(div(grad_scale, count)))
        inner = sub(sub(grad_output, average), slant)
        return mul(inner, features.spread(mul(scale, r))), grad_scale, grad_offset

    return pullback_through(formulas, instruction.operands, cotangents)
