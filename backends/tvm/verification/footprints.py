"""A kernel's footprint on one buffer: elements read before they are written, and elements written.

made = footprint(memory, accesses, moments)
made.written                # elements that the kernel certainly writes
for read in made.reads: ... # loads of elements that may not have been written before
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracejit.backends.tvm.verification.accesses import Access, KernelBuffer, flat
from tracejit.backends.tvm.verification.enumeration import (
    MOST_ITERATIONS,
    Grid,
    UnknownNumbersError,
    enumerable,
    is_enumerable,
)
from tracejit.backends.tvm.verification.linear import Linear, Symbol, number

MOST_ELEMENTS = 1 << 26
"""The most elements of a buffer for which footprints are computed."""
_MOST_SPANS = 1 << 12
_MOST_VISITS = 1 << 24
"""The most iterations whose elements are listed one by one."""
_NEVER = np.iinfo(np.int64).max

Elements = np.ndarray
"""A boolean for each element of a buffer."""


@dataclass(frozen=True)
class Timed:
    """An access to the elements at ``place``, and the moment of each iteration.

    ``facts`` can be evaluated at each iteration; ``guards`` cannot.
    """

    access: Access
    place: Linear
    moment: Linear
    facts: tuple[Linear, ...]
    guards: tuple[int, ...]

    def visits(
        self, size: int, is_exact: bool, depth: int = 0, any_data: bool = False
    ) -> tuple[Any, Any]:
        """The elements and moments of all iterations that satisfy the known facts.

        ``is_exact`` requires all facts to be known. The moments are those of the first iteration
        of the outermost ``depth`` loops. With ``any_data`` an index from memory is any within its
        bounds. Raises `UnknownNumbersError`.
        """
        added = [] if is_enumerable([self.place, *self.facts], any_data) else self._added(any_data)
        terms = {s: c for s, c in self.place.terms.items() if s not in added}
        place = Linear(self.place.constant, terms)
        facts = self._facts(place, any_data)
        if is_exact and len(facts) < len(self.facts):
            raise UnknownNumbersError
        grid = Grid([place, *facts], any_data)
        outer = {loop.symbol for loop in self.access.loops[:depth]}
        loops = {*grid.loops, *added} - outer
        # The first iteration of all other loops.
        moment = Linear(
            self.moment.constant, {s: c for s, c in self.moment.terms.items() if s in loops}
        )
        if moment.bounds()[1] >= _NEVER:
            raise UnknownNumbersError
        holds: Any = np.ones(grid.shape, bool)
        for fact in facts:
            holds = holds & (grid.value(fact) >= 0)
        inner = Linear(moment.constant, {s: c for s, c in moment.terms.items() if s not in added})
        places = np.broadcast_to(grid.value(place), grid.shape)[holds]
        moments = np.broadcast_to(grid.value(inner), grid.shape)[holds]
        for symbol in added:
            if len(places) * (symbol.high - symbol.low + 1) > _MOST_VISITS:
                raise UnknownNumbersError
            values = np.arange(symbol.low, symbol.high + 1)[:, None]
            places = (places + self.place.terms[symbol] * values).reshape(-1)
            moments = (moments + moment.terms.get(symbol, 0) * values).reshape(-1)
        inside = (places >= 0) & (places < size)
        return places[inside], moments[inside]

    def _added(self, any_data: bool) -> list[Symbol]:
        """Loop variables that the offset is a sum of multiples of, and that nothing else depends
        on.
        """
        operands = (Linear.of(symbol) for symbol in self.place.terms if symbol.kind != "loop")
        facts = self.access.facts if any_data else self.facts
        used = {symbol for each in (*facts, *operands) for symbol in symbols(each)}
        return [s for s in self.place.terms if s.kind == "loop" and s not in used]

    def _facts(self, place: Linear, any_data: bool) -> list[Linear]:
        """The facts that can be evaluated together with a part of the offset."""
        if not any_data or is_enumerable([place]):
            return enumerable(place, self.facts)
        data = place.terms
        usable = [
            fact
            for fact in self.access.facts
            if is_enumerable([Linear(0, {s: c for s, c in fact.terms.items() if s not in data})])
        ]
        while usable and not is_enumerable([place, *usable], any_data):
            usable.pop()
        return usable

    def spans(self, size: int, depth: int) -> Iterator[tuple[slice, int, int]]:
        """Ranges with all elements that it may access, and their moments as in `visits`.

        There is one for each iteration of the outer loops.
        """
        outer: list[Symbol] = []
        for symbol in sorted(self.place.terms, key=lambda symbol: symbol.serial):
            extents = [s.high - s.low + 1 for s in (*outer, symbol)]
            if symbol.kind == "loop" and math.prod(extents) <= _MOST_SPANS:
                outer.append(symbol)
        around = {loop.symbol for loop in self.access.loops[:depth]}
        rest = {s: c for s, c in self.place.terms.items() if s not in outer}
        low, high = Linear(self.place.constant, rest).bounds()
        for values in itertools.product(*(range(s.low, s.high + 1) for s in outer)):
            at, moment, inner = 0, self.moment.constant, self.moment.constant
            for symbol, value in zip(outer, values, strict=True):
                at += self.place.terms[symbol] * value
                step = self.moment.terms.get(symbol, 0) * value
                moment += step
                inner += 0 if symbol in around else step
            yield slice(max(low + at, 0), max(min(high + at + 1, size), 0)), moment, inner

    def within(self, size: int) -> slice:
        """The range of all elements that it may access."""
        low, high = self.place.bounds()
        return slice(max(low, 0), max(min(high, size - 1) + 1, 0))

    def dense(self, size: int) -> slice | None:
        """The range of all elements that it accesses, if it certainly accesses each between its
        bounds.

        A fact about one loop variable narrows the variable.
        """
        if self.guards or any(symbol.kind != "loop" for symbol in self.place.terms):
            return None
        ranges = {symbol: (symbol.low, symbol.high) for symbol in self.place.terms}
        for fact in self.facts:
            if len(fact.terms) != 1 or not fact.terms.keys() <= ranges.keys():
                return None
            ((symbol, coefficient),) = fact.terms.items()
            low, high = ranges[symbol]
            # constant + coefficient * symbol >= 0
            if coefficient > 0:
                low = max(low, -(fact.constant // coefficient))
            else:
                high = min(high, fact.constant // -coefficient)
            if low > high:
                return None
            ranges[symbol] = low, high
        reached, first = 0, self.place.constant
        for symbol, step in sorted(self.place.terms.items(), key=lambda each: abs(each[1])):
            if abs(step) > reached + 1:
                return None
            low, high = ranges[symbol]
            reached += abs(step) * (high - low)
            first += step * (low if step > 0 else high)
        return slice(max(first, 0), max(min(first + reached + 1, size), 0))


@dataclass(frozen=True)
class Read:
    """A load of elements that may not have been written before, at ``moment`` or later."""

    timed: Timed
    footprint: Footprint

    def span(self) -> slice:
        return self.timed.within(self.footprint.size)

    def elements(self) -> Elements:
        """The elements that it may read before the kernel has written them."""
        made = np.zeros(self.footprint.size, bool)
        footprint = self.footprint
        depth, guarded = footprint.under(self.timed.guards)
        try:
            place, moment = self.timed.visits(footprint.size, False, any_data=True)
            _, inner = self.timed.visits(footprint.size, False, depth, any_data=True)
        except UnknownNumbersError:
            for span, moment, inner in self.timed.spans(footprint.size, depth):
                made[span] |= (moment < footprint.first[span]) & (inner < guarded[span])
            return made
        made[place[(moment < footprint.first[place]) & (inner < guarded[place])]] = True
        return made

    def certain(self) -> Elements:
        """The elements that it certainly reads before the kernel could have written them."""
        made = np.zeros(self.footprint.size, bool)
        if self.timed.guards:
            return made
        try:
            place, moment = self.timed.visits(self.footprint.size, is_exact=True)
        except UnknownNumbersError:
            return made
        made[place[moment < self.footprint.maybe[place]]] = True
        return made


class Footprint:
    """All accesses of a kernel to one buffer.

    ``first`` is the moment by which each element is certainly written, ``maybe`` the first moment
    at which it may be. Besides those of ``touched``, at most ``elsewhere`` elements are written,
    at data-dependent indices.
    """

    def __init__(self, memory: KernelBuffer, timed: Sequence[Timed], size: int) -> None:
        self.memory = memory
        self.size = size
        self.first = self.maybe = np.broadcast_to(np.int64(_NEVER), (size,))
        self._stores = [each for each in timed if each.access.is_store]
        self._common = _common_loops(timed)
        self._guarded: dict[tuple[int, ...], tuple[int, Any]] = {}
        self.touched: Elements = np.zeros(size, bool)
        self.elsewhere = 0
        if self._stores:
            self.first, self.maybe = np.full(size, _NEVER), np.full(size, _NEVER)
        for store in self._stores:
            self._store(store)
        self.reads = [
            Read(each, self)
            for number, each in enumerate(timed)
            if not each.access.is_store and not _follows_its_store(each, timed[:number])
        ]

    @property
    def written(self) -> Elements:
        return self.first < _NEVER

    def _store(self, store: Timed) -> None:
        span = store.within(self.size)
        run = store.dense(self.size)
        if run is not None and math.prod(s.high - s.low + 1 for s in store.place) > MOST_ITERATIONS:
            own = {s: c for s, c in store.moment.terms.items() if s in store.place.terms}
            begin, end = Linear(store.moment.constant, own).bounds()
            self.maybe[run] = np.minimum(self.maybe[run], min(begin, _NEVER - 1))
            self.first[run] = np.minimum(self.first[run], min(end, _NEVER - 1))
            self.touched[run] = True
            return
        if not store.guards:
            try:
                np.minimum.at(self.first, *store.visits(self.size, is_exact=True))
            except UnknownNumbersError:
                pass
        try:
            place, moment = store.visits(self.size, is_exact=False)
            np.minimum.at(self.maybe, place, moment)
            self.touched[place] = True
        except UnknownNumbersError:
            loops = {loop.symbol for loop in store.access.loops} | symbols(store.place)
            self.elsewhere += math.prod(symbol.high - symbol.low + 1 for symbol in loops)
            begin = min(store.moment.constant, _NEVER - 1)
            self.maybe[span] = np.minimum(self.maybe[span], begin)

    def under(self, guards: tuple[int, ...]) -> tuple[int, Any]:
        """The moments at which stores under the same conditions have certainly written each
        element.

        Returns the number of loops around the conditions, and the moments in their first
        iteration.
        """
        made = self._guarded.get(guards)
        if made is not None:
            return made
        depth = self._depth(guards)
        moments = self.first
        stores = [
            each
            for each in self._stores
            if each.guards
            and set(guards).issuperset(each.guards)
            and not _depends(each, self._depth(each.guards))
        ]
        if stores:
            moments = moments.copy()
        for store in stores:
            try:
                np.minimum.at(moments, *store.visits(self.size, is_exact=True))
            except UnknownNumbersError:
                continue
        self._guarded[guards] = depth, moments
        return depth, moments

    def _depth(self, guards: tuple[int, ...]) -> int:
        """The number of loops around conditions."""
        return max((self._common[guard] for guard in guards), default=0)


def _common_loops(timed: Sequence[Timed]) -> dict[int, int]:
    """An upper bound on the number of loops around each condition: loops common to its accesses."""
    found: dict[int, tuple[Symbol, ...]] = {}
    for each in timed:
        loops = tuple(loop.symbol for loop in each.access.loops)
        for guard in each.guards:
            known = found.get(guard, loops)
            same = itertools.takewhile(lambda p: p[0] is p[1], zip(known, loops, strict=False))
            found[guard] = tuple(symbol for symbol, _ in same)
    return {guard: len(loops) for guard, loops in found.items()}


def _depends(timed: Timed, depth: int) -> bool:
    """Whether the elements depend on the outermost loops."""
    outer = {loop.symbol for loop in timed.access.loops[:depth]}
    return any(outer & symbols(each) for each in (timed.place, *timed.facts))


def footprint(
    memory: KernelBuffer, own: Sequence[tuple[Access, Linear]], is_known: Callable[[Linear], bool]
) -> Footprint:
    """The footprint of a kernel's accesses to one buffer, in order, with their moments.

    ``is_known`` says which facts can be evaluated at every iteration. A local buffer of a loop is
    a new one in each iteration. Raises `UnknownNumbersError`.
    """
    around: dict[Symbol, None] = {}
    for access, _ in own:
        expressions = (*access.indices, *(fact for fact in access.facts if is_known(fact)))
        used = {symbol for each in expressions for symbol in symbols(each)}
        around |= {x.symbol: None for x in access.loops[: memory.depth] if x.symbol in used}
    base, size = Linear(0, {}), memory.size
    for symbol in around:
        base = base.add(Linear.of(symbol), size)
        size *= symbol.high + 1
    if size > MOST_ELEMENTS:
        raise UnknownNumbersError
    timed = []
    for access, moment in own:
        place = base.add(flat(access.indices, memory.shape))
        facts = tuple(fact for fact in access.facts if is_known(fact))
        unknown = tuple(-id(fact) for fact in access.facts if not is_known(fact))
        timed.append(Timed(access, place, moment, facts, access.guards + unknown))
    return Footprint(memory, _with_joined_runs(timed), size)


def _with_joined_runs(timed: Sequence[Timed]) -> list[Timed]:
    """Joins accesses to neighbouring runs to one access.

    Elements [a, a + n) and [a + n, a + m) are [a, a + m), whatever number n is read from memory.
    """
    made = list(timed)
    runs = [run for each in timed if (run := _run(each)) is not None]
    for first, second in itertools.permutations(runs, 2):
        extent = first.extent.add(second.extent)
        is_store = first.timed.access.is_store
        is_next = first.base.add(first.extent).key == second.base.key
        if not is_next or is_store != second.timed.access.is_store or not is_enumerable([extent]):
            continue
        symbol = Symbol("loop", 0, extent.bounds()[1] - 1)
        iteration = Linear.of(symbol)
        moments = sorted((first.moment, second.moment), key=lambda moment: moment.bounds()[1])
        facts = (extent.add(iteration, -1).plus(-1), *first.timed.facts, *second.timed.facts)
        guards = (*first.guards, *second.guards)
        place = first.base.add(iteration)
        joined = Timed(first.timed.access, place, moments[is_store], facts, guards)
        if is_store:
            made.append(joined)
        elif {first.timed, second.timed} <= set(made):
            made[min(made.index(first.timed), made.index(second.timed))] = joined
            made = [each for each in made if each is not first.timed and each is not second.timed]
    return made


@dataclass(frozen=True)
class _Run:
    """An access to ``extent`` elements from ``base`` on, which are those of ``symbol``."""

    timed: Timed
    symbol: Symbol
    base: Linear
    extent: Linear
    guards: tuple[int, ...]

    @property
    def moment(self) -> Linear:
        """The moment of the last element that is stored, or of the first that is loaded."""
        end = self.symbol.high if self.timed.access.is_store else self.symbol.low
        return self.timed.moment.replace(self.symbol, number(end))


def _run(timed: Timed) -> _Run | None:
    """The run of an access, if its extent is read from memory."""
    for fact in timed.access.facts:
        for symbol, coefficient in fact.terms.items():
            if coefficient != -1 or timed.place.terms.get(symbol) != 1 or symbol.kind != "loop":
                continue
            base = timed.place.replace(symbol, number(0))
            guards = tuple(guard for guard in timed.guards if guard != -id(fact))
            if len(guards) < len(timed.guards):
                return _Run(timed, symbol, base, fact.add(Linear.of(symbol)).plus(1), guards)
    return None


def symbols(value: Linear) -> set[Symbol]:
    """All loop variables that a value depends on."""
    found: set[Symbol] = set()
    for symbol in value.terms:
        if symbol.kind == "loop":
            found.add(symbol)
        for operand in symbol.operands:
            if isinstance(operand, Linear):
                found |= symbols(operand)
            elif not isinstance(operand, int):
                for fact in operand.facts:
                    found |= symbols(fact)
    return found


def _follows_its_store(load: Timed, before: Sequence[Timed]) -> bool:
    """Whether an earlier store of the same iteration, in all loops around both, writes the same
    element.
    """
    facts, guards = {fact.key for fact in load.facts}, {*load.guards}
    own = symbols(load.place)
    for store in before:
        access = store.access
        if not access.is_store or not guards.issuperset(store.guards):
            continue
        if store.place.key == load.place.key:
            shared = {a.symbol for a in access.loops} & {a.symbol for a in load.access.loops}
            if own <= shared and facts.issuperset(fact.key for fact in store.facts):
                return True
    return False
