"""The counter-based generators, written once for everything that 32-bit words can be.

    threefry_2x32(words, key, counter)       2 words of output, for 2 of key and 2 of counter
    philox_4x32(words, key, counter)         4 words of output, for 2 of key and 4 of counter

A word is an unsigned integer of 32 bits whose sums wrap: a NumPy array in the interpreter, an
instruction while a graph is built, an expression of machine code in a kernel. Source: Salmon,
Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3" (SC 2011).
"""

from __future__ import annotations

from typing import Protocol, TypeVar

W = TypeVar("W")


class Words(Protocol[W]):
    """Arithmetic on words."""

    def number(self, value: int) -> W:
        """A constant."""

    def add(self, lhs: W, rhs: W) -> W:
        """The sum, modulo 2**32."""

    def xor(self, lhs: W, rhs: W) -> W:
        """Exclusive or."""

    def rotate(self, word: W, by: int) -> W:
        """The bits moved left by ``by`` places, those that leave coming in at the right."""

    def product(self, word: W, factor: int) -> tuple[W, W]:
        """The high and the low word of a product of 64 bits."""


THREEFRY_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
THREEFRY_PARITY = 0x1BD11BDA


def threefry_2x32(words: Words[W], key: tuple[W, W], counter: tuple[W, W]) -> tuple[W, W]:
    """ThreeFry with 20 rounds."""
    parity = words.xor(words.xor(key[0], key[1]), words.number(THREEFRY_PARITY))
    schedule = (key[0], key[1], parity)
    first = words.add(counter[0], schedule[0])
    second = words.add(counter[1], schedule[1])
    for group in range(5):
        for rotation in THREEFRY_ROTATIONS[group % 2]:
            first = words.add(first, second)
            second = words.xor(words.rotate(second, rotation), first)
        first = words.add(first, schedule[(group + 1) % 3])
        injected = words.add(schedule[(group + 2) % 3], words.number(group + 1))
        second = words.add(second, injected)
    return first, second


PHILOX_ROUNDS = 10
PHILOX_FACTORS = (0xD2511F53, 0xCD9E8D57)
PHILOX_WEYL = (0x9E3779B9, 0xBB67AE85)


def philox_4x32(words: Words[W], key: tuple[W, W], counter: tuple[W, W, W, W]) -> tuple[W, W, W, W]:
    """Philox with 10 rounds."""
    first, second, third, fourth = counter
    for step in range(PHILOX_ROUNDS):
        weyl = [words.number(step * constant & 0xFFFFFFFF) for constant in PHILOX_WEYL]
        keys = [words.add(part, offset) for part, offset in zip(key, weyl, strict=True)]
        high, low = words.product(first, PHILOX_FACTORS[0])
        other_high, other_low = words.product(third, PHILOX_FACTORS[1])
        first = words.xor(words.xor(other_high, second), keys[0])
        third = words.xor(words.xor(high, fourth), keys[1])
        second, fourth = other_low, low
    return first, second, third, fourth
