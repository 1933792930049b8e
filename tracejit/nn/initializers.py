"""Random weights of layers, with the names, and by a dtype the numbers, of `jax.nn.initializers`.

weights = he_normal()(random.key(0), (256, 10), np.float32)

Each function but `zeros` and `ones` returns an initializer: a function of a key, a shape and a
dtype, float64 by default.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit import random
from tracejit.errors import AttributeValueError, ShapeError
from tracejit.numpy.creation import full
from tracejit.numpy.manipulation import moveaxis
from tracejit.numpy.padding import pad

Axes = int | Sequence[int]
Initializer = Callable[..., Any]

__all__ = [
    "Initializer",
    "constant",
    "delta_orthogonal",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "kaiming_normal",
    "kaiming_uniform",
    "lecun_normal",
    "lecun_uniform",
    "normal",
    "ones",
    "orthogonal",
    "truncated_normal",
    "uniform",
    "variance_scaling",
    "xavier_normal",
    "xavier_uniform",
    "zeros",
]

_CLIPPED = 0.87962566103423978
"""The standard deviation of a standard normal number within -2 and 2."""


def _default(dtype: Any) -> Any:
    return np.float64 if dtype is None else dtype


def zeros(key: Any, shape: Sequence[int], dtype: Any = None) -> Any:
    """Zeros of ``shape`` and ``dtype``, whatever the key."""
    return full(tuple(shape), 0, _default(dtype))


def ones(key: Any, shape: Sequence[int], dtype: Any = None) -> Any:
    """Ones of ``shape`` and ``dtype``, whatever the key."""
    return full(tuple(shape), 1, _default(dtype))


def constant(value: Any, dtype: Any = None) -> Initializer:
    """An initializer that fills with ``value``."""

    def init(key: Any, shape: Sequence[int], dtype: Any = dtype) -> Any:
        return full(tuple(shape), value, _default(dtype))

    return init


def uniform(scale: Any = 1e-2, dtype: Any = None) -> Initializer:
    """An initializer of numbers uniform in [0, scale)."""

    def init(key: Any, shape: Sequence[int], dtype: Any = dtype) -> Any:
        kind = _default(dtype)
        return random.uniform(key, tuple(shape), kind) * full((), scale, kind)

    return init


def normal(stddev: Any = 1e-2, dtype: Any = None) -> Initializer:
    """An initializer of normal numbers with mean 0 and this standard deviation."""

    def init(key: Any, shape: Sequence[int], dtype: Any = dtype) -> Any:
        kind = _default(dtype)
        return random.normal(key, tuple(shape), kind) * full((), stddev, kind)

    return init


def truncated_normal(
    stddev: Any = 1e-2, dtype: Any = None, lower: Any = -2.0, upper: Any = 2.0
) -> Initializer:
    """An initializer of normal numbers within ``lower`` and ``upper`` times ``stddev``."""

    def init(key: Any, shape: Sequence[int], dtype: Any = dtype) -> Any:
        kind = _default(dtype)
        return random.truncated_normal(key, lower, upper, tuple(shape), kind) * full(
            (), stddev, kind
        )

    return init


def _product(shape: Sequence[int], axes: Axes) -> int:
    return math.prod(shape[axis] for axis in ((axes,) if isinstance(axes, int) else axes))


def _fans(
    shape: Sequence[int], in_axis: Axes, out_axis: Axes, batch_axis: Axes
) -> tuple[float, float]:
    """How many inputs each output has, and how many outputs each input."""
    if len(shape) < 2 and in_axis == -2:
        raise ShapeError(
            f"variance_scaling: a shape of two dimensions at least is needed, or in_axis=; "
            f"it is {tuple(shape)}"
        )
    inputs, outputs = _product(shape, in_axis), _product(shape, out_axis)
    field = math.prod(shape) / inputs / outputs / _product(shape, batch_axis)
    return inputs * field, outputs * field


_MODES: dict[str, Callable[[float, float], float]] = {
    "fan_in": lambda fan_in, fan_out: fan_in,
    "fan_out": lambda fan_in, fan_out: fan_out,
    "fan_avg": lambda fan_in, fan_out: (fan_in + fan_out) / 2,
    "fan_geo_avg": lambda fan_in, fan_out: (fan_in * fan_out) ** 0.5,
}


def variance_scaling(
    scale: Any,
    mode: str,
    distribution: str,
    in_axis: Axes = -2,
    out_axis: Axes = -1,
    batch_axis: Axes = (),
    dtype: Any = None,
) -> Initializer:
    """An initializer of numbers with mean 0 and variance scale / n.

    n is the number of inputs of an output (``mode`` "fan_in"), of outputs of an input ("fan_out"),
    or their mean ("fan_avg", "fan_geo_avg"); axes that are not named belong to a convolution's
    window. ``distribution`` is "truncated_normal", "normal" or "uniform". Raises
    `AttributeValueError` for other names; the initializer raises `ShapeError` for a shape of fewer
    dimensions than two.
    """
    if mode not in _MODES:
        raise AttributeValueError(
            f"variance_scaling: mode must be one of {', '.join(_MODES)}, not {mode!r}"
        )
    if distribution not in ("truncated_normal", "normal", "uniform"):
        raise AttributeValueError(
            "variance_scaling: distribution must be truncated_normal, normal or uniform, not "
            f"{distribution!r}"
        )

    def init(key: Any, shape: Sequence[int], dtype: Any = dtype) -> Any:
        kind, sizes = np.dtype(_default(dtype)), tuple(shape)
        count = _MODES[mode](*_fans(sizes, in_axis, out_axis, batch_axis))
        variance = np.asarray(scale / count, kind)
        if distribution == "truncated_normal":
            drawn = random.truncated_normal(key, -2, 2, sizes, kind)
            return drawn * (np.sqrt(variance) / np.asarray(_CLIPPED, kind))
        if distribution == "normal":
            return random.normal(key, sizes, kind) * np.sqrt(variance)
        return random.uniform(key, sizes, kind, -1) * np.sqrt(3 * variance)

    return init


def _scaled(title: str, scale: float, mode: str, distribution: str) -> Callable[..., Initializer]:
    def make(
        in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: Any = None
    ) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    make.__name__ = make.__qualname__ = title
    make.__doc__ = f'``variance_scaling({scale}, "{mode}", "{distribution}")``.'
    return make


glorot_uniform = _scaled("glorot_uniform", 1.0, "fan_avg", "uniform")
glorot_normal = _scaled("glorot_normal", 1.0, "fan_avg", "truncated_normal")
lecun_uniform = _scaled("lecun_uniform", 1.0, "fan_in", "uniform")
lecun_normal = _scaled("lecun_normal", 1.0, "fan_in", "truncated_normal")
he_uniform = _scaled("he_uniform", 2.0, "fan_in", "uniform")
he_normal = _scaled("he_normal", 2.0, "fan_in", "truncated_normal")
xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
kaiming_uniform, kaiming_normal = he_uniform, he_normal


def orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """An initializer of matrices with orthonormal rows or columns, times ``scale``.

    Columns lie along ``column_axis``, all other axes are rows. The initializer raises `ShapeError`
    for a shape of fewer dimensions than two.
    """

    def init(key: Any, shape: Sequence[int], dtype: Any = dtype) -> Any:
        kind, sizes = _default(dtype), list(shape)
        if len(sizes) < 2:
            raise ShapeError(f"orthogonal: needs a shape of two dimensions, not {tuple(sizes)}")
        if 0 in sizes:
            return full(tuple(sizes), 0, kind)
        columns = sizes.pop(column_axis)
        drawn = random.orthogonal(key, math.prod(sizes), (), kind, columns)
        made = moveaxis(drawn.reshape(*sizes, columns), -1, column_axis)
        return made * full((), scale, kind)

    return init


def delta_orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """An initializer of convolution kernels: `orthogonal` in the centre of the window, else zero.

    Reference: L. Xiao et al., Dynamical isometry and a mean field theory of CNNs, 2018. The
    initializer raises `ShapeError` unless a shape has three to five dimensions and no more inputs
    than outputs, its last two.
    """

    def init(key: Any, shape: Sequence[int], dtype: Any = dtype) -> Any:
        sizes = tuple(shape)
        if len(sizes) not in (3, 4, 5) or sizes[-1] < sizes[-2]:
            raise ShapeError(
                "delta_orthogonal: needs a shape of three to five dimensions, the last not less "
                f"than the one before; it is {sizes}"
            )
        matrix = orthogonal(scale, column_axis, dtype)(key, sizes[-2:])
        window = sizes[:-2]
        centre = [(size - 1) // 2 for size in window]
        widths = [(c, size - 1 - c) for c, size in zip(centre, window, strict=True)]
        return pad(matrix[(None,) * len(window)], [*widths, (0, 0), (0, 0)])

    return init


def __dir__() -> list[str]:
    return __all__
