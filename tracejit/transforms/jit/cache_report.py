"""The compilations of a jitted function, and the change that caused each.

print(f.cache_report())

    f: compiled 2 times, 2 versions kept
    1. 0.031 s: x f64[3]; depth = 2
    2. 0.020 s: x was f64[3], is f64[4]
    frozen while tracing, later changes are not seen: table f64[100], options a dict
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tracejit.loading import supplied
from tracejit.shapes import shape_of
from tracejit.trace.convert import in_words

REMEMBERED = 256
SHOWN = 3
"""Kinds of arguments that the repr of a jitted function lists."""
_LONGEST = 60


AnsweredBy = Literal["machine code", "interpreter"]


@dataclass
class Tier:
    """What answers calls of one kind at present."""

    answered_by: AnsweredBy


@dataclass(frozen=True)
class Compilation:
    """One compilation: its arguments, its time, and the change that caused it.

    ``changes`` are in words, against the earlier compilation that differs least; the first has
    none. ``seconds`` include tracing and, if the code was on disk, only its loading. Calls are
    answered by "machine code", or, under ``jit(tiered=True)``, by the "interpreter" until the
    first call that finds the code compiled; ``seconds`` are then the time before the first of
    them.
    """

    arguments: Mapping[str, str]
    changes: tuple[str, ...]
    seconds: float
    answered_by: AnsweredBy = "machine code"

    def __str__(self) -> str:
        listed = self.changes or [_one(name, text) for name, text in self.arguments.items()]
        tier = "" if self.answered_by == "machine code" else ", interpreted so far"
        return f"{self.seconds:.3f} s{tier}: {'; '.join(listed) or 'no arguments'}"


@dataclass(frozen=True)
class CacheReport:
    """How often a function was compiled, and for what; ``kept`` versions can be called at once.

    ``compilations`` are the last ones, at most `REMEMBERED`. ``frozen`` are the arrays and
    containers that the function sees beside its arguments: they are what they were while tracing.
    """

    title: str
    count: int
    compilations: tuple[Compilation, ...]
    kept: int
    frozen: tuple[str, ...] = ()

    def __str__(self) -> str:
        head = (
            f"{self.title}: compiled {self.count} time{'s' * (self.count != 1)}, "
            f"{self.kept} version{'s' * (self.kept != 1)} kept"
        )
        first = self.count - len(self.compilations) + 1
        rows = [f"{number}. {one}" for number, one in enumerate(self.compilations, first)]
        if self.frozen:
            listed = ", ".join(self.frozen)
            rows.append(f"frozen while tracing, later changes are not seen: {listed}")
        return "\n".join([head, *rows])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """A table of the compilations, for notebooks."""
        html: str = supplied("display").html_of(self)
        return html

    @property
    def brief(self) -> str:
        """How often, how long and what for, in less than a line for each of the last few."""
        if not self.count:
            return "not compiled yet"
        seconds = sum(one.seconds for one in self.compilations)
        times = "once" if self.count == 1 else f"{self.count} times"
        kinds = [_brief(one.arguments) for one in self.compilations[-SHOWN:]]
        earlier = f", {self.count - len(kinds)} earlier" if self.count > len(kinds) else ""
        return f"compiled {times} in {seconds:.3f} s for {', '.join(kinds)}{earlier}"


def frozen_in_words(name: str, value: Any) -> str:
    """A value that a function sees beside its arguments: table f64[3], options a dict."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        return f"{name} {shape_of(value)}"
    return f"{name} {in_words(type(value))}"


def compilation(
    arguments: Mapping[str, str], earlier: tuple[Compilation, ...], seconds: float
) -> Compilation:
    """The record of a compilation, compared with those before it."""
    found = [_changes(one.arguments, arguments) for one in earlier]
    least = min(found, key=len, default=())
    return Compilation(arguments, least, seconds)


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    changed = [
        f"{name} was {before[name]}, is {text}" if name in before else f"{_one(name, text)} is new"
        for name, text in after.items()
        if before.get(name) != text
    ]
    gone = [f"{_one(name, text)} is gone" for name, text in before.items() if name not in after]
    return (*changed, *gone)


def _brief(arguments: Mapping[str, str]) -> str:
    text = ", ".join(_one(name, text) for name, text in arguments.items())
    return f"({text if len(text) <= _LONGEST else f'{text[:_LONGEST]}…'})"


def _one(name: str, text: str) -> str:
    return f"{name} {text}"
