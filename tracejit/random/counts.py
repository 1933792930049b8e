"""Counts: the Poisson and the binomial distribution, by transformed rejection (Hörmann 1993)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit import lax
from tracejit.random.continuous import finished
from tracejit.random.counting import folded
from tracejit.random.discrete import integer_type
from tracejit.random.intervals import DEFAULT, floating_type, parameters
from tracejit.random.keys import drawn
from tracejit.random.rejection import log_gamma_function, pair, uniforms, until_accepted
from tracejit.shapes import ElementType
from tracejit.trace.stop_gradient import stopped
from tracejit.trace.tracer import Tracer, lift

# Below this mean counting is quicker than rejection, whose hat does not fit there.
FEW = 10.0
TINY = float(np.finfo(np.float64).tiny)


def _constant(x: Tracer) -> Any:
    """The value without a derivative: counts have none."""
    return lift(stopped(x.instruction), False)


def _waiting(words: Tracer, limit: Any, step_of: Any) -> Any:
    """How many steps of random length fit below ``limit``; ``step_of(u)`` is one's length."""

    def more(state: Any) -> Any:
        _, _, length = state
        return np.any(length <= limit)

    def step(state: Any) -> Any:
        number, count, length = state
        u = uniforms(folded(words.instruction, number.instruction), limit, TINY)
        inside = length <= limit
        longer = length + step_of(u)
        return (
            number + np.uint32(1),
            np.where(inside, count + 1, count),
            np.where(inside, longer, length),
        )

    zero = np.zeros_like(limit)
    _, count, _ = lax.while_loop(more, step, (np.uint32(0), zero, zero))
    return count - 1


def _many_poisson(words: Tracer, mean: Any, settled: Any) -> Any:
    """Hörmann's PTRS, for means of 10 and more; 0 where settled."""
    log_mean = np.log(mean)
    b = np.sqrt(mean) * 2.53 + 0.931
    a = b * 0.02483 - 0.059
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2)

    def attempt(key: Tracer) -> tuple[Any, Any]:
        one, two = pair(key)
        u = uniforms(one, mean) - 0.5
        v = uniforms(two, mean, TINY)
        distance = 0.5 - np.abs(u)
        k = np.floor((a * 2 / distance + b) * u + mean + 0.43)
        quick = (distance >= 0.07) & (v <= v_r)
        outside = (k < 0) | ((distance < 0.013) & (v > distance))
        weight = np.log(v * inverse_alpha / (a / (distance * distance) + b))
        exact = weight <= k * log_mean - mean - log_gamma_function(np.maximum(k, 0) + 1)
        return quick | (np.logical_not(outside) & exact), np.maximum(k, 0)

    return until_accepted(words, np.zeros_like(mean), attempt, settled)


@drawn
def poisson(words: Tracer, lam: Any, shape: Any = None, dtype: Any = np.int64) -> Tracer:
    """Counts with the Poisson distribution of mean ``lam``, which broadcasts to ``shape``.

    -1 where ``lam`` is no number, negative or infinite.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tj.random.poisson(tj.random.key(0), 3.0, (3,))
    array([2, 2, 2])
    """
    element_type = integer_type("poisson", dtype)
    _, (given,) = parameters("poisson", ElementType.F64, shape, lam)
    mean = _constant(given)
    valid = (mean >= 0) & (mean < np.inf)
    few, many = pair(words)
    counted = _waiting(few, np.where(mean < FEW, mean, 0), lambda u: -np.log(u))
    large = valid & (mean >= FEW)
    rejected = _many_poisson(many, np.where(large, mean, FEW), np.logical_not(large))
    made = np.where(valid, np.where(mean < FEW, counted, rejected), -1)
    return finished(made.astype(element_type.dtype))


def _many_binomial(words: Tracer, n: Any, p: Any, settled: Any) -> Any:
    """Hörmann's BTRS, for n p of 10 and more and p up to 1/2; 0 where settled."""
    deviation = np.sqrt(n * p * (1 - p))
    b = deviation * 2.53 + 1.15
    a = b * 0.0248 + p * 0.01 - 0.0873
    c = n * p + 0.5
    v_r = 0.92 - 4.2 / b
    alpha = (2.83 + 5.1 / b) * deviation
    odds = np.log(p / (1 - p))
    m = np.floor((n + 1) * p)
    top = log_gamma_function(m + 1) + log_gamma_function(n - m + 1)

    def attempt(key: Tracer) -> tuple[Any, Any]:
        one, two = pair(key)
        u = uniforms(one, n) - 0.5
        v = uniforms(two, n, TINY)
        distance = 0.5 - np.abs(u)
        k = np.floor((a * 2 / distance + b) * u + c)
        inside = (k >= 0) & (k <= n)
        safe = np.where(inside, k, 0)
        weight = np.log(v * alpha / (a / (distance * distance) + b))
        below = log_gamma_function(safe + 1) + log_gamma_function(n - safe + 1)
        exact = weight <= top - below + (safe - m) * odds
        quick = (distance >= 0.07) & (v <= v_r)
        return inside & (quick | exact), safe

    return until_accepted(words, np.zeros_like(n), attempt, settled)


@drawn
def binomial(words: Tracer, n: Any, p: Any, shape: Any = None, dtype: Any = DEFAULT) -> Tracer:
    """How many of ``n`` trials succeed, each with probability ``p``; both broadcast to ``shape``.

    NaN where n is negative or p is no probability.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tj.random.binomial(tj.random.key(0), 10, 0.5, (3,))
    array([5., 4., 5.])
    """
    element_type = floating_type("binomial", dtype)
    _, (trials, chance) = parameters("binomial", ElementType.F64, shape, n, p)
    count, p_given = np.floor(_constant(trials)), _constant(chance)
    valid = (count >= 0) & (count < np.inf) & (p_given >= 0) & (p_given <= 1)
    flips = p_given > 0.5
    q = np.where(valid, np.where(flips, 1 - p_given, p_given), 0)
    size = np.where(valid, count, 0)
    rare = size * q < FEW
    few, many = pair(words)
    # Waiting times between successes are geometric: log u / log(1 - q), rounded up.
    patience = np.where(rare & (q > 0), np.log1p(-np.where(rare, q, 0.5)), -1)
    limit = np.where(rare & (q > 0), size, 0)
    never = np.logical_not(rare & (q > 0))
    waited = _waiting(few, limit, lambda u: np.maximum(np.ceil(np.log(u) / patience), 1))
    waited = np.where(never, 0, waited)
    rejected = _many_binomial(many, np.where(rare, 40, size), np.where(rare, 0.5, q), rare)
    made = np.where(rare, waited, rejected)
    made = np.where(flips, size - made, made)
    return finished(np.where(valid, made, np.nan).astype(element_type.dtype))
