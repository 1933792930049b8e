"""Losses, one for each example; take the mean yourself."""

from __future__ import annotations

import math
from typing import Any

from tracejit.errors import ShapeError
from tracejit.nn.activations import log_sigmoid, log_softmax
from tracejit.numpy import arithmetic, comparison, exponential, selecting
from tracejit.numpy.manipulation import as_array, floating
from tracejit.trace.public import public


@public
def softmax_cross_entropy(logits: Any, labels: Any, axis: int = -1) -> Any:
    """-sum(labels * log(softmax(logits))) along ``axis``, for probabilities as labels."""
    return -(log_softmax(logits, axis) * labels).sum(axis)


@public
def softmax_cross_entropy_with_integer_labels(logits: Any, labels: Any) -> Any:
    """-log(softmax(logits)[label]) for each example; the classes are last."""
    scores, classes = log_softmax(logits), as_array(labels)
    if classes.shape != scores.shape[:-1]:
        raise ShapeError(
            f"softmax_cross_entropy_with_integer_labels: labels {classes.shape} must have the "
            f"shape of logits {scores.shape} without its last dimension"
        )
    chosen = selecting.take_along_axis(scores, classes[..., None], -1)
    return -chosen[..., 0]


cross_entropy = softmax_cross_entropy_with_integer_labels


@public
def sigmoid_binary_cross_entropy(logits: Any, labels: Any) -> Any:
    """-labels * log(sigmoid(logits)) - (1 - labels) * log(sigmoid(-logits))."""
    x = floating(logits)
    return -(log_sigmoid(x) * labels) - log_sigmoid(-x) * (1 - as_array(labels))


@public
def squared_error(predictions: Any, targets: Any) -> Any:
    """(predictions - targets)²."""
    difference = as_array(predictions) - targets
    return difference * difference


@public
def huber_loss(predictions: Any, targets: Any, delta: float = 1.0) -> Any:
    """Half the squared error up to ``delta``, linear beyond."""
    distance = arithmetic.absolute(floating(predictions) - targets)
    inside = selecting.clip(distance, None, delta)
    return inside * inside * 0.5 + (distance - inside) * delta


@public
def absolute_error(predictions: Any, targets: Any) -> Any:
    """|predictions - targets|."""
    return arithmetic.absolute(as_array(predictions) - targets)


@public
def log_cosh(predictions: Any, targets: Any) -> Any:
    """log(cosh(predictions - targets)), without overflow."""
    distance = arithmetic.absolute(floating(predictions) - targets)
    return distance + exponential.log1p(exponential.exp(-2 * distance)) - math.log(2)


@public
def hinge_loss(scores: Any, targets: Any) -> Any:
    """max(0, 1 - scores * targets), for targets -1 and 1."""
    return selecting.clip(1 - floating(scores) * targets, 0, None)


@public
def kl_divergence(log_predictions: Any, targets: Any, axis: int = -1) -> Any:
    """sum(targets * (log(targets) - log_predictions)) along ``axis``; 0 log(0) is 0."""
    given = floating(targets)
    nothing = given == 0
    logarithm = exponential.log(selecting.where(nothing, 1.0, given))
    return (given * (logarithm - log_predictions)).sum(axis)


@public
def cosine_similarity(x: Any, y: Any, axis: int = -1, epsilon: float = 1e-8) -> Any:
    """The cosine of the angle between vectors along ``axis``."""
    a, b = floating(x), floating(y)
    lengths = arithmetic.sqrt((a * a).sum(axis)) * arithmetic.sqrt((b * b).sum(axis))
    return (a * b).sum(axis) / comparison.maximum(lengths, epsilon)
