"""Which arrays the variables of a traced loop may be before, in and after its steps.

Each variable of a loop that a step binds anew has a value of its own from step to step. After the
loop it may be the array of before, where no step ran, an array of a variable of the step before
(``x, y = y, x``), or one array with another variable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.errors import ConcretizationError
from tracejit.graph import Instruction
from tracejit.ops import elementwise_unary
from tracejit.ops.layout import full
from tracejit.shapes import ElementType, Shape
from tracejit.trace.context import current_trace
from tracejit.trace.may_alias import (
    Shares,
    Way,
    aliases_of,
    is_written,
    lose,
    share_parts,
    shares_of,
    tick,
)
from tracejit.trace.tracer import Tracer
from tracejit.transforms.autograph.branch_aliases import origin
from tracejit.transforms.autograph.values import Detached, attached

Pair = tuple[int, int]


class Rotation:
    """Leaves of a loop's variables: as they are before, as a step gets them and leaves them."""

    def __init__(self, names: Sequence[str], before: Sequence[Any], entered: Sequence[Any]) -> None:
        self._names, self._before, self._entered = names, before, entered
        self._ends: list[Any] = []
        self.count = len(names)
        # Maps arrays to parameters: the copies themselves are written to.
        self._starts = [one.last if isinstance(one, Tracer) else None for one in entered]
        for one in self._roots():
            shares_of(one)  # says when it is read
        self._begun = tick()

    def _roots(self) -> list[Tracer]:
        """The arrays of before that a step works with copies of."""
        found = [one.root for one in self._before if _is_array(one) and type(one) is not Detached]
        return [one for one in found if not one.is_scalar and one.owner.alive]

    def leave(self, statement: str, ends: Sequence[Any], needed: set[Instruction]) -> None:
        """Takes the leaves at the end of a step. Raises `ConcretizationError` where copies of
        arrays that may alias are written to and read in it.
        """
        self._ends = list(ends)
        aliases = self._aliases()
        self._require_apart(statement, needed)
        for n, before in enumerate(self._before):
            if not self._is_written(n):
                continue
            sources = [x for m in self._reach(n) for x in self._sources(m)[1]]
            trace = current_trace()
            if not self._stays(n) and any(x.owner is not trace or x.is_lent for x in sources):
                name = self._names[n]
                raise ConcretizationError(
                    f"{statement}: a step writes to {name} and binds it to an array from before "
                    f"the loop, to which the next step would write; bind {name} to a copy of that"
                )
            if type(before) is not Detached and _is_array(before):
                shares = before.root.shares
                is_read = shares is not None and shares.read > self._begun
                if is_read or any(one.read > self._begun for one in aliases_of(before.root)):
                    self._refuse(statement, n, "another name, which the step reads")
            for pair in aliases:
                other = sum(pair) - n
                if n in pair and self._starts[other] in needed:
                    self._refuse(statement, n, self._names[other])

    def _require_apart(self, statement: str, needed: set[Instruction]) -> None:
        """Raises `ConcretizationError` where a step writes to an array from before the loop and
        reads, or may keep, a variable that it binds to that: they are one array from then on.
        """
        for n, name in enumerate(self._names):
            # What the function returns is bound in the last step.
            is_returned = name.startswith("autograph_")
            if self._stays(n) or is_returned or self._starts[n] not in needed:
                continue
            lent = [x for m in self._reach(n) for x in self._sources(m)[1] if x.is_lent]
            if any(x.version > self._begun for x in lent):
                raise ConcretizationError(
                    f"{statement}: a step writes to an array from before the loop, binds {name} to "
                    f"it and uses the {name} of the step before; bind {name} to a copy of it"
                )

    def _refuse(self, statement: str, number: int, other: str) -> None:
        name = self._names[number]
        raise ConcretizationError(
            f"{statement}: a step writes to {name} and binds names anew, and {other} may be the "
            f"same array; copy it before: {name} = {name}.copy()"
        )

    def _is_written(self, number: int) -> bool:
        copy = self._entered[number]
        return _is_array(copy) and is_written(copy)

    def _stays(self, number: int) -> bool:
        return self._ends[number] is self._entered[number]

    def _sources(self, number: int) -> tuple[set[int], list[Tracer]]:
        """The copies that an end may be, by their numbers, and the arrays from outside."""
        end = self._ends[number]
        if not _is_array(end):
            return set(), []
        arrays = [end.root]
        if end.root.shares is not None:
            arrays += [a for one in end.root.shares.entries if (a := one.other.array()) is not None]
        copies = {n for n, copy in enumerate(self._entered) for a in arrays if copy is a}
        inner = end.root.owner
        return copies, [a for a in arrays if a.owner is not inner or a.owner.alive]

    def _aliases(self) -> set[Pair]:
        """The pairs of leaves that may be one array at the beginning of a step."""
        count = range(len(self._before))
        starts, ends = self._before, self._ends
        pairs = {(m, n) for m in count for n in range(m) if _may_be_one(starts[m], starts[n])}
        sources = [self._sources(n)[0] for n in count]
        while True:
            more = {
                (m, n)
                for m in count
                for n in range(m)
                if _may_be_one(ends[m], ends[n])
                or any(
                    p == q or (max(p, q), min(p, q)) in pairs
                    for p in sources[m]
                    for q in sources[n]
                )
            }
            if more <= pairs:
                return pairs
            pairs |= more

    def note(self, after: Sequence[Any], ran: Instruction | None) -> None:
        """Notes what the leaves after the loop share; ``ran`` is whether a step ran, None if one
        surely did."""
        count = range(len(self._before))
        after = [attached(one) for one in after]
        new = [
            shares_of(made)
            for n, made in enumerate(after)
            if _is_array(made) and made.base is None and not self._stays(n)
        ]
        left = [shares_of(made.root) for made in after if _is_array(made)]
        reach = [self._reach(n) for n in count]
        aliases = self._aliases()
        for n in count:
            if not _is_array(after[n]) or self._stays(n):
                continue
            made, before, end = after[n], attached(self._before[n]), self._ends[n]
            copies = {m for m in reach[n] if m == n or not self._stays(m)}
            olds = [attached(self._before[m]) for m in copies if m != n]
            if ran is not None:
                _share(made, before, elementwise_unary.not_(ran), new)
            way_out = self._sources(n)[1]
            is_direct = _is_array(end) and any(end.root is one for one in way_out)
            direct = end.root if is_direct else None
            if direct is not None:
                _share(made, end, _surely() if ran is None else ran, new)
            inner = [x for m in copies for x in self._sources(m)[1]]
            for old in [*olds, *inner, *([before] if n in self._cycle(n) else [])]:
                if old is not direct:
                    _share(made, old, None, new)
            for m in count:
                if m == n or not _is_array(after[m]) or (m > n and not self._stays(m)):
                    continue
                other = attached(self._before[m])
                if ran is not None and not self._stays(m) and _may_be_one(before, other):
                    memory, mine = origin(before)
                    root, theirs = origin(other)
                    holds = elementwise_unary.not_(ran) if root is memory else None
                    _share_ways(made, mine, after[m], theirs, memory, holds, new)
                if _is_array(end) and _is_array(self._ends[m]) and self._ends[m].root is end.root:
                    other, theirs = origin(self._ends[m])
                    _, mine = origin(end)
                    holds = _surely() if ran is None else ran
                    _share_ways(made, mine, after[m], theirs, other, holds, new)
                elif (max(m, n), min(m, n)) in aliases:
                    _share(made, after[m], None, new)
            if self._is_written(n):
                for old in [before, *olds]:
                    if _is_array(old) and old.root.owner.alive:
                        lose(old.root, left)

    def _reach(self, number: int) -> set[int]:
        """The leaves that one may have been, any number of steps ago."""
        found, waiting = {number}, [number]
        while waiting:
            new = self._sources(waiting.pop())[0] - found
            found |= new
            waiting += new
        return found

    def _cycle(self, number: int) -> set[int]:
        """The leaves that one may have been, one step ago or more."""
        return {m for n in self._sources(number)[0] for m in self._reach(n)}


