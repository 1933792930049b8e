"""Calls in a copy of the process, and how the copy ended."""

from __future__ import annotations

import ctypes
import signal

import pytest

from tests.runtime.processes import python
from tracejit.errors import ShapeError
from tracejit.system import processes
from tracejit.system.guard_pages import guarded, in_copy

pytestmark = pytest.mark.skipif(not processes.FORKS, reason="processes cannot be copied here")


def raises() -> None:
    raise ShapeError("no such shape")


def test_a_call_that_returns_or_raises() -> None:
    ending = in_copy(lambda: None, 20)
    assert ending is not None
    assert (ending.code, ending.has_returned, ending.signal) == (0, True, None)
    ending = in_copy(raises, 20)
    assert ending is not None
    assert ending.has_returned
    assert (ending.raised, ending.text) == ("ShapeError", "no such shape")


@pytest.mark.parametrize("offset", [-1, 12 + 63])
def test_memory_beyond_an_array(offset: int) -> None:
    memory = guarded(12)
    assert memory is not None
    page = memory.ctypes.data & -4096
    address = page - 1 if offset < 0 else memory.ctypes.data + offset
    ending = in_copy(lambda: ctypes.c_uint8.from_address(address).value, 20)
    assert ending is not None
    assert ending.signal in (signal.SIGSEGV, signal.SIGBUS)


def test_exit_handlers_of_other_libraries_do_not_run() -> None:
    """One that waits for a thread, which the copy lacks, would wait for ever."""
    said = python(
        """
import ctypes
from tracejit.system.guard_pages import in_copy

library = ctypes.CDLL(None)
library.on_exit(ctypes.cast(library.pause, ctypes.c_void_p), None)
print(in_copy(lambda: library.exit(3), 20), flush=True)
library._exit(0)
""",
    )
    assert said == "exit code 3"
