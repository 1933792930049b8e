"""This process among those that a launcher of MPI started.

tracejit.distributed.initialize()               # under mpiexec -n 4 python train.py
tracejit.distributed.process_index()            # 0, 1, 2 or 3
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tracejit.runtime.devices.timeline import Timeline, from_array, recorded, to_array
from tracejit.runtime.devices.world import begin_mpi, rank_communicator, was_launched

__all__ = [
    "Timeline",
    "barrier",
    "initialize",
    "is_initialized",
    "is_launched",
    "process_count",
    "process_index",
    "timeline",
]


def initialize(timeout: float | None = None, deterministic: bool = True) -> None:
    """Begins MPI: from now on, the devices of programs are the ranks that the launcher started.

    Without a launcher there is one. A rank that waits for others gives up after ``timeout``
    seconds, by default ``TRACEJIT_COLLECTIVE_TIMEOUT``, else 300. An exception that ends a rank
    ends all. Unless ``deterministic``, sums of more than two ranks are MPI's own, in any order.

    Raises `UnsupportedError` without mpi4py, or under a launcher of another MPI.
    """
    begin_mpi(timeout, deterministic)


def is_launched() -> bool:
    """Whether a launcher of MPI started this process."""
    return was_launched()


def is_initialized() -> bool:
    """Whether `initialize` was called."""
    return rank_communicator() is not None


def process_index() -> int:
    """The number of this process, from 0 on; 0 before `initialize`."""
    communicator = rank_communicator()
    return 0 if communicator is None else communicator.number


def process_count() -> int:
    """How many processes there are; 1 before `initialize`."""
    communicator = rank_communicator()
    return 1 if communicator is None else communicator.count


def barrier() -> None:
    """Returns when all processes are here."""
    communicator = rank_communicator()
    if communicator is not None:
        communicator.barrier()


@contextmanager
def timeline() -> Iterator[Timeline]:
    """What all devices do inside the block: when they compute, and when they are in collectives.

    Printed, it draws a row for each device. ``events`` has each op's begin, the moment from which
    the device waits for it, and its end; ``overlapped`` is the part of the ops' time in which
    devices went on computing. All ranks must call this, and run the block.

    >>> mesh = tj.make_mesh((2,), ("i",), devices=tj.devices("cpu", 2))
    >>> total = tj.shard_map(
    ...     lambda x: tj.lax.psum(x, "i"), mesh=mesh, in_specs=tj.P("i"), out_specs=tj.P()
    ... )
    >>> with tj.distributed.timeline() as drawn:
    ...     _ = total(np.ones(2))
    >>> [event.function for event in drawn.events]
    ['all_reduce', 'all_reduce']
    """
    barrier()
    with recorded() as drawn:
        yield drawn
    communicator = rank_communicator()
    if communicator is not None:
        parts = communicator.gathered(to_array(drawn.events))
        drawn.events = [event for part in parts for event in from_array(part)]


def __dir__() -> list[str]:
    return __all__
