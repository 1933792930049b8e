"""What a device needs to exchange arrays with others, whatever carries them.

    transfer = communicator.exchange(Tag("all_reduce …", 1), [(1, mine)], [(1, theirs)])
    while not transfer.test(): …

Messages lie where they are sent from and are received where they shall lie; nothing is copied on
this side. Between two devices, messages of one tag arrive in the order in which they were sent.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

Parts = Sequence[tuple[int, np.ndarray]]
"""Devices by number, each with the contiguous array that goes there or comes from there."""


class Tag(NamedTuple):
    """An op's text, and which run of the op it is; 0 where runs are not counted."""

    op: str
    run: int = 0

    def __str__(self) -> str:
        return f"{self.op} #{self.run}" if self.run else self.op


class Transfer(ABC):
    """Messages on their way."""

    @abstractmethod
    def test(self) -> bool:
        """Goes on as far as it can without waiting; whether all have been sent and received."""

    def spin(self) -> bool:
        """`test`, again and again for as long as that is cheaper than to do anything else."""
        return self.test()

    @abstractmethod
    def missing(self) -> list[int]:
        """The devices from which something has not come, else those that have not taken theirs."""

    @abstractmethod
    def cancel(self) -> None:
        """Gives up; no memory is written to afterwards."""


class Communicator(ABC):
    """One device's way to all others; ``number`` is its own of ``count``.

    ``unit`` is what errors call a device. A transfer that makes no progress for ``timeout`` seconds
    is given up. With ``needs_progress`` messages travel only while somebody asks about them. Where
    it is ``deterministic``, sums are added in the order of the group; ``has_sum`` says that there
    is a `sum`.
    """

    needs_progress = False
    deterministic = True
    has_sum = False
    number: int
    count: int
    unit: str
    timeout: float

    @abstractmethod
    def exchange(
        self, tag: Tag, sends: Parts, receives: Parts, is_message: bool = False
    ) -> Transfer:
        """Sends and receives at once. Both sides give the same ``tag``.

        ``is_message`` says that the other side may ask for it at any later time.
        """

    def sum(self, members: tuple[int, ...], given: np.ndarray, result: np.ndarray) -> Transfer:
        """The sum over the members by the library's own op, in any order, once all are here."""
        raise NotImplementedError

    @abstractmethod
    def pause(self, attempt: int) -> None:
        """Waits a little until something may have changed; less in the first attempts."""

    @abstractmethod
    def state_of(self, number: int, transfer: Transfer) -> str | None:
        """Why a device will never answer, as far as is known; None while it may."""

    @abstractmethod
    def announce(self, state: str) -> None:
        """Tells all others that this device will not answer any more, and why."""
