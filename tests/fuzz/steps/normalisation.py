"""The batch normalisations."""

from __future__ import annotations

from tests.fuzz.graph import Graph
from tracejit import ops
from tracejit.graph import Instruction
from tracejit.ops.base import FLOATING
from tracejit.shapes import Shape


def _features(graph: Graph) -> tuple[Instruction, int, Shape]:
    operand = graph.ranked(FLOATING)
    shape = operand.array_shape
    feature = graph.choices.integer(0, shape.rank - 1)
    return operand, feature, shape.with_dimensions([shape.dimensions[feature]])


def training(graph: Graph) -> Instruction:
    operand, feature, per_feature = _features(graph)
    scale, offset = graph.like(per_feature), graph.like(per_feature)
    return ops.batch_norm_training(operand, scale, offset, 0.1, feature)


def inference(graph: Graph) -> Instruction:
    operand, feature, per_feature = _features(graph)
    scale, offset, mean = (graph.like(per_feature) for _ in range(3))
    variance = ops.abs(graph.like(per_feature))
    return ops.batch_norm_inference(operand, scale, offset, mean, variance, 0.1, feature)


def gradient(graph: Graph) -> Instruction:
    operand, feature, per_feature = _features(graph)
    scale, mean = graph.like(per_feature), graph.like(per_feature)
    variance = ops.abs(graph.like(per_feature))
    arriving = graph.like(operand.array_shape)
    return ops.batch_norm_grad(operand, scale, mean, variance, arriving, 0.1, feature)


STEPS = {
    "BatchNormTraining": (training,),
    "BatchNormInference": (inference,),
    "BatchNormGrad": (gradient,),
}
