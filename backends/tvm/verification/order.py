"""The order of a kernel's accesses: moments as linear functions of the loop variables.

    moments = ordered(accesses)         # an earlier access has a lesser moment

The accesses of one iteration of a loop are consecutive, and the next iteration follows.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from tracejit.backends.tvm.verification.accesses import Access, EnclosingLoop
from tracejit.backends.tvm.verification.linear import Linear, Symbol

_MOST_ITERATIONS = 1 << 40
"""More moments than any loop other than a while loop has."""


def ordered(accesses: Sequence[Access]) -> list[Linear]:
    """The moment of each access; in a while loop, the one in its first iteration."""
    constants = [0] * len(accesses)
    terms: list[dict[Symbol, int]] = [{} for _ in accesses]
    _order(accesses, range(len(accesses)), 0, constants, terms)
    return [Linear(c, t) for c, t in zip(constants, terms, strict=True)]


def _order(
    accesses: Sequence[Access],
    numbers: Sequence[int],
    depth: int,
    constants: list[int],
    terms: list[dict[Symbol, int]],
) -> int:
    """Assign moments to accesses in order; returns the number of moments they take."""

    def loop_of(number: int) -> EnclosingLoop | None:
        loops = accesses[number].loops
        return loops[depth] if depth < len(loops) else None

    now = 0
    for loop, group in itertools.groupby(numbers, loop_of):
        inside = list(group)
        for place, number in enumerate(inside):
            constants[number] += now + (place if loop is None else 0)
        if loop is None:
            now += len(inside)
            continue
        size = _order(accesses, inside, depth + 1, constants, terms)
        iterations = loop.symbol.high - loop.symbol.low + 1
        if loop.is_vectorized or iterations >= _MOST_ITERATIONS:
            now += size
            continue
        for number in inside:
            terms[number][loop.symbol] = size
        now += size * iterations
    return now
