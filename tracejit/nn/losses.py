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
    """-sum(labels * log(softmax(logits))) along ``axis``, for probabilities as labels.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit and `DimensionError` for an axis that the array lacks.

    >>> tj.nn.softmax_cross_entropy([[2.0, 0.0]], [[0.5, 0.5]]).round(4)
    array([1.1269])
    """
    return -(log_softmax(logits, axis) * labels).sum(axis)


@public
def softmax_cross_entropy_with_integer_labels(logits: Any, labels: Any) -> Any:
    """-log(softmax(logits)[label]) for each example; the classes are last.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit and `DimensionError` for an axis that the array lacks.

    >>> tj.nn.cross_entropy([[2.0, 0.0], [0.0, 1.0]], [0, 0]).round(4)
    array([0.1269, 1.3133])
    """
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
    """-labels * log(sigmoid(logits)) - (1 - labels) * log(sigmoid(-logits)).

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tj.nn.sigmoid_binary_cross_entropy([2.0, -1.0], [1.0, 1.0]).round(4)
    array([0.1269, 1.3133])
    """
    x = floating(logits)
    return -(log_sigmoid(x) * labels) - log_sigmoid(-x) * (1 - as_array(labels))


@public
def squared_error(predictions: Any, targets: Any) -> Any:
    """(predictions - targets)².

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tj.nn.squared_error([1.0, 2.0], [0.0, 4.0])
    array([1., 4.])
    """
    difference = as_array(predictions) - targets
    return difference * difference


@public
def huber_loss(predictions: Any, targets: Any, delta: float = 1.0) -> Any:
    """Half the squared error up to ``delta``, linear beyond.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tj.nn.huber_loss([1.0, 2.0], [0.5, 5.0]).round(4)
    array([0.125, 2.5  ])
    """
    distance = arithmetic.absolute(floating(predictions) - targets)
    inside = selecting.clip(distance, None, delta)
    return inside * inside * 0.5 + (distance - inside) * delta


@public
def absolute_error(predictions: Any, targets: Any) -> Any:
    """|predictions - targets|.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tj.nn.absolute_error([1.0, 2.0], [0.0, 4.0])
    array([1., 2.])
    """
    return arithmetic.absolute(as_array(predictions) - targets)


@public
def log_cosh(predictions: Any, targets: Any) -> Any:
    """log(cosh(predictions - targets)), without overflow.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tj.nn.log_cosh([1.0, 2.0], [0.0, 4.0]).round(4)
    array([0.4338, 1.325 ])
    """
    distance = arithmetic.absolute(floating(predictions) - targets)
    return distance + exponential.log1p(exponential.exp(-2 * distance)) - math.log(2)


@public
def hinge_loss(scores: Any, targets: Any) -> Any:
    """max(0, 1 - scores * targets), for targets -1 and 1.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tj.nn.hinge_loss([0.5, -2.0], [1.0, 1.0])
    array([0.5, 3. ])
    """
    return selecting.clip(1 - floating(scores) * targets, 0, None)


@public
def kl_divergence(log_predictions: Any, targets: Any, axis: int = -1) -> Any:
    """sum(targets * (log(targets) - log_predictions)) along ``axis``; 0 log(0) is 0.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit and `DimensionError` for an axis that the array lacks.

    >>> tj.nn.kl_divergence(np.log([0.5, 0.5]), [0.25, 0.75]).round(4)
    np.float64(0.1308)
    """
    given = floating(targets)
    nothing = given == 0
    logarithm = exponential.log(selecting.where(nothing, 1.0, given))
    return (given * (logarithm - log_predictions)).sum(axis)


@public
def cosine_similarity(x: Any, y: Any, axis: int = -1, epsilon: float = 1e-8) -> Any:
    """The cosine of the angle between vectors along ``axis``.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit and `DimensionError` for an axis that the array lacks.

    >>> tj.nn.cosine_similarity([1.0, 0.0], [1.0, 1.0]).round(4)
    np.float64(0.7071)
    """
    a, b = floating(x), floating(y)
    lengths = arithmetic.sqrt((a * a).sum(axis)) * arithmetic.sqrt((b * b).sum(axis))
    return (a * b).sum(axis) / comparison.maximum(lengths, epsilon)
