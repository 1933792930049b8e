"""Schedule knobs: every choice between variants of a kernel, by name.

    size = choices.of("tile", ranked(sizes, cycles, str))

Each knob has candidates, (name, value) pairs, with the cost model's pick first. `MODEL` takes that
pick without computing the others. `RecordedKnobs` takes measured choices, and records the
candidates of each knob.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

T = TypeVar("T")

MOST_CANDIDATES = 8
"""The most candidates of one knob."""


class Knobs:
    """The cost model: the first candidate of every knob."""

    def of(self, question: str, candidates: Iterable[tuple[str, T]]) -> T:
        """The value of the chosen candidate; ``candidates`` is not empty."""
        return next(iter(candidates))[1]


MODEL = Knobs()


class RecordedKnobs(Knobs):
    """The candidates named in ``given``, by knob, and the model's pick for other knobs.

    ``asked`` has the names of each knob's candidates so far, the model's pick first. A knob may be
    used again, for example by each reduction of a row: it keeps its value.
    """

    def __init__(self, given: Mapping[str, str] | None = None) -> None:
        self._given = dict(given or {})
        self.asked: dict[str, tuple[str, ...]] = {}

    def of(self, question: str, candidates: Iterable[tuple[str, T]]) -> T:
        known: dict[str, T] = {}
        for name, value in islice(candidates, MOST_CANDIDATES):
            known.setdefault(name, value)
        self.asked[question] = (*dict.fromkeys((*self.asked.get(question, ()), *known)),)
        return known.get(self._given.get(question, ""), next(iter(known.values())))

    @property
    def open(self) -> dict[str, tuple[str, ...]]:
        """The knobs that have more than one candidate, with the candidates' names."""
        return {question: names for question, names in self.asked.items() if len(names) > 1}

    @property
    def taken(self) -> dict[str, str]:
        """The chosen candidates of these knobs."""
        return {
            question: given if (given := self._given.get(question)) in names else names[0]
            for question, names in self.open.items()
        }


def ranked(
    items: Sequence[T], cost: Callable[[T], Any], name: Callable[[T], str]
) -> Iterator[tuple[str, T]]:
    """The items in order of cost, the cheapest first; only the first is found eagerly."""
    best = min(items, key=cost)
    yield name(best), best
    for item in sorted(items, key=cost):
        yield name(item), item


def either(pick: bool, yes: str, no: str) -> Sequence[tuple[str, bool]]:
    """The candidates of a boolean knob."""
    pairs = [(yes, True), (no, False)]
    return pairs if pick else pairs[::-1]


def counts(pick: int, others: Iterable[int], unit: str) -> Iterator[tuple[str, int]]:
    """``pick`` and other numbers, named with their ``unit``."""
    for count in (pick, *others):
        yield f"{count} {unit}", count
