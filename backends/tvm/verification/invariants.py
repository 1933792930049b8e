"""Candidate loop invariants over a kernel's local integers, which the analysis then checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tracejit.backends.tvm.ir.tir import Stmt
from tracejit.backends.tvm.verification.constraints import of_type
from tracejit.backends.tvm.verification.linear import Linear, Symbol, number
from tracejit.backends.tvm.verification.registers import Bounds, RegisterElements, hull


@dataclass(frozen=True)
class Supposed:
    """A supposed state at the beginning of an iteration.

    ``within`` are the integers that are known only by their bounds.
    """

    values: Mapping[RegisterElements, Linear]
    within: Mapping[RegisterElements, Bounds | None]
    facts: Sequence[Linear]

    @property
    def spans(self) -> dict[RegisterElements, Bounds | None]:
        return {place: bounds for place, bounds in self.within.items() if place[1] is None}


@dataclass(frozen=True)
class Repeated:
    """A loop: its body as a statement and as a function that runs it, and the facts inside.

    It ``runs`` at least once; if it ``is_fixed``, for every value of ``symbol``. ``counters`` are
    integers that are known at the beginning of each iteration.
    """

    statement: Stmt
    symbol: Symbol
    facts: Sequence[Linear]
    body: Callable[[], None]
    runs: bool
    is_fixed: bool
    counters: Mapping[RegisterElements, Linear] = field(default_factory=dict)


def within(bounds: Mapping[RegisterElements, Bounds | None]) -> Supposed:
    values = {
        place: number(each[0]) if each[0] == each[1] else Linear.of(Symbol("data", *each))
        for place, each in bounds.items()
        if place[1] is not None and each is not None
    }
    return Supposed(values, bounds, ())


def widened(dtype: str, first: Bounds | None, found: Bounds | None) -> Bounds | None:
    """Widening: bounds of half the type's range, so that sums do not wrap, where bounds grow."""
    if found is None:
        return first
    least, most = of_type(dtype)
    low, high = first or found
    if first is None:
        return min(least // 2, low), max(most // 2, high)
    lower = min(least // 2, low) if found[0] < low else low
    return lower, max(most // 2, high) if found[1] > high else high


def joined(
    one: Mapping[RegisterElements, Bounds | None], other: Mapping[RegisterElements, Bounds | None]
) -> dict[RegisterElements, Bounds | None]:
    return {place: hull([bounds, other[place]]) for place, bounds in one.items()}


def dropped(
    outer: Mapping[RegisterElements, Bounds | None], inner: Mapping[RegisterElements, Bounds | None]
) -> dict[RegisterElements, Bounds | None]:
    """The outer bounds without those that the inner ones leave."""
    return {
        place: bounds if includes({place: bounds}, inner) else of_type(place[2])
        for place, bounds in outer.items()
    }


def includes(
    outer: Mapping[RegisterElements, Bounds | None], inner: Mapping[RegisterElements, Bounds | None]
) -> bool:
    return all(
        inner[place] is None or is_part(inner[place], bounds) for place, bounds in outer.items()
    )


def is_part(inner: Bounds | None, outer: Bounds | None) -> bool:
    if inner is None or outer is None:
        return False
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def moving(
    symbol: Symbol,
    starts: Mapping[RegisterElements, Linear],
    first: Mapping[RegisterElements, Bounds | None],
    steps: Mapping[RegisterElements, Bounds | None],
    others: Supposed,
) -> Supposed:
    """The state in which integers grow by one per iteration within bounds, next to ``others``."""
    values, within, facts = dict(others.values), dict(others.within), []
    iteration = Linear.of(symbol)
    for place, start in starts.items():
        step, bounds = steps[place], first[place]
        if step is None or bounds is None:
            continue
        del within[place]
        low, high = bounds
        low, high = low + min(step[0], 0) * symbol.high, high + max(step[1], 0) * symbol.high
        if step[0] == step[1]:
            values[place] = start.add(iteration, step[0])
            continue
        least, most = of_type(place[2])
        values[place] = value = Linear.of(Symbol("data", max(low, least), min(high, most)))
        facts.append(value.add(start, -1).add(iteration, -step[0]))
        facts.append(start.add(iteration, step[1]).add(value, -1))
    return Supposed(values, within, facts)
