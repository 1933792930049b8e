"""Compiling in another process: it dies, hangs, is interrupted or missing, and this one goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.processes import finished, python, start
from tracejit.errors import CompilationError, UnsupportedError
from tracejit.runtime import compile_server
from tracejit.runtime.compile_server import Here, served, task_of
from tracejit.system import OPEN_FILES, processes

PLANTED = "tests.runtime.planted"


@pytest.fixture(autouse=True, params=["copy", "interpreter"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A worker is a copy of this process, or a fresh interpreter; none is left behind."""
    monkeypatch.setattr(compile_server, "is_wanted", lambda: True)
    monkeypatch.setattr(compile_server, "_idle", [])
    if request.param == "copy" and not processes.FORKS:
        pytest.skip("processes cannot be copied here")
    monkeypatch.setattr(processes, "FORKS", request.param == "copy")
    yield request.param
    while compile_server._idle:
        compile_server._idle.pop().end()


def ask(function: str, *arguments: Any, **options: Any) -> Any:
    return served(task_of(PLANTED, function, *arguments), "f", lambda: "saved", **options)


def number() -> int:
    value: int = ask("say", 1)[2]
    return value


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("abort", r"f: the compiler died of it \(SIGABRT\), and said: LLVM ERROR: planted; saved"),
        ("segfault", r"died of it \(SIGSEGV\)"),
        ("leave", r"ended before it was done \(status 3\)"),
        ("cannot_select", "SIGABRT.*LLVM ERROR: "),
    ],
)
def test_a_death_is_an_error_and_the_next_task_is_done(function: str, message: str) -> None:
    with pytest.raises(CompilationError, match=f"(?s){message}"):
        ask(function)
    assert ask("say", [1, "a"])[0] == [1, "a"]


def test_an_endless_loop_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEJIT_COMPILE_TIMEOUT", "1")
    with pytest.raises(CompilationError, match="did not get on for 1 seconds"):
        ask("endless_loop")
    assert ask("say", 2)[0] == 2


