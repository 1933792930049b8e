"""ThreeFry on arrays of words: a Map of one computation, which backends know by its identity.

threefry(key_0, key_1, counter_0, counter_1)      u64 of the same dimensions
"""

from __future__ import annotations

import functools

from tracejit.graph import Computation, Instruction
from tracejit.ops.constants import constant, parameter
from tracejit.ops.control import map_
from tracejit.ops.element_types import convert_element_type
from tracejit.ops.elementwise import add, mul, or_, shift_left, shift_right_logical, xor
from tracejit.ops.random_words import threefry_2x32
from tracejit.shapes import ElementType, Shape


def _number(value: int) -> Instruction:
    return constant(value, ElementType.U32)


class _Scalars:
    """Words as scalar instructions; see `random_words`."""

    def number(self, value: int) -> Instruction:
        return _number(value)

    def add(self, lhs: Instruction, rhs: Instruction) -> Instruction:
        return add(lhs, rhs)

    def xor(self, lhs: Instruction, rhs: Instruction) -> Instruction:
        return xor(lhs, rhs)

    def rotate(self, word: Instruction, by: int) -> Instruction:
        return or_(shift_left(word, _number(by)), shift_right_logical(word, _number(32 - by)))

    def product(self, word: Instruction, factor: int) -> tuple[Instruction, Instruction]:
        wide = mul(convert_element_type(word, ElementType.U64), constant(factor, ElementType.U64))
        high = shift_right_logical(wide, constant(32, ElementType.U64))
        return convert_element_type(high, ElementType.U32), convert_element_type(
            wide, ElementType.U32
        )


@functools.cache
def threefry_computation() -> Computation:
    """ThreeFry of scalars: (u32[], u32[], u32[], u32[]) -> u64[], the first word low."""
    words = tuple(parameter(i, Shape(ElementType.U32)) for i in range(4))
    first, second = threefry_2x32(_Scalars(), (words[0], words[1]), (words[2], words[3]))
    low, high = (convert_element_type(word, ElementType.U64) for word in (first, second))
    root = or_(low, shift_left(high, constant(32, ElementType.U64)))
    return Computation("threefry_2x32", words, root)


def threefry(
    key_0: Instruction, key_1: Instruction, counter_0: Instruction, counter_1: Instruction
) -> Instruction:
    """Both words of ThreeFry for u32 arrays of equal dimensions, as u64, the first word low."""
    return map_([key_0, key_1, counter_0, counter_1], threefry_computation())
