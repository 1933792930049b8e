"""Distributions that are a formula of uniform or normal numbers."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from tracejit.ops import elementwise_unary
from tracejit.ops.element_types import convert_element_type
from tracejit.random.counting import sizes, subkeys
from tracejit.random.intervals import (
    DEFAULT,
    erf_inverse,
    floating_type,
    interval,
    parameters,
    standard_normal,
)
from tracejit.random.keys import drawn
from tracejit.shapes import ElementType
from tracejit.trace.stop_gradient import stopped
from tracejit.trace.tracer import Tracer, lift


def _from_zero(words: Tracer, dimensions: tuple[int, ...], element_type: ElementType) -> Tracer:
    """Numbers in [0, 1)."""
    return lift(interval(words.instruction, dimensions, element_type), False)


def _between(
    words: Tracer, dimensions: tuple[int, ...], element_type: ElementType, low: float, high: float
) -> Tracer:
    return lift(interval(words.instruction, dimensions, element_type, low, high), False)


def _limits(element_type: ElementType) -> tuple[float, float, float]:
    """The smallest normal number, and the distances from 1 to its neighbours above and below."""
    limits = ml_dtypes.finfo(element_type.dtype)  # type: ignore[no-untyped-call]
    return float(limits.tiny), float(limits.eps), float(limits.eps) / 2


def finished(made: Any) -> Tracer:
    """A result as users get it: a number where it has rank 0."""
    return lift(made.instruction)


def gumbel_numbers(words: Tracer, dimensions: tuple[int, ...], element_type: ElementType) -> Tracer:
    """-log(-log(u))."""
    tiny = _limits(element_type)[0]
    u = _between(words, dimensions, element_type, tiny, 1.0)
    made: Any = -np.log(-np.log(u))
    return lift(made.instruction, False)


def exponential_numbers(
    words: Tracer, dimensions: tuple[int, ...], element_type: ElementType
) -> Tracer:
    """-log(1 - u)."""
    made: Any = -np.log1p(-_from_zero(words, dimensions, element_type))
    return lift(made.instruction, False)


@drawn
def exponential(words: Tracer, shape: Any = (), dtype: Any = DEFAULT) -> Tracer:
    """Numbers with density e**-x for x >= 0.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tj.random.exponential(tj.random.key(0), (2,)).round(4)
    array([0.5421, 0.2437])
    """
    element_type = floating_type("exponential", dtype)
    return finished(exponential_numbers(words, sizes(shape), element_type))


@drawn
def gumbel(words: Tracer, shape: Any = (), dtype: Any = DEFAULT) -> Tracer:
    """Numbers with distribution function exp(-exp(-x)).

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tj.random.gumbel(tj.random.key(0), (2,)).round(4)
    array([ 0.1379, -0.426 ])
    """
    return finished(gumbel_numbers(words, sizes(shape), floating_type("gumbel", dtype)))


@drawn
def laplace(words: Tracer, shape: Any = (), dtype: Any = DEFAULT) -> Tracer:
    """Numbers with density e**-|x| / 2.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tj.random.laplace(tj.random.key(0), (2,)).round(4)
    array([0.178, 0.838])
    """
    element_type = floating_type("laplace", dtype)
    below = _limits(element_type)[2]
    u = _between(words, sizes(shape), element_type, -1.0 + below, 1.0)
    return finished(np.sign(u) * np.log1p(-np.abs(u)))


@drawn
def logistic(words: Tracer, shape: Any = (), dtype: Any = DEFAULT) -> Tracer:
    """Numbers with distribution function 1 / (1 + e**-x).

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tj.random.logistic(tj.random.key(0), (2,)).round(4)
    array([-0.3291, -1.2874])
    """
    element_type = floating_type("logistic", dtype)
    u = _between(words, sizes(shape), element_type, _limits(element_type)[1], 1.0)
    return finished(np.log(u / (1 - u)))


@drawn
def cauchy(words: Tracer, shape: Any = (), dtype: Any = DEFAULT) -> Tracer:
    """Numbers with density 1 / (pi (1 + x**2)).

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tj.random.cauchy(tj.random.key(0), (2,)).round(4)
    array([-0.2619, -1.2378])
    """
    element_type = floating_type("cauchy", dtype)
    u = _between(words, sizes(shape), element_type, _limits(element_type)[1], 1.0)
    return finished(np.tan((u - 0.5) * math.pi))


@drawn
def truncated_normal(
    words: Tracer, lower: Any, upper: Any, shape: Any = None, dtype: Any = DEFAULT
) -> Tracer:
    """Standard normal numbers in [lower, upper]; the bounds broadcast to ``shape``.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tj.random.truncated_normal(tj.random.key(0), -1.0, 1.0, (2,)).round(4)
    array([-0.14  , -0.5063])
    """
    element_type = floating_type("truncated_normal", dtype)
    dimensions, (low, high) = parameters("truncated_normal", element_type, shape, lower, upper)
    root = math.sqrt(2)
    ends = [lift(_erf(bound / root), False) for bound in (low, high)]
    u = lift(interval(words.instruction, dimensions, element_type, *ends), False)
    made = lift(erf_inverse(u.instruction), False) * root
    # Rounding must not leave the interval; the bounds as limits have no derivative of their own.
    least, most = (lift(stopped(bound.instruction), False) for bound in (low, high))
    return finished(
        np.clip(made, np.nextafter(least, np.inf), np.nextafter(most, -np.inf))
        if element_type.bits >= 16
        else np.clip(made, least, most)
    )


def _erf(x: Tracer) -> Any:
    if x.element_type.bits >= 32:
        return elementwise_unary.erf(x.instruction)
    wide = elementwise_unary.erf(convert_element_type(x.instruction, ElementType.F32))
    return convert_element_type(wide, x.element_type)


@drawn
def lognormal(words: Tracer, sigma: Any = 1.0, shape: Any = None, dtype: Any = DEFAULT) -> Tracer:
    """Numbers whose logarithm is normal with deviation ``sigma``.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tj.random.lognormal(tj.random.key(0), shape=(2,)).round(4)
    array([0.814 , 0.4562])
    """
    element_type = floating_type("lognormal", dtype)
    dimensions, (scale,) = parameters("lognormal", element_type, shape, sigma)
    z = lift(standard_normal(words.instruction, dimensions, element_type), False)
    return finished(np.exp(z * scale))


@drawn
def rayleigh(words: Tracer, scale: Any, shape: Any = None, dtype: Any = DEFAULT) -> Tracer:
    """Lengths of plane vectors whose parts are normal with deviation ``scale``.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tj.random.rayleigh(tj.random.key(0), 1.0, (2,)).round(4)
    array([1.32  , 1.7499])
    """
    element_type = floating_type("rayleigh", dtype)
    dimensions, (width,) = parameters("rayleigh", element_type, shape, scale)
    u = _between(words, dimensions, element_type, _limits(element_type)[0], 1.0)
    return finished(width * np.sqrt(np.log(u) * -2))


@drawn
def weibull_min(
    words: Tracer, scale: Any, concentration: Any, shape: Any = None, dtype: Any = DEFAULT
) -> Tracer:
    """Numbers with distribution function 1 - exp(-(x / scale)**concentration).

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tj.random.weibull_min(tj.random.key(0), 1.0, 2.0, (2,)).round(4)
    array([0.7363, 0.4937])
    """
    element_type = floating_type("weibull_min", dtype)
    dimensions, (width, power) = parameters(
        "weibull_min", element_type, shape, scale, concentration
    )
    u = _from_zero(words, dimensions, element_type)
    return finished(np.power(-np.log1p(-u), 1 / power) * width)


@drawn
def pareto(words: Tracer, b: Any, shape: Any = None, dtype: Any = DEFAULT) -> Tracer:
    """Numbers with density b / x**(b + 1) for x >= 1.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tj.random.pareto(tj.random.key(0), 2.0, (2,)).round(4)
    array([1.3113, 1.1296])
    """
    element_type = floating_type("pareto", dtype)
    dimensions, (power,) = parameters("pareto", element_type, shape, b)
    return finished(np.exp(exponential_numbers(words, dimensions, element_type) / power))


@drawn
def maxwell(words: Tracer, shape: Any = (), dtype: Any = DEFAULT) -> Tracer:
    """Lengths of vectors in space whose parts are standard normal.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tj.random.maxwell(tj.random.key(0), (2,)).round(4)
    array([1.9891, 0.4246])
    """
    element_type = floating_type("maxwell", dtype)
    z = lift(standard_normal(words.instruction, (*sizes(shape), 3), element_type), False)
    return finished(np.sqrt((z * z).sum(-1)))


@drawn
def double_sided_maxwell(
    words: Tracer, loc: Any, scale: Any, shape: Any = None, dtype: Any = DEFAULT
) -> Tracer:
    """``loc`` plus or minus ``scale`` times a `maxwell` number.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tj.random.double_sided_maxwell(tj.random.key(0), 0.0, 1.0, (2,)).round(4)
    array([ 1.9846, -2.4782])
    """
    element_type = floating_type("double_sided_maxwell", dtype)
    dimensions, (centre, width) = parameters(
        "double_sided_maxwell", element_type, shape, loc, scale
    )
    length, side = subkeys(words, 2)
    z = lift(standard_normal(length.instruction, (*dimensions, 3), element_type), False)
    u = _from_zero(side, dimensions, ElementType.F64)
    length = np.sqrt((z * z).sum(-1))
    return finished(centre + width * np.where(u < 0.5, length, -length))


@drawn
def triangular(
    words: Tracer, left: Any, mode: Any, right: Any, shape: Any = None, dtype: Any = DEFAULT
) -> Tracer:
    """Numbers whose density rises from 0 at ``left`` to ``mode`` and falls to 0 at ``right``.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tj.random.triangular(tj.random.key(0), 0.0, 1.0, 2.0, (2,)).round(4)
    array([0.9148, 0.6577])
    """
    element_type = floating_type("triangular", dtype)
    dimensions, (low, top, high) = parameters("triangular", element_type, shape, left, mode, right)
    u = _from_zero(words, dimensions, element_type)
    span = high - low
    share = (top - low) / span
    rising = low + np.sqrt(u * (span * (top - low)))
    falling = high - np.sqrt((1 - u) * (span * (high - top)))
    return finished(np.where(u < share, rising, falling))


@drawn
def wald(words: Tracer, mean: Any, shape: Any = None, dtype: Any = DEFAULT) -> Tracer:
    """Numbers with the inverse Gaussian distribution of this mean and scale 1.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tj.random.wald(tj.random.key(0), 1.0, (2,)).round(4)
    array([0.187 , 1.6107])
    """
    element_type = floating_type("wald", dtype)
    dimensions, (mu,) = parameters("wald", element_type, shape, mean)
    # Michael, Schucany and Haas: the smaller root of a quadratic, or mean**2 over it.
    first, second = subkeys(words, 2)
    z = lift(standard_normal(first.instruction, dimensions, element_type), False)
    u = _from_zero(second, dimensions, element_type)
    y = z * z
    root = np.sqrt(mu * y * 4 + mu * mu * y * y)
    x = mu + (mu * mu * y - mu * root) / 2
    return finished(np.where(u <= mu / (mu + x), x, mu * mu / x))