@pytest.mark.parametrize(
    ("chosen", "seconds"), [("", 600.0), ("5", 5.0), ("0", None), ("²", 600.0), ("-1", 600.0)]
)
def test_how_long_a_compiler_may_be_silent(
    chosen: str, seconds: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEJIT_COMPILE_TIMEOUT", chosen)
    assert compile_server.timeout() == seconds


def test_an_interrupt_ends_the_compiler_alone() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    main = threading.main_thread().ident
    assert main is not None
    first = number()
    timer = threading.Timer(0.5, signal.pthread_kill, (main, signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            ask("endless_loop")
    finally:
        signal.signal(signal.SIGINT, before)
    assert number() != first


def test_errors_are_those_of_the_other_process() -> None:
    with pytest.raises(UnsupportedError, match=r"planted: refused \(train.py:42\)") as caught:
        ask("refuse")
    assert "in refuse" in str(caught.value.__cause__)
    with pytest.raises(ZeroDivisionError, match="planted"):
        ask("fail")


def test_warnings_name_the_line_here() -> None:
    with pytest.warns(RuntimeWarning, match="planted") as caught:
        assert ask("warn_of_it") == 5
    assert caught[0].filename == __file__


def test_progress_and_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setenv("PLANTED", "yes")
    _, chosen, other = ask("say", 1, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 2), (2, 2)]
    assert chosen == "yes"
    monkeypatch.delenv("PLANTED")
    assert ask("say", 1)[1:] == (None, other)
    assert other not in (os.getpid(), 0)


def test_one_worker_is_enough_and_more_are_ended() -> None:
    first = number()
    assert number() == first
    assert len(compile_server._idle) == 1

    def meanwhile(done: int, total: int) -> None:
        """As a handler of signals that calls jit while jit compiles."""
        assert number() != first

    assert ask("say", 1, progress=meanwhile)[2] == first
    assert len(compile_server._idle) == 1


def test_a_worker_that_is_gone_is_replaced() -> None:
    first = number()
    os.kill(first, signal.SIGKILL)
    assert number() != first


def test_without_processes_it_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr(os, "fork", refuse)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    with pytest.raises(Here):
        ask("say", 1)


def test_code_for_its_own_process_is_made_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_server, "is_wanted", lambda: False)
    with pytest.raises(Here):
        ask("say", 1)


@pytest.mark.skipif(not OPEN_FILES.exists(), reason="needs a list of open files")
def test_a_worker_holds_no_files_of_this_process() -> None:
    """Whoever waits for the end of a pipe would wait for the worker."""
    reading, writing = os.pipe()
    assert ask("open_files") < 12
    os.close(writing)
    assert os.read(reading, 1) == b""
    os.close(reading)


def test_large_processes_are_not_copied(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "HELD_BYTES", 1 << 40)
    assert processes.may_fork() == (way == "copy")
    monkeypatch.setattr(processes, "HELD_BYTES", 1 << 20)
    assert not processes.may_fork()
    assert ask("say", 3)[0] == 3


# With jit, in processes of their own.

JIT = """
import os, signal, sys, warnings
import numpy as np
import tracejit as tj
from tracejit.runtime import compile_server, importing_tvm
x = np.array([3.0, 1.0, 2.0])
"""

PLANTED_IN_THE_CODE_GENERATOR = (
    JIT
    + """
with importing_tvm():
    from tracejit.backends.tvm.cpu.objects import build
from tests.runtime import planted
right, build.compile_text = build.compile_text, getattr(planted, sys.argv[1])
try:
    tj.jit(lambda x: np.sin(x) * 2)(x)
except tj.errors.CompilationError as error:
    print(error)
build.compile_text = right
compile_server._idle.clear()
print(*tj.jit(np.sort)(x))
"""
)


@pytest.mark.parametrize("function", ["abort", "segfault", "endless_loop", "cannot_select"])
def test_a_notebook_outlives_its_compiler(function: str, tmp_path: Path, way: str) -> None:
    """The error names the user's line, and the graph is kept, which is right."""
    if way != "copy":
        pytest.skip("the compiler of a fresh interpreter is sound")
    chosen = {"TRACEJIT_CACHE_DIR": str(tmp_path), "TRACEJIT_COMPILE_TIMEOUT": "2"}
    code = start(PLANTED_IN_THE_CODE_GENERATOR, function, **chosen)
    message, answer = finished(code).splitlines()
    assert message.startswith("<lambda>: the compiler d")
    assert "(<string>:" in message
    assert answer == "1.0 2.0 3.0"
    (graph,) = tmp_path.glob("*.hlo")
    assert str(graph) in message
    assert "sine" in graph.read_text()


OWN_PROCESS = (
    JIT
    + """
assert tj.jit(np.sort)(x)[0] == 1
(worker,) = compile_server._idle
print("tvm" in sys.modules, worker._number, flush=True)
sys.stdin.readline()
"""
)


def has_ended(process: int) -> bool:
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except FileNotFoundError:
        return True
    return status.rpartition(")")[2].split()[0] == "Z"


@pytest.mark.skipif(not Path("/proc").exists(), reason="needs a list of processes")
@pytest.mark.parametrize("by", ["itself", "a signal"])
def test_workers_end_with_their_process(by: str, way: str) -> None:
    code = f"import tracejit.system as s; s.FORKS = {way == 'copy'}\n" + OWN_PROCESS
    process = start(code, TRACEJIT_CACHE="0")
    assert process.stdout is not None
    tvm, worker = process.stdout.readline().split()
    assert tvm == "False"
    if by == "a signal":
        process.kill()
        process.communicate()
    else:
        finished(process, given="\n")
    end = time.monotonic() + 30
    while not has_ended(int(worker)) and time.monotonic() < end:
        time.sleep(0.02)
    assert has_ended(int(worker))


FORKING = (
    JIT
    + """
tj.jit(np.sort)(x)
child = os.fork()
y = tj.jit(lambda x: np.sort(x) * 2 if False else np.cumsum(x))(x)
assert [*y] == [3, 4, 6]
if child == 0:
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), *y)
"""
)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be copied here")
def test_children_of_a_fork_have_workers_of_their_own(way: str) -> None:
    code = f"import tracejit.system as s; s.FORKS = {way == 'copy'}\n" + FORKING
    assert python(code, TRACEJIT_CACHE="0") == "0 3.0 4.0 6.0"


KERNELS = (
    JIT
    + """
tj.jit(np.sort)(x)
(worker,) = compile_server._idle
from tests.ops.test_custom import test_kernel_runs_in_the_program
test_kernel_runs_in_the_program("tests.later")
print(compile_server._idle == [worker])
"""
)


def test_kernels_that_are_registered_later(way: str) -> None:
    """A copy of the process as it is now compiles them, and what they are refused for is told."""
    code = f"import tracejit.system.processes as s; s.FORKS = {way == 'copy'}\n" + KERNELS
    assert python(code, TRACEJIT_CACHE="0") == "True"
