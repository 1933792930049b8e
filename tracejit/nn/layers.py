"""Convolution, pooling and normalisation of feature maps; the features are last by default."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tracejit.errors import AttributeValueError, ShapeError
from tracejit.lax.convolution import conv_general_dilated
from tracejit.lax.parallel import pmean
from tracejit.lax.reductions import batch_norm_inference as batch_norm_inference_op
from tracejit.lax.reductions import batch_norm_training
from tracejit.numpy import arithmetic
from tracejit.numpy.building import Axis, axes_of, fill
from tracejit.numpy.manipulation import as_array, floating
from tracejit.ops.windows import Padding, reduce_window_by
from tracejit.trace.public import public
from tracejit.trace.tracer import Tracer, lift

_SPATIAL = {3: "W", 4: "HW", 5: "DHW"}


def _each(value: int | Sequence[int], count: int) -> tuple[int, ...]:
    """One number for all dimensions, or one for each."""
    return (value,) * count if isinstance(value, int) else tuple(value)


@public
def conv(
    x: Any,
    kernel: Any,
    strides: int | Sequence[int] = 1,
    padding: Padding = "SAME",
    *,
    dilation: int | Sequence[int] = 1,
    feature_group_count: int = 1,
    dimension_numbers: tuple[str, str, str] | None = None,
) -> Any:
    """A convolution of N, spatial…, C with a kernel of spatial…, I, O; other labels if given.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit and `AttributeValueError` for an option or a size out of range.

    >>> tj.nn.conv(np.arange(4.0).reshape(1, 4, 1), np.ones((2, 1, 1)), padding="VALID").ravel()
    array([1., 3., 5.])
    """
    rank = as_array(x).ndim
    if dimension_numbers is None:
        if rank not in _SPATIAL:
            raise AttributeValueError(f"conv: give dimension_numbers for {rank} dimensions")
        spatial = _SPATIAL[rank]
        dimension_numbers = (f"N{spatial}C", f"{spatial}IO", f"N{spatial}C")
    return conv_general_dilated(
        x,
        kernel,
        _each(strides, rank - 2),
        padding,
        rhs_dilation=_each(dilation, rank - 2),
        dimension_numbers=dimension_numbers,
        feature_group_count=feature_group_count,
    )


def _pooled(
    name: str,
    x: Tracer,
    window_shape: Sequence[int],
    strides: Sequence[int] | None,
    padding: Padding,
) -> Tracer:
    """A reduction over windows of the dimensions between the first and the last."""
    if len(window_shape) != x.ndim - 2:
        raise AttributeValueError(
            f"pool: window {tuple(window_shape)} must have a size for each of {x.ndim - 2} spatial "
            f"dimensions of {x.shape}"
        )
    steps = [1] * len(window_shape) if strides is None else strides
    pads = padding if isinstance(padding, str) else [(0, 0), *padding, (0, 0)]
    made = reduce_window_by(name, x.instruction, (1, *window_shape, 1), (1, *steps, 1), pads)
    return lift(made, False)


@public
def max_pool(
    inputs: Any,
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
) -> Any:
    """The greatest element of each window over N, spatial…, C; the strides are 1 by default.

    Raises `ArgumentError` for what is no array of numbers and `AttributeValueError` for an
    option or a size out of range.

    >>> tj.nn.max_pool(np.arange(4.0).reshape(1, 4, 1), (2,), (2,)).ravel()
    array([1., 3.])
    """
    return _pooled("max", as_array(inputs), window_shape, strides, padding)


@public
def min_pool(
    inputs: Any,
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
) -> Any:
    """The least element of each window over N, spatial…, C; the strides are 1 by default.

    Raises `ArgumentError` for what is no array of numbers and `AttributeValueError` for an
    option or a size out of range.

    >>> tj.nn.min_pool(np.arange(4.0).reshape(1, 4, 1), (2,), (2,)).ravel()
    array([0., 2.])
    """
    return _pooled("min", as_array(inputs), window_shape, strides, padding)


@public
def avg_pool(
    inputs: Any,
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    count_include_pad: bool = True,
) -> Any:
    """The mean of each window over N, spatial…, C; with padding counted as 0, or not at all.

    Raises `ArgumentError` for what is no array of numbers and `AttributeValueError` for an
    option or a size out of range.

    >>> tj.nn.avg_pool(np.arange(4.0).reshape(1, 4, 1), (2,), (2,)).ravel()
    array([0.5, 2.5])
    """
    x = floating(inputs)
    total = _pooled("add", x, window_shape, strides, padding)
    if count_include_pad:
        return total / math.prod(window_shape)
    ones = lift(fill(x.instruction, 1), False)
    return total / _pooled("add", ones, window_shape, strides, padding)


def _feature_axis(function: str, x: Any, axis: int) -> int:
    return axes_of(function, axis, as_array(x).ndim)[0]


@public
def batch_norm(
    x: Any,
    scale: Any,
    offset: Any,
    epsilon: float = 1e-5,
    axis: int = -1,
    axis_name: str | tuple[str, ...] | None = None,
) -> tuple[Any, Any, Any]:
    """(output, mean, variance): normalised per feature by the batch's own mean and variance.

    One BatchNormTraining. Keep running means of the second and third result for
    `batch_norm_inference`; the variance is the biased one. With ``axis_name`` the batch is that of
    all devices along that axis of a `shard_map`, which have equal parts of it.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit and `DimensionError` for an axis that the array lacks.

    >>> tj.nn.batch_norm(np.array([[1.0], [3.0]]), np.ones(1), np.zeros(1))[0].round(4)
    array([[-1.],
           [ 1.]])
    """
    feature = _feature_axis("batch_norm", x, axis)
    if axis_name is not None:
        array = floating(x)
        others = tuple(d for d in range(array.ndim) if d != feature)
        sizes = tuple(n if d == feature else 1 for d, n in enumerate(array.shape))
        mean = pmean(array.mean(others), axis_name)
        centred = array - mean.reshape(sizes)
        variance = pmean((centred * centred).mean(others), axis_name)
        factor = scale / arithmetic.sqrt(variance + epsilon)
        return centred * factor.reshape(sizes) + offset.reshape(sizes), mean, variance
    made: tuple[Any, Any, Any] = batch_norm_training(x, scale, offset, epsilon, feature)
    return made


@public
def batch_norm_inference(
    x: Any, scale: Any, offset: Any, mean: Any, variance: Any, epsilon: float = 1e-5, axis: int = -1
) -> Any:
    """Normalised per feature by given means and variances. One BatchNormInference.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit and `DimensionError` for an axis that the array lacks.

    >>> tj.nn.batch_norm_inference(
    ...     np.array([[1.0], [3.0]]), np.ones(1), np.zeros(1), np.array([2.0]), np.ones(1)
    ... ).round(4)
    array([[-1.],
           [ 1.]])
    """
    feature = _feature_axis("batch_norm_inference", x, axis)
    return batch_norm_inference_op(x, scale, offset, mean, variance, epsilon, feature)


@public
def layer_norm(
    x: Any, scale: Any = None, offset: Any = None, axis: Axis = -1, epsilon: float = 1e-5
) -> Any:
    """Normalised to mean 0 and variance 1 along ``axis``, then scaled and moved if asked.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tj.nn.layer_norm(np.array([-1.0, 0.0, 2.0])).round(4)
    array([-1.069 , -0.2673,  1.3363])
    """
    array = floating(x)
    centred = array - array.mean(axis, keepdims=True)
    variance = (centred * centred).mean(axis, keepdims=True)
    made = centred / arithmetic.sqrt(variance + epsilon)
    made = made if scale is None else made * scale
    return made if offset is None else made + offset


@public
def rms_norm(x: Any, scale: Any = None, axis: Axis = -1, epsilon: float = 1e-6) -> Any:
    """Divided by the root of the mean square along ``axis``, then scaled if asked.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tj.nn.rms_norm(np.array([-1.0, 0.0, 2.0])).round(4)
    array([-0.7746,  0.    ,  1.5492])
    """
    array = floating(x)
    made = array / arithmetic.sqrt((array * array).mean(axis, keepdims=True) + epsilon)
    return made if scale is None else made * scale


@public
def group_norm(
    x: Any, groups: int, scale: Any = None, offset: Any = None, epsilon: float = 1e-5
) -> Any:
    """N, spatial…, C normalised over space and over each of ``groups`` groups of features.

    Raises `ShapeError` when the groups do not divide the features.

    >>> tj.nn.group_norm(np.arange(4.0).reshape(1, 2, 2), 2).ravel().round(2)
    array([-1., -1.,  1.,  1.])
    """
    array = floating(x)
    features = array.shape[-1] if array.ndim else 0
    if array.ndim < 2 or groups < 1 or features % groups:
        raise ShapeError(f"group_norm: {groups} groups do not divide the features of {array.shape}")
    split = array.reshape((*array.shape[:-1], groups, features // groups))
    axes = (*range(1, split.ndim - 2), split.ndim - 1)
    made = layer_norm(split, axis=axes, epsilon=epsilon).reshape(array.shape)
    made = made if scale is None else made * scale
    return made if offset is None else made + offset


@public
def instance_norm(x: Any, scale: Any = None, offset: Any = None, epsilon: float = 1e-5) -> Any:
    """N, spatial…, C normalised over space, each feature by itself.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.nn.instance_norm(np.arange(4.0).reshape(1, 2, 2)).ravel().round(2)
    array([-1., -1.,  1.,  1.])
    """
    return group_norm(x, as_array(x).shape[-1], scale, offset, epsilon)
