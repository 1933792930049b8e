"""Activations, and normalised exponentials along an axis."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tracejit.graph import Instruction
from tracejit.numpy import arithmetic, comparison, exponential, selecting, trigonometric
from tracejit.numpy.building import Axis, along, axes_of, fill, scaled, where
from tracejit.numpy.manipulation import as_array, floating
from tracejit.numpy.reducing import combined, mask_of, with_axes
from tracejit.ops import comparison as compare
from tracejit.ops import elementwise, elementwise_unary
from tracejit.ops.constants import iota
from tracejit.ops.layout import broadcast_in_dim, reshape
from tracejit.shapes import Shape, element_type_of
from tracejit.trace.convert import converted
from tracejit.trace.public import public
from tracejit.trace.stop_gradient import stopped
from tracejit.trace.tracer import Tracer, lift
from tracejit.trace.views import broadcast


@public
def relu(x: Any) -> Any:
    """max(x, 0), with derivative 0 at 0.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.nn.relu(np.array([-1.0, 0.0, 2.0]))
    array([0., 0., 2.])
    """
    value = as_array(x).instruction
    # Written so that NaN stays NaN.
    return lift(where(compare.le(value, fill(value, 0)), fill(value, 0), value))


@public
def relu6(x: Any) -> Any:
    """min(max(x, 0), 6).

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.nn.relu6(np.array([-1.0, 0.0, 2.0]))
    array([0., 0., 2.])
    """
    return comparison.minimum(relu(as_array(x)), 6)


@public
def leaky_relu(x: Any, negative_slope: Any = 0.01) -> Any:
    """x above 0, ``negative_slope * x`` below.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.nn.leaky_relu(np.array([-1.0, 0.0, 2.0])).round(4)
    array([-0.01,  0.  ,  2.  ])
    """
    array = floating(x)
    return selecting.where(array >= 0, array, array * negative_slope)


def _below(x: Tracer) -> Tracer:
    """x where it is below 0, else 0, so that exponentials of it stay finite."""
    limited: Tracer = comparison.minimum(x, 0)
    return limited


@public
def elu(x: Any, alpha: Any = 1.0) -> Any:
    """x above 0, alpha * (e^x - 1) below.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.nn.elu(np.array([-1.0, 0.0, 2.0])).round(4)
    array([-0.6321,  0.    ,  2.    ])
    """
    array = floating(x)
    return selecting.where(array > 0, array, exponential.expm1(_below(array)) * alpha)


@public
def celu(x: Any, alpha: Any = 1.0) -> Any:
    """x above 0, alpha * (e^(x / alpha) - 1) below.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.nn.celu(np.array([-1.0, 0.0, 2.0])).round(4)
    array([-0.6321,  0.    ,  2.    ])
    """
    array = floating(x)
    return selecting.where(array > 0, array, exponential.expm1(_below(array) / alpha) * alpha)


@public
def selu(x: Any) -> Any:
    """The scaled `elu` that keeps mean 0 and variance 1.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.nn.selu(np.array([-1.0, 0.0, 2.0])).round(4)
    array([-1.1113,  0.    ,  2.1014])
    """
    return elu(as_array(x), 1.6732632423543772848170429916717) * 1.0507009873554804934193349852946


@public
def sigmoid(x: Any) -> Any:
    """1 / (1 + e^-x).

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.nn.sigmoid(np.array([-1.0, 0.0, 2.0])).round(4)
    array([0.2689, 0.5   , 0.8808])
    """
    return lift(elementwise_unary.logistic(floating(x).instruction))


@public
def log_sigmoid(x: Any) -> Any:
    """log(sigmoid(x)), without overflow.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.nn.log_sigmoid(np.array([-1.0, 0.0, 2.0])).round(4)
    array([-1.3133, -0.6931, -0.1269])
    """
    return -softplus(-floating(x))


@public
def softplus(x: Any) -> Any:
    """log(1 + e^x), without overflow.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.nn.softplus(np.array([-1.0, 0.0, 2.0])).round(4)
    array([0.3133, 0.6931, 2.1269])
    """
    return exponential.logaddexp(floating(x), 0)


@public
def silu(x: Any) -> Any:
    """x * sigmoid(x).

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.nn.silu(np.array([-1.0, 0.0, 2.0])).round(4)
    array([-0.2689,  0.    ,  1.7616])
    """
    array = floating(x)
    return array * sigmoid(array)


swish = silu


@public
def mish(x: Any) -> Any:
    """x * tanh(softplus(x)).

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.nn.mish(np.array([-1.0, 0.0, 2.0])).round(4)
    array([-0.3034,  0.    ,  1.944 ])
    """
    array = floating(x)
    return array * trigonometric.tanh(softplus(array))


@public
def gelu(x: Any, approximate: bool = True) -> Any:
    """x times the normal distribution function of x, by default approximated by tanh.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.nn.gelu(np.array([-1.0, 0.0, 2.0])).round(4)
    array([-0.1588,  0.    ,  1.9546])
    """
    array = floating(x)
    if approximate:
        inner = (array + array * array * array * 0.044715) * math.sqrt(2 / math.pi)
        return array * (trigonometric.tanh(inner) + 1) * 0.5
    inner = lift(elementwise_unary.erf(scaled(array.instruction, math.sqrt(0.5))))
    return array * (inner + 1) * 0.5


@public
def soft_sign(x: Any) -> Any:
    """x / (1 + |x|).

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.nn.soft_sign(np.array([-1.0, 0.0, 2.0])).round(4)
    array([-0.5   ,  0.    ,  0.6667])
    """
    array = floating(x)
    return array / (arithmetic.absolute(array) + 1)


@public
def hard_tanh(x: Any) -> Any:
    """x limited to [-1, 1].

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.nn.hard_tanh(np.array([-1.0, 0.0, 2.0]))
    array([-1.,  0.,  1.])
    """
    return selecting.clip(as_array(x), -1, 1)


@public
def hard_sigmoid(x: Any) -> Any:
    """relu6(x + 3) / 6.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.nn.hard_sigmoid(np.array([-1.0, 0.0, 2.0])).round(4)
    array([0.3333, 0.5   , 0.8333])
    """
    return relu6(floating(x) + 3) / 6


@public
def hard_silu(x: Any) -> Any:
    """x * hard_sigmoid(x).

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.nn.hard_silu(np.array([-1.0, 0.0, 2.0])).round(4)
    array([-0.3333,  0.    ,  1.6667])
    """
    array = floating(x)
    return array * hard_sigmoid(array)


hard_swish = hard_silu


@public
def glu(x: Any, axis: int = -1) -> Any:
    """The first half along ``axis`` times the sigmoid of the second.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tj.nn.glu([1.0, 2.0, 0.0, 0.0]).round(4)
    array([0.5, 1. ])
    """
    array = floating(x)
    (position,) = axes_of("glu", axis, array.ndim)
    half = array.shape[position] // 2
    first, second = array[along(position, slice(half))], array[along(position, slice(half, None))]
    return first * sigmoid(second)


def _top(x: Instruction, axes: tuple[int, ...], mask: Instruction | None) -> Instruction:
    """The greatest element along the axes, kept as size 1, without a derivative; 0 if infinite."""
    dimensions = x.array_shape.dimensions
    greatest = stopped(with_axes(combined("max", x, axes, mask), dimensions, axes))
    return where(elementwise_unary.is_finite(greatest), greatest, 0)


def _shifted(
    function: str, x: Any, axis: Axis, mask: Any
) -> tuple[Instruction, tuple[int, ...], Instruction | None]:
    """The array less its greatest element along the axes."""
    value = floating(x).instruction
    dimensions = value.array_shape.dimensions
    axes = axes_of(function, axis, len(dimensions))
    where_ = mask_of(function, True if mask is None else mask, dimensions)
    top = broadcast(_top(value, axes, where_), dimensions)
    return elementwise.sub(value, top), axes, where_


@public
def softmax(x: Any, axis: Axis = -1, where: Any = None) -> Any:
    """e^x, divided by its sum along ``axis``; 0 where ``where`` leaves elements out.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tj.nn.softmax(np.array([-1.0, 0.0, 2.0])).round(4)
    array([0.042 , 0.1142, 0.8438])
    """
    shifted, axes, mask = _shifted("softmax", x, axis, where)
    dimensions = shifted.array_shape.dimensions
    weights = elementwise_unary.exp(shifted)
    if mask is not None:
        weights = elementwise.select(mask, weights, fill(weights, 0))
    total = combined("add", weights, axes)
    if mask is not None:
        # The greatest element counts 1: the sum is 0 where all are left out.
        total = elementwise.select(compare.eq(total, fill(total, 0)), fill(total, 1), total)
    total = with_axes(total, dimensions, axes)
    return lift(elementwise.div(weights, broadcast(total, dimensions)))


@public
def log_softmax(x: Any, axis: Axis = -1, where: Any = None) -> Any:
    """log(softmax(x)), without underflow; -inf where ``where`` leaves elements out.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tj.nn.log_softmax(np.array([-1.0, 0.0, 2.0])).round(4)
    array([-3.1698, -2.1698, -0.1698])
    """
    shifted, axes, mask = _shifted("log_softmax", x, axis, where)
    dimensions = shifted.array_shape.dimensions
    total = combined("add", elementwise_unary.exp(shifted), axes, mask)
    logarithm = with_axes(elementwise_unary.log(total), dimensions, axes)
    made = elementwise.sub(shifted, broadcast(logarithm, dimensions))
    if mask is not None:
        made = elementwise.select(mask, made, fill(made, -np.inf))
    return lift(made)


@public
def logsumexp(
    a: Any, axis: Axis = None, b: Any = None, keepdims: bool = False, where: Any = None
) -> Any:
    """log(sum(b * e^a)) along ``axis``, without overflow; -inf for nothing but -inf.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tj.nn.logsumexp(np.array([-1.0, 0.0, 2.0])).round(4)
    np.float64(2.1698)
    """
    value = floating(a).instruction
    dimensions = value.array_shape.dimensions
    axes = axes_of("logsumexp", axis, len(dimensions))
    mask = mask_of("logsumexp", True if where is None else where, dimensions)
    top = _top(value, axes, mask)
    weights = elementwise_unary.exp(elementwise.sub(value, broadcast(top, dimensions)))
    if b is not None:
        weights = (lift(weights, False) * b).instruction
    total = with_axes(combined("add", weights, axes, mask), dimensions, axes)
    # Where nothing is added up the derivative is zero, not NaN.
    nothing = compare.eq(total, fill(total, 0))
    least, logarithm = fill(total, -np.inf), elementwise_unary.log(total)
    logarithm = elementwise.select(nothing, least, logarithm)
    made = elementwise.add(logarithm, top)
    if keepdims:
        return lift(made, False)
    return lift(reshape(made, [size for d, size in enumerate(dimensions) if d not in axes]))


@public
def logmeanexp(x: Any, axis: Axis = None, where: Any = None, keepdims: bool = False) -> Any:
    """log(mean(e^x)) along ``axis``, of the elements where ``where`` holds, without overflow.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tj.nn.logmeanexp(np.array([-1.0, 0.0, 2.0])).round(4)
    np.float64(1.0712)
    """
    value = floating(x)
    kept = np.ones((), bool) if where is None else where
    count = as_array(np.broadcast_to(kept, value.shape)).sum(axis, keepdims=keepdims)
    total = logsumexp(value, axis, None, keepdims, where)
    return total - exponential.log(count.astype(value.dtype))


@public
def one_hot(x: Any, num_classes: int, *, dtype: Any = np.float64, axis: int = -1) -> Any:
    """1 at the place that each integer names along a new axis, else 0; all 0 out of range.

    ``x`` [...] of integers gives [..., num_classes] of ``dtype``, with the classes along ``axis``.
    Raises `DimensionError` for an axis that the result lacks.

    >>> tj.nn.one_hot([0, 2], 3)
    array([[1., 0., 0.],
           [0., 0., 1.]])
    """
    labels = as_array(x)
    rank = labels.ndim + 1
    (position,) = axes_of("one_hot", axis, rank)
    sizes = (*labels.shape[:position], int(num_classes), *labels.shape[position:])
    kept = [d for d in range(rank) if d != position]
    count = iota(Shape(labels.element_type, sizes), position)
    wide = broadcast_in_dim(labels.instruction, sizes, kept)
    return lift(converted(compare.eq(count, wide), element_type_of(dtype)), False)


@public
def standardize(x: Any, axis: Axis = -1, epsilon: Any = 1e-5) -> Any:
    """Less its mean, divided by its standard deviation along ``axis``.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tj.nn.standardize(np.array([-1.0, 0.0, 2.0])).round(4)
    array([-1.069 , -0.2673,  1.3363])
    """
    array = floating(x)
    variance = array.var(axis, keepdims=True)
    return (array - array.mean(axis, keepdims=True)) / arithmetic.sqrt(variance + epsilon)


@public
def squareplus(x: Any, b: Any = 4) -> Any:
    """(x + √(x² + b)) / 2.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.nn.squareplus(np.array([-1.0, 0.0, 2.0])).round(4)
    array([0.618 , 1.    , 2.4142])
    """
    array = floating(x)
    return (array + arithmetic.sqrt(array * array + b)) / 2


@public
def sparse_plus(x: Any) -> Any:
    """0 up to -1, x from 1 on, (x + 1)² / 4 between.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.nn.sparse_plus(np.array([-1.0, 0.0, 2.0])).round(4)
    array([0.  , 0.25, 2.  ])
    """
    array = floating(x)
    middle = (array + 1) * (array + 1) / 4
    return selecting.where(array <= -1, 0.0, selecting.where(array >= 1, array, middle))


@public
def sparse_sigmoid(x: Any) -> Any:
    """(x + 1) / 2 limited to [0, 1].

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.nn.sparse_sigmoid(np.array([-1.0, 0.0, 2.0])).round(4)
    array([0. , 0.5, 1. ])
    """
    return selecting.clip((floating(x) + 1) / 2, 0, 1)


@public
def log1mexp(x: Any) -> Any:
    """log(1 - e^-x) for x > 0, accurate for small and for large x.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.nn.log1mexp([0.5, 2.0]).round(4)
    array([-0.9328, -0.1454])
    """
    array = floating(x)
    small = array <= 0.6931471805599453
    near = selecting.where(small, array, 0.5)
    far = selecting.where(small, 1.0, array)
    return selecting.where(
        small, exponential.log(-exponential.expm1(-near)), exponential.log1p(-exponential.exp(-far))
    )


@public
def identity(x: Any) -> Any:
    """x.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.nn.identity(np.array([-1.0, 0.0, 2.0]))
    array([-1.,  0.,  2.])
    """
    return as_array(x)


@public
def tanh(x: Any) -> Any:
    """The hyperbolic tangent.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.nn.tanh(np.array([-1.0, 0.0, 2.0])).round(4)
    array([-0.7616,  0.    ,  0.964 ])
    """
    return trigonometric.tanh(x)
