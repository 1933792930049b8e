"""Interrupts at many moments of the first call, and in compiled code; handlers that call jit."""

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


# Each computes for minutes; a second call of the same program must be right.
LONG = """
import signal, sys, threading, time
import numpy as np
import tracejit as tj

lax = tj.lax

def scalar(x):
    return lax.while_loop(lambda c: c[0] < x, lambda c: (c[0] + c[1] / 2, c[1] * 1.0), (0.0, 1e-9))

def arrays(x):
    ones = np.ones(9)
    return lax.while_loop(lambda c: c[0] < x, lambda c: (c[0] + 1e-9, np.sin(c[1])), (0.0, ones))

def counted(x):
    return lax.fori_loop(0, 10**8, lambda i, c: np.sin(c) + np.cos(c[::-1]), np.ones(999) * x)

def product(x):
    ones = np.ones((18000, 18000), np.float32) * np.float32(x)
    return (ones @ ones)[0, 0]

def chain(x):
    a = np.ones((3000, 3000)) * x
    for _ in range(50):
        a = np.sin(a) @ np.cos(a)
    return a

def nested(x):
    def inner(n):
        return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 3), (0, 1))[1]
    return lax.fori_loop(0, 3, lambda i, c: c + inner((x * 10**12).astype(int)), 0)

def pairs(x):
    a = np.arange(500_000.0) * x
    return np.sum(np.exp(-((a[:, None] - a[None, :]) ** 2)), 1)

compiled = tj.jit(globals()[sys.argv[1]]).lower(1.0).compile()
begin = 0.0

def run():
    global begin
    begin = time.perf_counter()
    compiled(1.0)
"""

ENDED = """
threading.Timer(0.5, signal.raise_signal, [signal.SIGINT]).start()
try:
    run()
except KeyboardInterrupt:
    print(time.perf_counter() - begin < 1.5 + float(sys.argv[2]))
"""


@pytest.mark.parametrize(
    "what", ["scalar", "arrays", "counted", "nested", "product", "chain", "pairs"]
)
@pytest.mark.parametrize("threads", ["1", "2"])
def test_an_interrupt_ends_compiled_code(what: str, threads: str) -> None:
    """Within a second; more is allowed to a machine that is busy."""
    slack = "10"
    said = python(LONG + ENDED, what, slack, timeout=200, TVM_NUM_THREADS=threads)
    assert said == "True"


def test_donated_arguments() -> None:
    """The call ends, and the next one writes over its own arguments."""
    said = python(
        """
import signal, threading, time
import numpy as np
import tracejit as tj

def count(state, x):
    step = lambda c: (c[0] + 1e-9, np.sin(c[1]))
    return tj.lax.while_loop(lambda c: c[0].sum() < x, step, state)

program = tj.jit(count, donate_argnums=0)
made = lambda: (np.zeros(50_000), np.ones(50_000))
program(made(), -1.0)
threading.Timer(0.5, signal.raise_signal, [signal.SIGINT]).start()
begin = time.perf_counter()
try:
    program(made(), 1e9)
except KeyboardInterrupt:
    print(time.perf_counter() - begin < 11)
state = made()
result = program(state, 1e-6)
print(result[0] is state[0], result[0][0])
"""
    )
    assert said.splitlines() == ["True", "True 1e-09"]


