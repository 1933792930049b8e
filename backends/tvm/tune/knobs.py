"""Schedule knobs: every choice of a kernel's writer, asked here by name.

    size = choices.of("tile", ranked(sizes, cycles, str))

A question comes with its candidates, each a name and what it stands for, and with the cost model's
own pick in front. `MODEL` takes that pick, and looks no further. `RecordedKnobs` takes what was
measured to be quicker, and remembers what it was asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

T = TypeVar("T")

MOST_CANDIDATES = 8
"""How many candidates of one question are worth a look."""


class Knobs:
    """The cost model: of every question's candidates the first."""

    def of(self, question: str, candidates: Iterable[tuple[str, T]]) -> T:
        """What one of the candidates stands for; there is at least one."""
        return next(iter(candidates))[1]


MODEL = Knobs()


class RecordedKnobs(Knobs):
    """The candidates named in ``given``, by question, and the model's pick elsewhere.

    ``asked`` has the names of each question's candidates so far, the model's pick first. A question
    may come up again, as of each reduction of a row: it has one answer.
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
        """The questions that have more than one candidate, with the candidates' names."""
        return {question: names for question, names in self.asked.items() if len(names) > 1}

    @property
    def taken(self) -> dict[str, str]:
        """The answers to these."""
        return {
            question: given if (given := self._given.get(question)) in names else names[0]
            for question, names in self.open.items()
        }


def ranked(
    items: Sequence[T], cost: Callable[[T], Any], name: Callable[[T], str]
) -> Iterator[tuple[str, T]]:
    """The items by their cost, the cheapest first; the others are put in order when asked for."""
    best = min(items, key=cost)
    yield name(best), best
    for item in sorted(items, key=cost):
        yield name(item), item


def either(pick: bool, yes: str, no: str) -> Sequence[tuple[str, bool]]:
    """The candidates of a question of yes or no."""
    pairs = [(yes, True), (no, False)]
    return pairs if pick else pairs[::-1]


def counts(pick: int, others: Iterable[int], unit: str) -> Iterator[tuple[str, int]]:
    """``pick`` and other numbers of ``unit``."""
    for count in (pick, *others):
        yield f"{count} {unit}", count
