"""ThreeFry and Philox on vectors of words; LLVM sees one function for all rounds."""

from __future__ import annotations

from tracejit.backends.tvm.cpu.llvm.builder import Value
from tracejit.backends.tvm.cpu.llvm.kinds import KINDS
from tracejit.backends.tvm.cpu.mathematics.vocabulary import convert
from tracejit.ops.random_words import philox_4x32, threefry_2x32

WORD, DOUBLE_WORD = KINDS["uint32"], KINDS["uint64"]


class _Values:
    """Words as LLVM values, whose sums wrap; see `ops.random_words`."""

    def __init__(self, example: Value) -> None:
        self._example = example

    def number(self, value: int) -> Value:
        return self._example.like(value)

    def add(self, lhs: Value, rhs: Value) -> Value:
        return lhs + rhs

    def xor(self, lhs: Value, rhs: Value) -> Value:
        return lhs ^ rhs

    def rotate(self, word: Value, by: int) -> Value:
        function = word.function
        name = f"fshl.{function.suffix(word.kind)}"
        return function.call(word.kind, name, word, word, word.like(by))

    def product(self, word: Value, factor: int) -> tuple[Value, Value]:
        wide = convert(word, DOUBLE_WORD) * factor
        return convert(wide >> 32, WORD), convert(wide, WORD)


def _joined(low: Value, high: Value) -> Value:
    return convert(low, DOUBLE_WORD) | (convert(high, DOUBLE_WORD) << 32)


def threefry(key_0: Value, key_1: Value, counter_0: Value, counter_1: Value) -> Value:
    """The two words of ThreeFry as one of 64 bits, the first one low."""
    words = threefry_2x32(_Values(key_0), (key_0, key_1), (counter_0, counter_1))
    return _joined(*words)


def philox_low(k0: Value, k1: Value, c0: Value, c1: Value, c2: Value, c3: Value) -> Value:
    """The first two words of Philox as one of 64 bits, the first one low."""
    return _joined(*philox_4x32(_Values(k0), (k0, k1), (c0, c1, c2, c3))[:2])


def philox_high(k0: Value, k1: Value, c0: Value, c1: Value, c2: Value, c3: Value) -> Value:
    """The last two words of Philox as one of 64 bits, the third one low."""
    return _joined(*philox_4x32(_Values(k0), (k0, k1), (c0, c1, c2, c3))[2:])
