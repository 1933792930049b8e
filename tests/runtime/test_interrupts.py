"""Interrupts at many moments of the first call, and handlers of signals that call jit."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.runtime.processes import python
from tracejit.system import processes

pytestmark = pytest.mark.skipif(
    sys.platform == "win32" or not processes.FORKS, reason="needs copies of processes, and timers"
)

MOMENTS = 130

# Each moment in a copy of a process that has called nothing yet.
FIRST_CALLS = """
import os, signal, sys, time
import numpy as np
import tracejit as tj
from tracejit.runtime import compile_server

x = np.array([1.0, 3.0, 2.0])

def first():
    return tj.jit(tj.grad(lambda x: np.sum(np.sort(x) * np.cumsum(x) + np.add(x, 1))))(x).tolist()

def in_a_copy(function):
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            os.write(writing, repr(function()).encode())
        except BaseException as error:
            os.write(writing, repr(error).encode())
        finally:
            compile_server._forget()
            os._exit(0)
    os.close(writing)
    with open(reading) as file:
        said = file.read()
    os.waitpid(process, 0)
    return said

def timed():
    begin = time.perf_counter()
    first()
    return time.perf_counter() - begin

def interrupted():
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, moment)
    try:
        found = first()
        signal.setitimer(signal.ITIMER_REAL, 0)
        return found
    except KeyboardInterrupt:
        return first()

def handled():
    inner = []
    signal.signal(signal.SIGALRM, lambda *_: inner.append(tj.jit(np.add)(x, 1).tolist()))
    signal.setitimer(signal.ITIMER_REAL, moment)
    found = first()
    while not inner:
        time.sleep(0.01)
    return (found, inner) if inner != [[2, 4, 3]] else found

right = in_a_copy(first)
seconds = min(float(in_a_copy(timed)) for _ in range(2))
wrong = []
for number in sys.argv[2].split(","):
    moment = max(1e-5, seconds * float(number))
    said = in_a_copy(globals()[sys.argv[1]])
    if said != right:
        wrong.append((number, said))
print(right.count(","), wrong)
"""


@pytest.mark.parametrize("elsewhere", [True, False])
@pytest.mark.parametrize("kind", ["interrupted", "handled"])
def test_the_call_after_an_interrupt_is_answered(
    kind: str, elsewhere: bool, exhaustive: bool, tmp_path: Path
) -> None:
    """Whether another process compiles, or this one, which then imports TVM."""
    taken = range(MOMENTS) if exhaustive else (2, 17, 45, 80)
    moments = ",".join(str((number + 0.5) / MOMENTS) for number in taken)
    said = python(
        FIRST_CALLS,
        kind,
        moments,
        timeout=2000,
        TRACEJIT_CACHE="0",
        TRACEJIT_COMPILE_SERVER=str(int(elsewhere)),
    )
    assert said == "2 []"
