"""Batch normalisation in single instructions: BatchNormTraining, …Inference, …Grad.

y, mean, variance = elements_of(batch_norm_training(x, scale, offset, 1e-5, feature_index=3))
"""

from __future__ import annotations

import math

import numpy as np

from tracejit.attributes import Attribute, Kind
from tracejit.errors import AttributeValueError, ShapeError
from tracejit.graph import Instruction
from tracejit.ops.base import (
    FLOATING,
    define,
    make,
    require_array,
    require_element_type,
    require_same_element_type,
)
from tracejit.shapes import AnyShape, Shape, TupleShape, canonical_dimension

_ATTRIBUTES = (Attribute("epsilon", Kind.FLOAT), Attribute("feature_index", Kind.INT))


def _require_batch_norm(
    function: str,
    operand: AnyShape,
    epsilon: float,
    feature_index: int,
    **per_feature: AnyShape,
) -> tuple[Shape, Shape]:
    """The operand's shape and that of one number per feature; raises when something differs."""
    source = require_array(function, "operand", operand)
    require_element_type(function, "operand", source, FLOATING)
    if not 0 <= feature_index < source.rank:
        raise AttributeValueError(
            f"{function}: feature_index {feature_index} must be a dimension of operand {source}"
        )
    if math.isnan(epsilon) or epsilon < 0:
        raise AttributeValueError(f"{function}: epsilon {epsilon} must not be negative")
    wanted = source.with_dimensions([source.dimensions[feature_index]])
    for argument, given in per_feature.items():
        shape = require_array(function, argument, given)
        require_same_element_type(function, operand=source, **{argument: shape})
        if shape.dimensions != wanted.dimensions:
            raise ShapeError(
                f"{function}: {argument} {shape} must have one element for each of the "
                f"{wanted.dimensions[0]} features of operand {source} (dimension {feature_index})"
            )
    return source.with_dimensions(source.dimensions), wanted


def _single(epsilon: float) -> float:
    """HLO keeps epsilon in single precision, so every backend must see it rounded."""
    return float(np.float32(epsilon))


def _feature_index(function: str, operand: Instruction, feature_index: int) -> int:
    shape = require_array(function, "operand", operand.shape)
    return canonical_dimension(feature_index, shape.rank, function) if shape.rank else feature_index


@define("BatchNormTraining", "batch-norm-training", *_ATTRIBUTES)
def BATCH_NORM_TRAINING(
    operand: AnyShape, scale: AnyShape, offset: AnyShape, *, epsilon: float, feature_index: int
) -> TupleShape:
    source, feature = _require_batch_norm(
        "batch_norm_training", operand, epsilon, feature_index, scale=scale, offset=offset
    )
    return TupleShape((source, feature, feature))


def batch_norm_training(
    operand: Instruction,
    scale: Instruction,
    offset: Instruction,
    epsilon: float,
    feature_index: int,
) -> Instruction:
    """(output, batch_mean, batch_var): ``operand`` normalised per feature, and with what.

    Mean and (biased) variance run over all dimensions but ``feature_index``;
    output = scale * (operand - mean) / sqrt(variance + epsilon) + offset (XLA:
    BatchNormTraining). ``scale`` and ``offset`` have one element per feature. Raises `ShapeError`
    otherwise, `ElementTypeError` unless all are of one floating type.
    """
    return make(
        BATCH_NORM_TRAINING,
        operand,
        scale,
        offset,
        epsilon=_single(epsilon),
        feature_index=_feature_index("batch_norm_training", operand, feature_index),
    )


@define("BatchNormInference", "batch-norm-inference", *_ATTRIBUTES)
def BATCH_NORM_INFERENCE(
    operand: AnyShape,
    scale: AnyShape,
    offset: AnyShape,
    mean: AnyShape,
    variance: AnyShape,
    *,
    epsilon: float,
    feature_index: int,
) -> Shape:
    source, _ = _require_batch_norm(
        "batch_norm_inference",
        operand,
        epsilon,
        feature_index,
        scale=scale,
        offset=offset,
        mean=mean,
        variance=variance,
    )
    return source


def batch_norm_inference(
    operand: Instruction,
    scale: Instruction,
    offset: Instruction,
    mean: Instruction,
    variance: Instruction,
    epsilon: float,
    feature_index: int,
) -> Instruction:
    """scale * (operand - mean) / sqrt(variance + epsilon) + offset, per feature.

    ``mean`` and ``variance`` are estimates given by the caller (XLA: BatchNormInference).
    Everything but ``operand`` has one element per feature. Raises `ShapeError` otherwise,
    `ElementTypeError` unless all are of one floating type.
    """
    return make(
        BATCH_NORM_INFERENCE,
        operand,
        scale,
        offset,
        mean,
        variance,
        epsilon=_single(epsilon),
        feature_index=_feature_index("batch_norm_inference", operand, feature_index),
    )


@define("BatchNormGrad", "batch-norm-grad", *_ATTRIBUTES)
def BATCH_NORM_GRAD(
    operand: AnyShape,
    scale: AnyShape,
    batch_mean: AnyShape,
    batch_var: AnyShape,
    grad_output: AnyShape,
    *,
    epsilon: float,
    feature_index: int,
) -> TupleShape:
    function = "batch_norm_grad"
    source, feature = _require_batch_norm(
        function,
        operand,
        epsilon,
        feature_index,
        scale=scale,
        batch_mean=batch_mean,
        batch_var=batch_var,
    )
    gradient = require_array(function, "grad_output", grad_output)
    require_same_element_type(function, operand=source, grad_output=gradient)
    if gradient.dimensions != source.dimensions:
        raise ShapeError(
            f"{function}: grad_output {gradient} must have the dimensions of operand {source}"
        )
    return TupleShape((source, feature, feature))


def batch_norm_grad(
    operand: Instruction,
    scale: Instruction,
    batch_mean: Instruction,
    batch_var: Instruction,
    grad_output: Instruction,
    epsilon: float,
    feature_index: int,
) -> Instruction:
    """(grad_operand, grad_scale, grad_offset): what reaches the inputs of `batch_norm_training`.

    ``batch_mean`` and ``batch_var`` are its results, ``grad_output`` is the gradient of its output
    (XLA: BatchNormGrad). Raises `ShapeError` or `ElementTypeError` when something does not fit.
    """
    return make(
        BATCH_NORM_GRAD,
        operand,
        scale,
        batch_mean,
        batch_var,
        grad_output,
        epsilon=_single(epsilon),
        feature_index=_feature_index("batch_norm_grad", operand, feature_index),
    )
