"""Signals while compiled code runs: what it calls to let Python handle them.

address()            of the record that compiled code reads
signal_state()       the memory of one call by which a signal ends it
raise_interrupt()    raises what a handler has raised meanwhile, if it has
"""

from __future__ import annotations

import ctypes
import functools
import threading

import numpy as np

from tracejit.system import after_fork, thread_identifier

_THREAD, _MAIN, _TAKE, _CHECK, _FETCH, _GIVE, _RAISED, _WORDS = 0, 1, 2, 3, 4, 5, 6, 9

RECORD = np.zeros(_WORDS, np.int64)
"""Addresses of functions of the system's and of Python's; the number of the main thread, which
alone handles signals; and the exception that ended a call: its type, itself and its traceback."""


@functools.cache
def address() -> int:
    """The address of `RECORD`, once it is filled."""
    python = ctypes.pythonapi
    functions = {
        _THREAD: thread_identifier(),
        _TAKE: python.PyGILState_Ensure,
        _CHECK: python.PyErr_CheckSignals,
        _FETCH: python.PyErr_Fetch,
        _GIVE: python.PyGILState_Release,
    }
    for place, function in functions.items():
        RECORD[place] = ctypes.cast(function, ctypes.c_void_p).value or 0
    _note_main_thread()
    after_fork(_note_main_thread)
    return int(RECORD.ctypes.data)


def signal_state() -> np.ndarray:
    """The state of one call, as the entry of a program initialises it in its workspace: a flag,
    the next time, the address of `RECORD`, and what kernels note themselves.
    """
    return np.array([0, 0, address(), 0, 0, 0, 0, 0], np.int64)


def _note_main_thread() -> None:
    RECORD[_MAIN] = threading.main_thread().ident or 0


def raise_interrupt() -> None:
    """Raises what a handler of a signal raised while compiled code ran, if one did."""
    kind, value, trace = RECORD[_RAISED:].tolist()
    if kind and threading.get_ident() == RECORD[_MAIN]:
        RECORD[_RAISED:] = 0
        restore = ctypes.pythonapi.PyErr_Restore
        restore(*map(ctypes.c_void_p, (kind, value, trace)))  # which raises it
