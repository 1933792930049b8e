"""The gamma distribution, and those derived from it: beta, dirichlet, chisquare, t, f, ball.

A derivative passes through the shape parameter: that of the quantile at which a number was drawn.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit import lax
from tracejit.graph import Computation, Instruction
from tracejit.ops import control, elementwise
from tracejit.ops.element_types import convert_element_type
from tracejit.random.continuous import finished
from tracejit.random.counting import sizes
from tracejit.random.intervals import DEFAULT, floating_type, interval, parameters
from tracejit.random.keys import drawn
from tracejit.random.rejection import digamma, normals, pair, uniforms, until_accepted, wide
from tracejit.shapes import ElementType, Shape
from tracejit.trace.body import Abstract, record_body
from tracejit.trace.tracer import Tracer, lift

WORDS = Shape(ElementType.U32, (2,))


def _recorded(name: str, function: Callable[..., Any], *shapes: Shape) -> Computation:
    body = record_body(function, name, [Abstract(shape) for shape in shapes])
    return Computation(name, body.parameters, body.results[0])


def _sample(words: Tracer, a: Any) -> Any:
    """Logarithms of gamma numbers, by the method of Marsaglia and Tsang (2000).

    Below 1 the parameter is raised by one, and the number multiplied by u**(1 / a).
    """
    valid = a > 0
    safe = np.where(valid, a, 1)
    raised = np.where(safe < 1, safe + 1, safe)
    d = raised - 1 / 3
    c = 1 / (np.sqrt(d) * 3)
    first, second = pair(words)

    def attempt(key: Tracer) -> tuple[Any, Any]:
        one, two = pair(key)
        x = normals(one, d)
        v = (x * c + 1) ** 3
        log_v = np.log(np.where(v > 0, v, 1))
        u = uniforms(two, d, float(np.finfo(d.dtype).tiny))
        passes = (v > 0) & (np.log(u) < x * x * 0.5 + d * (1 - v + log_v))
        return passes | np.logical_not(np.isfinite(d)), log_v

    log_v = until_accepted(first, np.zeros_like(d), attempt)
    boost = np.where(safe < 1, np.log1p(-uniforms(second, d)) / safe, 0)
    made = np.log(d) + log_v + boost
    return np.where(valid, made, np.where(a == 0, -np.inf, np.nan))


def _slope(a: Any, log_x: Any) -> Any:
    """How log x moves with a while the share of numbers below x stays the same.

    With P(a, x) = x**a e**-x / Gamma(a + 1) * S and S = sum of x**n / ((a + 1) ... (a + n)):
    d log x / d a = -(dP / da) / (x dP / dx) = -((log x - digamma(a + 1)) S + dS / da) / a.
    """
    x = np.exp(log_x)

    def more(state: Any) -> Any:
        number, term, slope, total, total_slope = state
        grows = (term > total * 1e-17) | (np.abs(slope) > np.abs(total_slope) * 1e-17)
        return np.any(grows) & (number < 100000)

    def step(state: Any) -> Any:
        number, term, slope, total, total_slope = state
        factor = x / (a + number)
        following = term * factor
        following_slope = slope * factor - following / (a + number)
        return (
            number + 1,
            following,
            following_slope,
            total + following,
            total_slope + following_slope,
        )

    one, zero = np.ones_like(x), np.zeros_like(x)
    start = (np.ones((), x.dtype), one, zero, one, zero)
    _, _, _, total, total_slope = lax.while_loop(more, step, start)
    made = -((log_x - digamma(a + 1)) * total + total_slope) / a
    return np.where(np.isfinite(made), made, 0)


@functools.lru_cache(maxsize=256)
def _sampler(shape: Shape) -> Computation:
    return _recorded("log_gamma_sample", _sample, WORDS, shape)


@functools.lru_cache(maxsize=256)
def _sloper(shape: Shape) -> Computation:
    return _recorded("log_gamma_slope", _slope, shape, shape)


def _derivative(instruction: Instruction, cotangent: Any) -> Sequence[Any]:
    a = instruction.operands[1]
    slope = control.call(_sloper(instruction.array_shape), [a, instruction])
    return None, elementwise.mul(cotangent, slope)


def log_gamma_numbers(words: Tracer, a: Any) -> Any:
    """Logarithms of gamma numbers with parameters ``a``; narrow types are computed in f32."""
    element_type = a.element_type
    parameter = convert_element_type(a.instruction, wide(element_type))
    computation = _sampler(parameter.array_shape)
    made = control.call(computation, [words.instruction, parameter], _derivative)
    return lift(convert_element_type(made, element_type), False)


@drawn
def loggamma(words: Tracer, a: Any, shape: Any = None, dtype: Any = DEFAULT) -> Tracer:
    """The logarithm of `gamma`, exact where the number itself would vanish.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tj.random.loggamma(tj.random.key(0), 2.0, (2,)).round(4)
    array([-0.0361,  0.2159])
    """
    element_type = floating_type("loggamma", dtype)
    _, (parameter,) = parameters("loggamma", element_type, shape, a)
    return finished(log_gamma_numbers(words, parameter))


@drawn
def gamma(words: Tracer, a: Any, shape: Any = None, dtype: Any = DEFAULT) -> Tracer:
    """Numbers with density x**(a - 1) e**-x / Gamma(a); ``a`` broadcasts to ``shape``.

    NaN for a negative ``a``. The derivative by ``a`` is that of the quantiles.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tj.random.gamma(tj.random.key(0), 2.0, (2,)).round(4)
    array([0.9645, 1.241 ])
    """
    element_type = floating_type("gamma", dtype)
    _, (parameter,) = parameters("gamma", element_type, shape, a)
    return finished(np.exp(log_gamma_numbers(words, parameter)))


@drawn
def beta(words: Tracer, a: Any, b: Any, shape: Any = None, dtype: Any = DEFAULT) -> Tracer:
    """Numbers in [0, 1] with density proportional to x**(a - 1) (1 - x)**(b - 1).

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tj.random.beta(tj.random.key(0), 2.0, 3.0, (2,)).round(4)
    array([0.6557, 0.7272])
    """
    element_type = floating_type("beta", dtype)
    _, (first, second) = parameters("beta", element_type, shape, a, b)
    keys = pair(words)
    logs = [log_gamma_numbers(k, p) for k, p in zip(keys, (first, second), strict=True)]
    top = np.maximum(*logs)
    left, right = (np.exp(log - top) for log in logs)
    return finished(left / (left + right))


@drawn
def dirichlet(words: Tracer, alpha: Any, shape: Any = None, dtype: Any = DEFAULT) -> Tracer:
    """Vectors of positive numbers that sum to 1, along a last dimension like ``alpha``'s.

    ``shape`` is that of the result without this dimension.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.random.dirichlet(tj.random.key(0), np.ones(3)).round(4)
    array([0.3903, 0.6042, 0.0055])
    """
    element_type = floating_type("dirichlet", dtype)
    count = np.shape(alpha)[-1]
    dimensions = None if shape is None else (*sizes(shape), count)
    _, (parameter,) = parameters("dirichlet", element_type, dimensions, alpha)
    logs = log_gamma_numbers(words, parameter)
    weights = np.exp(logs - logs.max(-1, keepdims=True))
    return finished(weights / weights.sum(-1, keepdims=True))


def _chisquare(words: Tracer, df: Any) -> Any:
    return np.exp(log_gamma_numbers(words, df * 0.5)) * 2


@drawn
def chisquare(words: Tracer, df: Any, shape: Any = None, dtype: Any = DEFAULT) -> Tracer:
    """Sums of the squares of ``df`` standard normal numbers.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tj.random.chisquare(tj.random.key(0), 2.0, (2,)).round(4)
    array([0.5326, 0.8245])
    """
    element_type = floating_type("chisquare", dtype)
    _, (freedom,) = parameters("chisquare", element_type, shape, df)
    return finished(_chisquare(words, freedom))


@drawn
def f(words: Tracer, dfnum: Any, dfden: Any, shape: Any = None, dtype: Any = DEFAULT) -> Tracer:
    """Quotients of two `chisquare` numbers, each over its degrees of freedom.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tj.random.f(tj.random.key(0), 2.0, 3.0, (2,)).round(4)
    array([4.4405, 6.5604])
    """
    element_type = floating_type("f", dtype)
    _, (over, under) = parameters("f", element_type, shape, dfnum, dfden)
    first, second = pair(words)
    return finished((_chisquare(first, over) / over) / (_chisquare(second, under) / under))


@drawn
def t(words: Tracer, df: Any, shape: Any = None, dtype: Any = DEFAULT) -> Tracer:
    """Student's distribution with ``df`` degrees of freedom.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tj.random.t(tj.random.key(0), 3.0, (2,)).round(4)
    array([ 2.4557, -0.5106])
    """
    element_type = floating_type("t", dtype)
    _, (freedom,) = parameters("t", element_type, shape, df)
    first, second = pair(words)
    half = freedom * 0.5
    scale = np.sqrt(half / np.exp(log_gamma_numbers(second, half)))
    return finished(normals(first, half) * scale)


def _generalized(words: Tracer, p: Any) -> Any:
    first, second = pair(words)
    size = np.exp(log_gamma_numbers(first, 1 / p) / p)
    side = lift(interval(second.instruction, p.shape, ElementType.F64), False) < 0.5
    return np.where(side, size, -size)


@drawn
def generalized_normal(words: Tracer, p: Any, shape: Any = None, dtype: Any = DEFAULT) -> Tracer:
    """Numbers with density proportional to exp(-|x|**p).

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tj.random.generalized_normal(tj.random.key(0), 2.0, (2,)).round(4)
    array([ 0.6101, -0.6328])
    """
    element_type = floating_type("generalized_normal", dtype)
    _, (power,) = parameters("generalized_normal", element_type, shape, p)
    return finished(_generalized(words, power))


@drawn
def ball(words: Tracer, d: int, p: float = 2, shape: Any = (), dtype: Any = DEFAULT) -> Tracer:
    """Vectors of ``d`` numbers uniform in the ball of radius 1 of the p-norm.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit and `ConcretizationError` for an option that is unknown while tracing.

    >>> tj.random.ball(tj.random.key(0), 2).round(4)
    array([-0.769 , -0.5373])
    """
    element_type = floating_type("ball", dtype)
    dimensions = (*sizes(shape), d)
    first, second = pair(words)
    _, (power,) = parameters("ball", element_type, dimensions, p)
    g = _generalized(first, power)
    e = -np.log1p(-lift(interval(second.instruction, sizes(shape), element_type), False))
    length = ((np.abs(g) ** power).sum(-1) + e)[..., None]
    return finished(g / length ** (1 / power))