def _is_array(value: Any) -> bool:
    return isinstance(value, Tracer) and not value.is_scalar


def _may_be_one(one: Any, other: Any) -> bool:
    """Whether two arrays may be parts of one memory."""
    if not (_is_array(one) and _is_array(other)) or Detached in (type(one), type(other)):
        return False
    first, second = one.root, other.root
    peers = [] if first.shares is None else [entry.other for entry in first.shares.entries]
    return first is second or any(second.shares is peer for peer in peers)


def _surely() -> Instruction:
    return full(Shape(ElementType.PRED), True)


def _share(made: Tracer, other: Any, condition: Instruction | None, new: Sequence[Shares]) -> None:
    """That an array made by a loop may be another, or a view of another."""
    if not _is_array(other) or made.base is not None:
        return
    root, way = origin(other)
    if root is made or root.is_scalar or not root.owner.alive:
        return
    if made.last.array_shape == other.last.array_shape:
        _share_ways(made, way, root, (), root, condition, new)
    else:
        # A view of it, along which way is not known.
        _share_ways(made, (), root, (), root, None, new)


def _share_ways(
    made: Tracer,
    mine: Way,
    other: Tracer,
    theirs: Way,
    memory: Tracer,
    condition: Instruction | None,
    new: Sequence[Shares],
) -> None:
    """What ``new`` arrays of the loop are to each other follows from the steps alone."""
    if other.base is not None:
        # What stays a view: the way to ``made`` from the array behind it, if that is known.
        root, way = origin(other)
        mine, condition = ((), None) if theirs else ((*way, *mine), condition)
        other, theirs, memory = root, (), root
    if made.base is None and made is not other and other.owner.alive:
        share_parts(made, mine, other, theirs, memory.last.array_shape, condition, new)
