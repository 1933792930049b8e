"""Random bits by counting: element i is what ThreeFry makes of the key and the number i.

Numbers equal those of jax.random under its defaults: each element depends on its place alone.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tracejit.errors import ElementTypeError
from tracejit.graph import Instruction
from tracejit.numpy.manipulation import sizes_of
from tracejit.ops import elementwise
from tracejit.ops.constants import constant, iota
from tracejit.ops.element_types import convert_element_type
from tracejit.ops.layout import broadcast_in_dim, full, reshape, slice_
from tracejit.ops.random_maps import threefry
from tracejit.random.keys import (
    WORD,
    drawn,
    integer_operand,
    same_kind,
    words_of,
)
from tracejit.shapes import ElementType, Shape, element_type_of
from tracejit.trace.tracer import Tracer, lift

Size = int | tuple[int, ...] | list[int]
U64 = ElementType.U64


def sizes(shape: Any) -> tuple[int, ...]:
    """A shape as a tuple of sizes."""
    return sizes_of(shape)


def _parts(words: Instruction) -> tuple[Instruction, Instruction]:
    """The two words of a key, as scalars."""
    first, second = (reshape(slice_(words, (i,), (i + 1,)), ()) for i in range(2))
    return first, second


def _spread(word: Instruction, count: int) -> Instruction:
    return broadcast_in_dim(word, (count,), ())


def counted(words: Instruction, count: int) -> Instruction:
    """What ThreeFry makes of a key and each of the numbers 0 … count - 1: u64, first word low."""
    first, second = _parts(words)
    if count < 1 << 32:
        low = iota(Shape(WORD, (count,)), 0)
        high = full(Shape(WORD, (count,)), 0)
    else:
        number = iota(Shape(U64, (count,)), 0)
        low = convert_element_type(number, WORD)
        high = convert_element_type(_right(number, 32), WORD)
    return threefry(_spread(first, count), _spread(second, count), high, low)


def _right(value: Instruction, by: int) -> Instruction:
    return elementwise.shift_right_logical(
        value, broadcast_in_dim(constant(by, U64), value.array_shape.dimensions, ())
    )


def _left(value: Instruction, by: int) -> Instruction:
    return elementwise.shift_left(
        value, broadcast_in_dim(constant(by, U64), value.array_shape.dimensions, ())
    )


def flat_bits(words: Instruction, count: int, width: int) -> Instruction:
    """``count`` random words of 8, 16, 32 or 64 bits."""
    pair = counted(words, count)
    if width == 64:
        return elementwise.or_(_left(pair, 32), _right(pair, 32))
    mixed = elementwise.xor(pair, _right(pair, 32))
    return convert_element_type(
        convert_element_type(mixed, WORD), element_type_of(np.dtype(f"u{width // 8}"))
    )


def random_bits(words: Instruction, shape: tuple[int, ...], width: int) -> Instruction:
    """Random words of ``shape``."""
    return reshape(flat_bits(words, math.prod(shape), width), shape)


def subkeys(words: Tracer, count: int) -> list[Tracer]:
    """``count`` keys that are independent of one another: the words of each."""
    made = words_of(counted(words.instruction, count))
    return [made[i] for i in range(count)]


def folded(words: Instruction, number: Instruction) -> Tracer:
    """The words of the key that a key and a u32 number make."""
    first, second = _parts(words)
    zero = full(Shape(WORD, (1,)), 0)
    pair = threefry(_spread(first, 1), _spread(second, 1), zero, _spread(number, 1))
    return words_of(reshape(pair, ()))


@drawn
def _split(words: Tracer, shape: tuple[int, ...]) -> Tracer:
    pair = reshape(counted(words.instruction, math.prod(shape)), shape)
    return words_of(pair)


def split(key: Any, num: Any = 2) -> Any:
    """``num`` new keys made from one, which is not to be used again; ``num`` may be a shape.

    Raises `ArgumentError` for what is no key.

    >>> tj.random.split(tj.random.key(0)).shape
    (2,)
    """
    return same_kind(key, _split(key, sizes(num)))


@drawn
def _fold_in(words: Tracer, data: Any) -> Tracer:
    return folded(words.instruction, convert_element_type(integer_operand("fold_in", data), WORD))


def fold_in(key: Any, data: Any) -> Any:
    """A new key from a key and the lower 32 bits of an integer.

    Raises `ArgumentError` for what is no array of numbers and `ElementTypeError` for an element
    type that it does not take.

    >>> tj.random.key_data(tj.random.fold_in(tj.random.key(0), 7))
    array([2716826189,  292468403], dtype=uint32)
    """
    return same_kind(key, _fold_in(key, data))


_WIDTHS = {8, 16, 32, 64}


@drawn
def bits(words: Tracer, shape: Any = (), dtype: Any = np.uint64) -> Tracer:
    """Uniform random bits of an unsigned dtype: uint8, uint16, uint32 or uint64.

    Raises `ArgumentError` for what is no array of numbers and `ShapeError` for shapes that do
    not fit.

    >>> tj.random.bits(tj.random.key(0), (2,), np.uint32)
    array([4070199207, 4202968722], dtype=uint32)
    """
    element_type = element_type_of(dtype)
    if element_type.is_signed or not element_type.is_integral or element_type.bits not in _WIDTHS:
        raise ElementTypeError(f"bits: dtype must be an unsigned integer's, not {element_type}")
    made = random_bits(words.instruction, sizes(shape), element_type.bits)
    return lift(made)
