"""Signals while compiled code runs: what it calls to let Python handle them.

address()            of the record that compiled code reads
signal_state()       the memory of one call by which a signal ends it
end(ident)           ends what a thread runs; go_on() takes that back for the calling thread
raise_interrupt()    raises what a handler has raised meanwhile, if it has
"""

from __future__ import annotations

import ctypes
import functools
import threading

import numpy as np

from tracejit.backends.abi import STATE_WORDS, SignalRecord, SignalState
from tracejit.system import after_fork, thread_identifier

RECORD = np.zeros(len(SignalRecord), np.int64)
"""The process's `SignalRecord`."""

_EXCEPTION = slice(SignalRecord.TYPE, SignalRecord.TRACEBACK + 1)


@functools.cache
def address() -> int:
    """The address of `RECORD`, once it is filled."""
    python = ctypes.pythonapi
    functions = {
        SignalRecord.THREAD: thread_identifier(),
        SignalRecord.TAKE: python.PyGILState_Ensure,
        SignalRecord.CHECK: python.PyErr_CheckSignals,
        SignalRecord.FETCH: python.PyErr_Fetch,
        SignalRecord.GIVE: python.PyGILState_Release,
    }
    for place, function in functions.items():
        RECORD[place] = ctypes.cast(function, ctypes.c_void_p).value or 0
    _note_main_thread()
    after_fork(_note_main_thread)
    return int(RECORD.ctypes.data)


def signal_state() -> np.ndarray:
    """The `SignalState` of one call, as a program's entry initialises it in its workspace."""
    state = np.zeros(STATE_WORDS, np.int64)
    state[SignalState.RECORD] = address()
    return state


def _note_main_thread() -> None:
    RECORD[SignalRecord.MAIN] = threading.main_thread().ident or 0


def end(ident: int) -> None:
    """Has the program that this thread runs end at its next poll."""
    RECORD[SignalRecord.GIVEN_UP] = ident


def go_on() -> None:
    """What the calling thread runs from now on is not ended by an earlier `end`."""
    if RECORD[SignalRecord.GIVEN_UP] == threading.get_ident():
        RECORD[SignalRecord.GIVEN_UP] = 0


def raise_interrupt() -> None:
    """Raises what a handler of a signal raised while compiled code ran, if one did."""
    kind, value, trace = RECORD[_EXCEPTION].tolist()
    if kind and threading.get_ident() == RECORD[SignalRecord.MAIN]:
        RECORD[_EXCEPTION] = 0
        restore = ctypes.pythonapi.PyErr_Restore
        restore(*map(ctypes.c_void_p, (kind, value, trace)))  # which raises it
