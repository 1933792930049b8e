"""What samplers by rejection share: a loop until every element is accepted, and log Gamma."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit import lax
from tracejit.random.counting import folded, subkeys
from tracejit.random.intervals import interval, standard_normal
from tracejit.shapes import ElementType
from tracejit.trace.tracer import Tracer, lift

Attempt = Callable[[Tracer], tuple[Any, Any]]


def until_accepted(words: Tracer, start: Any, attempt: Attempt, settled: Any = False) -> Any:
    """The first value accepted in each element: ``attempt(words) -> (accepted, values)``.

    Elements that are ``settled`` stay as in ``start``. Attempt number i has the key folded with i.
    """

    def more(state: Any) -> Any:
        _, accepted, _ = state
        return np.logical_not(np.all(accepted))

    def step(state: Any) -> Any:
        number, accepted, values = state
        passes, found = attempt(folded(words.instruction, number.instruction))
        return number + np.uint32(1), accepted | passes, np.where(accepted, values, found)

    _, _, values = lax.while_loop(more, step, (np.uint32(0), (start != start) | settled, start))
    return values


def normals(words: Tracer, like: Any) -> Any:
    """Standard normal numbers of the shape and dtype of ``like``."""
    return lift(standard_normal(words.instruction, like.shape, like.element_type), False)


def uniforms(words: Tracer, like: Any, low: float = 0.0) -> Any:
    """Numbers in [low, 1) of the shape and dtype of ``like``."""
    return lift(interval(words.instruction, like.shape, like.element_type, low, 1.0), False)


def pair(words: Tracer) -> tuple[Tracer, Tracer]:
    """Two keys made from one."""
    first, second = subkeys(words, 2)
    return first, second


# Bernoulli numbers B(2n) / (2n (2n - 1)) and B(2n) / (2n): the series of log Gamma and of its
# derivative.
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
_SHIFT = 8


def _series(x: Any, coefficients: tuple[float, ...]) -> Any:
    square = 1 / (x * x)
    total = square * coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        total = (total + coefficient) * square
    return total + coefficients[0]


def log_gamma_function(x: Any) -> Any:
    """log Gamma(x) for x > 0, by Stirling's series at x + 8."""
    product = x
    for i in range(1, _SHIFT):
        product = product * (x + i)
    far = x + _SHIFT
    stirling = (far - 0.5) * np.log(far) - far + 0.5 * math.log(2 * math.pi)
    return stirling + _series(far, _STIRLING) / far - np.log(product)


def digamma(x: Any) -> Any:
    """The derivative of log Gamma for x > 0, by its series at x + 8."""
    total = 1 / x
    for i in range(1, _SHIFT):
        total = total + 1 / (x + i)
    far = x + _SHIFT
    return np.log(far) - 0.5 / far - _series(far, _DIGAMMA) / (far * far) - total


def wide(element_type: ElementType) -> ElementType:
    """The type that a distribution of this type is computed in."""
    return element_type if element_type.bits >= 32 else ElementType.F32
