"""Words of 32 bits as NumPy arrays, and the generators on many of them at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit.ops.random_words import threefry_2x32

# Counters worked on at once, so that they stay in the processor's cache.
BLOCK = 1 << 13

Generate = Callable[[np.ndarray], Sequence[np.ndarray]]


class _Arrays:
    """Words as arrays of uint32."""

    def number(self, value: int) -> Any:
        return np.asarray(value, np.uint32)

    def add(self, lhs: Any, rhs: Any) -> Any:
        return np.add(lhs, rhs)

    def xor(self, lhs: Any, rhs: Any) -> Any:
        return np.bitwise_xor(lhs, rhs)

    def rotate(self, word: Any, by: int) -> Any:
        return np.bitwise_or(word << np.uint32(by), word >> np.uint32(32 - by))

    def product(self, word: Any, factor: int) -> tuple[Any, Any]:
        low, high = halves(np.multiply(word, np.uint64(factor), dtype=np.uint64))
        return high, low


ARRAYS = _Arrays()


def halves(wide: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lower and the upper 32 bits of 64."""
    return wide.astype(np.uint32), (wide >> np.uint64(32)).astype(np.uint32)


def counted(count: int, words: int, generate: Generate) -> list[np.ndarray]:
    """``generate`` for the counters 0 … count - 1, block by block: ``words`` arrays."""
    made = [np.empty(count, np.uint32) for _ in range(words)]
    for start in range(0, count, BLOCK):
        end = min(start + BLOCK, count)
        for target, part in zip(
            made, generate(np.arange(start, end, dtype=np.uint64)), strict=True
        ):
            target[start:end] = part
    return made


def joined(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    made: np.ndarray = low | high.astype(np.uint64) << np.uint64(32)
    return made


def threefry(*words: np.ndarray) -> np.ndarray:
    """Both words of ThreeFry for arrays (key, key, counter, counter), as `ops.random_maps` says."""
    shape = words[0].shape
    flat = [_flat(word) for word in words]
    made = np.empty(words[0].size, np.uint64)
    for start in range(0, made.size, BLOCK):
        parts = [word[start : start + BLOCK] if word.ndim else word for word in flat]
        first, second = threefry_2x32(ARRAYS, (parts[0], parts[1]), (parts[2], parts[3]))
        made[start : start + BLOCK] = joined(first, second)
    return made.reshape(shape)


def _flat(word: np.ndarray) -> np.ndarray:
    """The elements in order, or the one that all of them are."""
    if word.size and not any(word.strides):
        return np.asarray(word.flat[0])
    return word.reshape(-1)
