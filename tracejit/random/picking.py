"""Permutations, and picks from an array."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tracejit import lax
from tracejit.errors import ArgumentError, DimensionError, ShapeError
from tracejit.random.continuous import finished, gumbel_numbers
from tracejit.random.counting import random_bits, sizes, subkeys
from tracejit.random.discrete import integers_below
from tracejit.random.intervals import interval
from tracejit.random.keys import drawn
from tracejit.trace.convert import operand
from tracejit.trace.tracer import Tracer, lift

WORDS = 1 << 32


def shuffled(words: Tracer, x: Tracer, axis: int = 0) -> Any:
    """``x`` sorted by random words, so often that equal ones do not matter; each row by itself."""
    rounds = math.ceil(3 * math.log(max(1, x.size)) / math.log(WORDS - 1))
    for _ in range(rounds):
        words, subkey = subkeys(words, 2)
        order = lift(random_bits(subkey.instruction, x.shape, 32), False)
        _, x = lax.sort((order, x), dimension=axis, num_keys=1)
    return x


def _axis(function: str, axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise DimensionError(f"{function}: axis {axis} is out of range for rank {rank}")
    return axis % rank


def _counted_or_given(function: str, x: Any) -> Tracer:
    """An array as it is, or the numbers 0 … n - 1 for an integer n."""
    if np.ndim(x):
        return lift(operand(x).natural, False)
    try:
        count = x.__index__()
    except (AttributeError, TypeError):
        raise ArgumentError(
            f"{function}: x must be an array or an integer, not a {type(x).__name__}"
        ) from None
    made: Tracer = lift(operand(np.arange(count)).natural, False)
    return made


@drawn
def permutation(words: Tracer, x: Any, axis: int = 0, independent: bool = False) -> Any:
    """An array shuffled along ``axis``, or the numbers 0 … x - 1 in random order.

    With ``independent`` every row along the axis is shuffled by itself.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tj.random.permutation(tj.random.key(0), 5)
    array([0, 1, 4, 3, 2])
    """
    array = _counted_or_given("permutation", x)
    place = _axis("permutation", axis, array.ndim)
    if independent or array.ndim == 1:
        return shuffled(words, array, place)
    places = lift(operand(np.arange(array.shape[place])).natural, False)
    made: Any = np.take(array, shuffled(words, places), place)
    return made


@drawn
def choice(
    words: Tracer,
    a: Any,
    shape: Any = (),
    replace: bool = True,
    p: Any = None,
    axis: int = 0,
) -> Tracer:
    """Picks from an array along ``axis``, or from 0 … a - 1, with probabilities ``p``.

    Without ``replace`` no place is picked twice. Raises `ShapeError` when there are too few.

    >>> tj.random.choice(tj.random.key(0), 5, (3,))
    array([0, 1, 0])
    """
    array = _counted_or_given("choice", a)
    place = _axis("choice", axis, array.ndim)
    dimensions = sizes(shape)
    count, picks = array.shape[place], math.prod(dimensions)
    if picks and not count:
        raise ShapeError("choice: there is nothing to pick from")
    if not replace and picks > count:
        raise ShapeError(f"choice: {picks} picks without repetition from {count}")
    places = _places(words, count, picks, dimensions, replace, p)
    return finished(np.take(array, places.reshape(dimensions), place))


def _places(
    words: Tracer, count: int, picks: int, dimensions: tuple[int, ...], replace: bool, p: Any
) -> Any:
    if p is None:
        if replace:
            span = lift(operand(np.uint64(max(count, 1))).natural)
            return integers_below(words, dimensions, span).astype(np.int64)
        numbers = lift(operand(np.arange(count)).natural, False)
        return shuffled(words, numbers)[:picks]
    chances = lift(operand(p).natural, False)
    if chances.shape != (count,):
        raise ShapeError(f"choice: p must have shape {(count,)}, not {chances.shape}")
    if not chances.element_type.is_floating:
        chances = chances.astype(np.float64)
    if replace:
        total = np.cumsum(chances)
        u = lift(interval(words.instruction, dimensions, chances.element_type), False)
        found: Any = np.searchsorted(total, total[-1] * (1 - u))
        return found
    noise = gumbel_numbers(words, (count,), chances.element_type)
    _, best = lax.top_k(noise + np.log(chances), picks)
    return best
