"""Integers and truth values, and picks from a few with given probabilities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tracejit import lax
from tracejit.errors import ElementTypeError, ShapeError
from tracejit.random.continuous import finished, gumbel_numbers
from tracejit.random.counting import random_bits, sizes, subkeys
from tracejit.random.intervals import DEFAULT, interval, parameters
from tracejit.random.keys import drawn
from tracejit.shapes import ElementType, element_type_of
from tracejit.trace.convert import broadcast_dimensions, converted, operand, stretch
from tracejit.trace.tracer import Tracer, lift


def integer_type(function: str, dtype: Any) -> ElementType:
    """The element type of an integer dtype. Raises `ElementTypeError` for another one."""
    element_type = element_type_of(dtype)
    if not element_type.is_integral or element_type.bits < 8:
        raise ElementTypeError(f"{function}: dtype must be an integer's, not {element_type}")
    return element_type


def integers_below(words: Tracer, dimensions: tuple[int, ...], span: Tracer) -> Tracer:
    """Integers from 0 to span - 1, of span's dtype, uint32 or uint64; span may be one number.

    Twice the bits are drawn, so that no number is favoured noticeably.
    """
    width = span.element_type.bits
    upper, lower = (
        lift(random_bits(key.instruction, dimensions, width), False) for key in subkeys(words, 2)
    )
    # upper * 2**width + lower, modulo span, without a product that overflows first
    half = np.array(1 << (width // 2), span.dtype) % span
    made: Tracer = ((upper % span) * ((half * half) % span) + lower % span) % span
    return made


@drawn
def randint(words: Tracer, shape: Any, minval: Any, maxval: Any, dtype: Any = np.int64) -> Tracer:
    """Integers uniform in [minval, maxval); ``minval`` where maxval <= minval.

    Raises `ArgumentError` for what is no array of numbers and `AttributeValueError` for an
    option or a size out of range.

    >>> tj.random.randint(tj.random.key(0), (3,), 0, 10)
    array([5, 1, 5])
    """
    element_type = integer_type("randint", dtype)
    dimensions = sizes(shape)
    wide = ElementType.S64 if element_type.bits == 64 else ElementType.S32
    if not element_type.is_signed:
        wide = ElementType.U64 if element_type.bits == 64 else ElementType.U32
    low, high = (
        lift(stretch("randint", operand(bound).to(wide), dimensions), False)
        for bound in (minval, maxval)
    )
    unsigned = np.dtype(f"u{wide.bits // 8}")
    span: Any = np.where(high > low, (high - low).astype(unsigned), np.array(1, unsigned))
    offset = integers_below(words, dimensions, span)
    return finished((low + offset.astype(wide.dtype)).astype(element_type.dtype))


@drawn
def bernoulli(words: Tracer, p: Any = 0.5, shape: Any = None) -> Tracer:
    """True with probability ``p``, a number or an array that broadcasts to ``shape``.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tj.random.bernoulli(tj.random.key(0), 0.5, (3,))
    array([ True,  True, False])
    """
    given = operand(p)
    element_type = given.element_type if given.element_type.is_floating else ElementType.F64
    dimensions, (chance,) = parameters("bernoulli", element_type, shape, p)
    u = lift(interval(words.instruction, dimensions, element_type), False)
    return finished(u < chance)


@drawn
def rademacher(words: Tracer, shape: Any = (), dtype: Any = np.int64) -> Tracer:
    """1 or -1, each with probability 1/2.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tj.random.rademacher(tj.random.key(0), (3,))
    array([ 1,  1, -1])
    """
    u = lift(interval(words.instruction, sizes(shape), ElementType.F64), False)
    made = converted((u < 0.5).instruction, element_type_of(dtype))
    return finished(lift(made, False) * 2 - 1)


@drawn
def categorical(
    words: Tracer,
    logits: Any,
    axis: int = -1,
    shape: Any = None,
    replace: bool = True,
) -> Tracer:
    """Places along ``axis``, i with probability proportional to exp(logits[i]).

    ``shape`` is that of the result, whose last dimensions are those of ``logits`` without
    ``axis``. With ``replace=False`` the dimensions before them count picks without repetition.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tj.random.categorical(tj.random.key(0), np.log([0.1, 0.9]), shape=(4,))
    array([1, 0, 1, 1])
    """
    given = lift(operand(logits).natural, False)
    table: Any = given if given.element_type.is_floating else given.astype(DEFAULT)
    if not -table.ndim <= axis < table.ndim:
        raise ShapeError(f"categorical: axis {axis} is out of range for logits {table.shape}")
    table = np.moveaxis(table, axis, -1)
    batch, count = table.shape[:-1], table.shape[-1]
    dimensions = batch if shape is None else sizes(shape)
    prefix = dimensions[: len(dimensions) - len(batch)]
    if broadcast_dimensions("categorical", [dimensions[len(prefix) :], batch]) != dimensions[
        len(prefix) :
    ] or len(dimensions) < len(batch):
        raise ShapeError(
            f"categorical: shape {dimensions} does not end with the dimensions of logits {batch}"
        )
    if replace:
        noise = _noise(words, prefix, dimensions[len(prefix) :], count, axis, table)
        return finished(np.argmax(noise + table, -1))
    picks = math.prod(prefix)
    if picks > count:
        raise ShapeError(
            f"categorical: {picks} picks without repetition need as many categories, not {count}"
        )
    noise = _noise(words, (), dimensions[len(prefix) :], count, axis, table)
    _, places = lax.top_k(noise + table, picks)
    return finished(np.moveaxis(places, -1, 0).reshape(dimensions).astype(np.int64))


def _noise(
    words: Tracer,
    prefix: tuple[int, ...],
    batch: tuple[int, ...],
    count: int,
    axis: int,
    table: Tracer,
) -> Any:
    """Gumbel numbers drawn in the order of the logits as they were given, ``axis`` moved last."""
    place = axis % table.ndim
    sizes_ = (*prefix, *batch[:place], count, *batch[place:])
    numbers: Any = gumbel_numbers(words, sizes_, table.element_type)
    return np.moveaxis(numbers, len(prefix) + place, -1)


@drawn
def geometric(words: Tracer, p: Any, shape: Any = None, dtype: Any = np.int64) -> Tracer:
    """How many trials of success ``p`` it takes until one succeeds: 1, 2, ...

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tj.random.geometric(tj.random.key(0), 0.5, (3,))
    array([2, 3, 1])
    """
    element_type = element_type_of(dtype)
    dimensions, (chance,) = parameters("geometric", ElementType.F64, shape, p)
    tiny = float(np.finfo(np.float64).tiny)
    u = lift(interval(words.instruction, dimensions, ElementType.F64, tiny, 1.0), False)
    made = np.floor(np.log(u) / np.log1p(-chance)) + 1
    return finished(made.astype(element_type.dtype))
