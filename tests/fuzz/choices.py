"""Decisions that a generator makes, each one an integer, so that hypothesis can shrink them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """``integer(low, high)`` decides, both ends included; the lower a number, the simpler."""

    def __init__(self, integer: Callable[[int, int], int]) -> None:
        self.integer = integer

    def pick(self, options: Sequence[T]) -> T:
        """One of ``options``, the simplest of which come first."""
        return options[self.integer(0, len(options) - 1)]

    def chance(self, one_in: int) -> bool:
        """True once in so many times; False is simpler."""
        return self.integer(0, one_in - 1) == one_in - 1

    def some(self, options: Sequence[T], one_in: int = 2) -> list[T]:
        """Some of ``options``, in order."""
        return [option for option in options if self.chance(one_in)]

    def permutation(self, count: int) -> list[int]:
        """The numbers below ``count`` in some order."""
        left = list(range(count))
        return [left.pop(self.integer(0, len(left) - 1)) for _ in range(count)]
