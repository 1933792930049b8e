"""Which devices this process has: those of MPI once it is begun, else its own threads.

begin_mpi()                      this process is one rank of several
rank_communicator()              its way to the others; None without MPI
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING

from tracejit.errors import ArgumentError, UnsupportedError
from tracejit.loading import load

if TYPE_CHECKING:
    from tracejit.runtime.devices.mpi import MPICommunicator

TIMEOUT_VARIABLE = "TRACEJIT_COLLECTIVE_TIMEOUT"
SIZES: Mapping[str, str] = {
    "OMPI_COMM_WORLD_SIZE": "Open MPI",
    "PMI_SIZE": "MPICH",
    "PMIX_SIZE": "PMIx",
}
"""What launchers tell the processes that they start: how many there are."""

HAS_ENDED = "has ended"
"""What a rank announces that is through."""

_DEFAULT_SECONDS = 300.0
_MOST_GRACE_SECONDS = 30.0
_FORWARDING_SECONDS = 0.5
"""How long a launcher gets to pass on what the ranks have printed: an abort may drop the rest."""


class _State:
    communicator: MPICommunicator | None = None
    lock = threading.Lock()


def timeout() -> float:
    """How many seconds a device waits for others, from the environment.

    Raises `ArgumentError` for a value that is no number of seconds.
    """
    text = os.environ.get(TIMEOUT_VARIABLE)
    if text is None:
        return _DEFAULT_SECONDS
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not seconds > 0:
        raise ArgumentError(f"{TIMEOUT_VARIABLE} must be a number of seconds, not {text!r}")
    return seconds


def begin_mpi(seconds: float | None = None, deterministic: bool = True) -> MPICommunicator:
    """This process's rank among those that the launcher started; one of one without a launcher.

    An exception that ends this process ends the others too, within seconds. Raises
    `UnsupportedError` where mpi4py is not installed or not the launcher's.
    """
    with _State.lock:
        if _State.communicator is None:
            try:
                mpi = load("tracejit.runtime.devices.mpi")
            except ImportError as error:
                raise UnsupportedError(
                    "distributed: mpi4py and an MPI library are needed (pip install "
                    f"'tracejit[mpi]'): {error}"
                ) from error
            _State.communicator = mpi.MPICommunicator(seconds or timeout())
            _tell_others_of_the_end(_State.communicator)
        elif seconds is not None:
            _State.communicator.timeout = seconds
        _State.communicator.deterministic = deterministic
        return _State.communicator


def was_launched() -> bool:
    """Whether a launcher of MPI started this process: it says so in the environment."""
    return any(name in os.environ for name in SIZES)


def rank_communicator() -> MPICommunicator | None:
    """This process's way to the other ranks, after `begin_mpi`."""
    return _State.communicator


def _tell_others_of_the_end(communicator: MPICommunicator) -> None:
    before = sys.excepthook

    def hook(
        kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        communicator.announce(f"raised {kind.__name__}: {error}")
        sys.stderr.write(f"rank {communicator.number} of {communicator.count}:\n")
        before(kind, error, traceback)
        sys.stderr.flush()
        if communicator.count > 1:
            # The others print what they waited for; one that hangs would keep them from ending.
            communicator.end_together(min(communicator.timeout, _MOST_GRACE_SECONDS))
            time.sleep(_FORWARDING_SECONDS)
            communicator.abort()

    sys.excepthook = hook
    atexit.register(communicator.announce, HAS_ENDED)