# Routines that cannot be ended in the middle, of some seconds and more.
ROUTINES = """
import signal, sys, threading, time
import numpy as np
import tracejit as tj
from tracejit.runtime import apart

def noise(x, count):
    numbers = np.arange(float(count))
    return np.sin(numbers * numbers * 0.37) * x

def argsort(x):
    return np.argsort(noise(x, 20_000_000)) % 7

def sort(x):
    return np.sort(noise(x, 60_000_000))

def eigh(x):
    matrix = noise(x, 2500 * 2500).reshape(2500, 2500)
    return np.linalg.eigh(matrix + matrix.T)

def argsort_and_loop(x):
    start = (np.argsort(noise(x, 12_000_000)) % 7).sum()
    return tj.lax.while_loop(lambda i: i > -1, lambda i: (i * 5 + 1) // 5 + 1, start)

compiled = tj.jit(globals()[sys.argv[1]]).lower(1.0).compile()
threading.Timer(0.3, signal.raise_signal, [signal.SIGINT]).start()
try:
    compiled(1.0)
except KeyboardInterrupt:
    # Its thread is not done.
    print(not apart._idle, tj.jit(np.sort)(np.array([2.0, 1.0])))
"""


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("what", ["argsort", "sort", "eigh"])
def test_an_interrupt_does_not_wait_for_routines(what: str, threads: str) -> None:
    """Nor does the process when it ends, which takes down what the routine works with."""
    assert python(ROUTINES, what, timeout=200, TVM_NUM_THREADS=threads) == "True [1. 2.]"


def test_what_was_given_up_ends_at_its_next_poll() -> None:
    """The loop that follows the sort is endless."""
    said = python(
        ROUTINES
        + """
while not apart._idle:
    time.sleep(0.01)
print("idle")
""",
        "argsort_and_loop",
        timeout=200,
    )
    assert said.splitlines() == ["True [1. 2.]", "idle"]


def test_handlers_run_while_a_routine_does() -> None:
    said = python(
        ROUTINES.partition("threading.Timer")[0]
        + """
seen = []
signal.signal(signal.SIGALRM, lambda *_: seen.append(len(apart._idle)))
signal.setitimer(signal.ITIMER_REAL, 0.2)
print(compiled(1.0).max(), seen)
""",
        "argsort",
        timeout=200,
    )
    assert said == "6 [0]"


def test_handlers_that_return_disturb_nothing() -> None:
    """They run while the program does; one that raises ends it with its own exception."""
    said = python(
        LONG
        + """
times = []

def handle(number, frame):
    times.append(time.perf_counter() - begin)
    if len(times) == 3:
        raise TimeoutError("enough")

signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.5, 0.5)
try:
    run()
except TimeoutError as error:
    print(error, len(times), times[0] < times[1] - 0.2)
signal.setitimer(signal.ITIMER_REAL, 0)
print(tj.jit(lambda n: lax.while_loop(lambda i: i < n, lambda i: i + 1, 0))(10**8))
""",
        "arrays",
    )
    assert said.splitlines() == ["enough 3 True", "100000000"]


def test_a_user_s_thread_goes_on() -> None:
    """Python handles signals in the main thread, whatever other threads compute."""
    said = python(
        LONG
        + """
count = tj.jit(lambda n: lax.while_loop(lambda i: i < n, lambda i: (i * 5 + 1) // 5 + 1, 0))
count(1)
found = []
thread = threading.Thread(target=lambda: found.append(int(count(3 * 10**8))))
threading.Timer(0.3, signal.raise_signal, [signal.SIGINT]).start()
thread.start()
try:
    thread.join()
except KeyboardInterrupt:
    print("interrupted")
thread.join()
print(found)
""",
        "scalar",
    )
    assert said.splitlines() == ["interrupted", "[300000000]"]


def test_an_interrupt_before_a_callback_ends_the_call() -> None:
    """Python handles it as the callback begins; nothing goes on without what that would return."""
    said = python(
        """
import os, signal, threading, time
import numpy as np
import tracejit as tj

@tj.jit
def program(x):
    y = x
    for _ in range(20):
        y = np.tanh(y @ x)
    return tj.pure_callback(lambda y: y + 1, tj.ShapeDtypeStruct(x.shape, x.dtype), y)

x = np.eye(400) / 2
expected = program(x)
found = []
for number in range(8):
    wait = 0.003 * (1 + number)
    threading.Timer(wait, os.kill, [os.getpid(), signal.SIGINT]).start()
    try:
        end = time.perf_counter() + 10
        while time.perf_counter() < end:
            assert np.array_equal(program(x), expected)
    except KeyboardInterrupt:
        found.append(np.array_equal(program(x), expected))
print(found)
"""
    )
    assert said == str([True] * 8)
