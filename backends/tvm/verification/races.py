"""Proofs that the iterations of a parallel loop write to disjoint memory.

    for access in races(accesses): ...      # stores that were not proven

No other iteration may touch an element that one stores to: offsets have to be a multiple of the
loop variable plus a remainder smaller than its coefficient.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from tracejit.backends.tvm.verification.accesses import Access, KernelBuffer, Loop, flat
from tracejit.backends.tvm.verification.constraints import tight
from tracejit.backends.tvm.verification.linear import Linear, Symbol


def races(accesses: Sequence[Access]) -> Iterator[Access]:
    """Stores in a parallel loop to elements that another iteration may touch."""
    touched: dict[tuple[Symbol, KernelBuffer], list[Access]] = defaultdict(list)
    for access in accesses:
        loop = _parallel(access)
        # A local buffer of a loop is a new one in each iteration.
        if loop is not None and access.memory.depth <= access.loops.index(loop):
            touched[loop.symbol, access.memory].append(access)
    for (symbol, memory), each in touched.items():
        stores = [access for access in each if access.is_store]
        if stores and not _are_apart(each, memory, symbol):
            yield stores[0]


def _parallel(access: Access) -> Loop | None:
    return next((loop for loop in access.loops if loop.is_parallel), None)


def _are_apart(accesses: Sequence[Access], memory: KernelBuffer, symbol: Symbol) -> bool:
    """Whether offsets at different values of ``symbol`` are always different."""
    places = [flat(access.indices, memory.shape) for access in accesses]
    coefficient = places[0].terms.get(symbol, 0)
    first = _outside(places[0], symbol)
    low, high = 0, 0
    for number, place in enumerate(places):
        if place.terms.get(symbol, 0) != coefficient or _outside(place, symbol).key != first.key:
            return False
        inside = {s: c for s, c in place.terms.items() if s.serial > symbol.serial}
        own = [fact for fact in accesses[number].facts if fact.terms]
        least, most = tight(Linear(place.constant, inside), own, Linear.bounds)
        low, high = (least, most) if number == 0 else (min(low, least), max(high, most))
    return high - low < abs(coefficient)


def _outside(place: Linear, symbol: Symbol) -> Linear:
    """The part of an offset that is equal in all iterations."""
    return Linear(0, {s: c for s, c in place.terms.items() if s.serial < symbol.serial})
