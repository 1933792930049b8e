"""What tuning leaves behind: notes on disk, and what `explain` tells of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints

from tracejit.backends.tunable import Measured

Note = TypeVar("Note", bound="Tuning | Measured")


@dataclass(frozen=True)
class Tuning:
    """How a program was tuned: ``candidates`` were measured, within ``seconds``.

    ``complete`` is whether these were all. A whole call took ``before`` seconds and then
    ``after``. ``program`` is the key of the tuned program; empty if the untuned one is not slower.
    """

    seconds: float
    candidates: int
    complete: bool
    program: str
    before: float
    after: float

    @property
    def kept(self) -> bool:
        """Whether there is a quicker program than the untuned one."""
        return bool(self.program)


def read(kind: type[Note], noted: Any) -> Note | None:
    """The note that `asdict` converted, if it is of this kind; None for anything else."""
    wanted = get_type_hints(kind)
    if not isinstance(noted, dict) or noted.keys() != wanted.keys():
        return None
    if not all(_is_like(value, wanted[name]) for name, value in noted.items()):
        return None
    return kind(**noted)


def _is_like(value: Any, kind: Any) -> bool:
    if kind is float:
        return type(value) in (int, float)
    if kind in (int, bool, str):
        return type(value) is kind
    # Answers by question.
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())
