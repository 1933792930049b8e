"""The interface of compiler and tuner: kernels with several variants.

The compiler knows the ways and makes machine code of them
(`tracejit.backends.tvm.tuning_candidates`); the tuner (`tracejit.runtime.tuning`) runs them, and
does not know TVM.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from tracejit.backends.artifact import InProcess

Taken = Mapping[str, str]
"""The answers to a kernel's questions: the name of a candidate for each."""


@dataclass(frozen=True)
class Measured:
    """The answers for one kernel, and its seconds with the cost model's picks and with these.

    ``complete`` is whether every candidate was measured, or time ran out.
    """

    taken: Taken
    before: float
    after: float
    complete: bool = True


Find = Callable[[str], Measured | None]
"""What is known of a kernel, by its text."""


@dataclass(frozen=True)
class Tunable:
    """A kernel that can be written in more than one way.

    ``text`` says what it computes, the same in every process; ``taken`` how the cost model writes
    it, and ``questions`` those that come up then, with the candidates' names. Of its parameters,
    ``sizes`` in bytes, the first ``reads`` are read, and the others written: arrays of ``results``,
    and then what it needs besides.
    """

    name: str
    text: str
    taken: Taken
    questions: Mapping[str, Sequence[str]]
    sizes: Sequence[int]
    reads: int
    results: Sequence[np.dtype]


@dataclass(frozen=True)
class Variant:
    """One way to write a kernel: ``function`` of a library.

    ``questions`` come up when it is written so, each with the candidates' names, the cost model's
    pick first. ``arguments`` are, for each of its parameters, the number of that parameter of the
    kernel as it was (-1 for memory of its own), and the bytes. ``callbacks`` are called by it.
    """

    taken: Taken
    questions: Mapping[str, Sequence[str]]
    function: str = ""
    arguments: Sequence[tuple[int, int]] = ()
    callbacks: Sequence[str] = ()


@dataclass(frozen=True)
class Library:
    """Variants in a shared library in ``path``; those that cannot be compiled are missing."""

    path: Path
    variants: Sequence[Variant] = field(default_factory=tuple)


class Candidates(Protocol):
    """A program whose kernels can be written in several ways."""

    @property
    def kernels(self) -> Sequence[Tunable]:
        """The kernels with a choice."""

    def library(self, kernel: str, ways: Sequence[Taken], folder: Path) -> Library:
        """A kernel written in each of these ways, as a library in ``folder``."""

    def build(self, find: Find) -> bytes | InProcess:
        """The whole program, its kernels written as ``find`` says."""
