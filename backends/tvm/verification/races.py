"""Proofs that the iterations of a parallel loop write to disjoint memory.

    for access in races(accesses): ...      # stores that were not proven

No other iteration may touch an element that one stores to: offsets have to be a multiple of the
loop variable plus a remainder smaller than its coefficient. Other offsets are computed for every
iteration, if there are not too many.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from tracejit.backends.tvm.verification.accesses import Access, EnclosingLoop, KernelBuffer, flat
from tracejit.backends.tvm.verification.constraints import tight
from tracejit.backends.tvm.verification.enumeration import Grid, UnknownNumbersError, enumerable
from tracejit.backends.tvm.verification.linear import Linear, Symbol

_MOST_ELEMENTS = 1 << 24


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
        if stores and not (_are_apart(each, memory, symbol) or _are_disjoint(each, memory, symbol)):
            yield stores[0]


def _parallel(access: Access) -> EnclosingLoop | None:
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


def _are_disjoint(accesses: Sequence[Access], memory: KernelBuffer, symbol: Symbol) -> bool:
    """Whether no element that an iteration stores to is touched by another, by enumeration.

    The iterations of loops around the parallel one are looked at one by one.
    """
    outer = {
        loop.symbol for a in accesses for loop in a.loops if loop.symbol.serial < symbol.serial
    }
    extents = {each: each.high + 1 for each in sorted(outer, key=lambda s: s.serial)}
    size = memory.size * math.prod(extents.values())
    if size > _MOST_ELEMENTS:
        return False
    first, last = np.full(size, np.iinfo(np.int64).max), np.full(size, -1)
    stored = np.zeros(size, bool)
    for access in accesses:
        place = flat(access.indices, memory.shape)
        for each, extent in extents.items():
            place = place.times(extent).add(Linear.of(each))
        iteration = Linear.of(symbol)
        try:
            facts = enumerable(place.add(iteration, size), access.facts)
            grid = Grid([place, iteration, *facts])
        except UnknownNumbersError:
            return False
        holds = np.ones(grid.shape, bool)
        for fact in facts:
            holds = holds & (grid.value(fact) >= 0)
        places = np.broadcast_to(grid.value(place), grid.shape)[holds]
        own = np.broadcast_to(grid.value(iteration), grid.shape)[holds]
        if places.size and not 0 <= places.min() <= places.max() < size:
            return False
        np.minimum.at(first, places, own)
        np.maximum.at(last, places, own)
        if access.is_store:
            stored[places] = True
    return not (stored & (first < last)).any()
