"""Compilation by other processes: jobs, who takes them, and what comes of those that are killed."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.project import checkout
from tests.runtime.processes import python, start
from tracejit import background
from tracejit.api import CacheEntry, place_of
from tracejit.backends.artifact import InProcess
from tracejit.backends.target import CPU
from tracejit.errors import CompilationError
from tracejit.graph import Module
from tracejit.runtime import DiskCache, Executable, compile_workers, importing_tvm, job_files
from tracejit.runtime.compile_future import Pending
from tracejit.runtime.compile_workers import Builders
from tracejit.runtime.job_files import LEFT, Answer, Job

with importing_tvm():
    from tracejit.backends.tvm import compile as compiler

X = np.ones(10, np.float32)
ADDITION = """HloModule addition

ENTRY %addition (x: f32[10]) -> f32[10] {
  %x = f32[10] parameter(0)
  ROOT %sum = f32[10] add(f32[10] %x, f32[10] %x)
}
"""


def module() -> Module:
    return tj.hlo.parse(ADDITION)


def job(place: CacheEntry, **changes: Any) -> Job:
    folder = None if place.cache.folder is None else str(place.cache.folder)
    given = {
        "key": place.key,
        "graph": str(module()),
        "target": "cpu",
        "fast_math": False,
        "threads": 2,
    }
    return Job(**{**given, "cache": folder, "limit": 1 << 30, **changes})


def until(condition: Callable[[], Any]) -> Any:
    """What the condition says at last."""
    end = time.monotonic() + 60
    while not (found := condition()):
        assert time.monotonic() < end, "it never happens"
        time.sleep(0.01)
    return found


# Jobs.


def test_jobs_are_taken_once_and_in_order(tmp_path: Path) -> None:
    first, second = (Job(key, "graph", "cpu", False, 2, None, 1) for key in ("b", "a"))
    assert job_files.take(tmp_path) is None
    for number, one in enumerate((first, second)):
        job_files.put(tmp_path, one)
        os.utime(tmp_path / f"{one.key}.job", (number, number))
    assert job_files.is_asked(tmp_path, "b")
    assert job_files.take(tmp_path) == first
    assert not job_files.is_asked(tmp_path, "b")
    assert job_files.is_taken(tmp_path, "b", os.getpid())
    assert not job_files.is_taken(tmp_path, "a", os.getpid())
    assert job_files.take(tmp_path) == second
    assert job_files.take(tmp_path) is None


@pytest.mark.parametrize("answer", [LEFT, Answer("kept"), Answer("built", b"code\nand\r\n more")])
def test_answers(tmp_path: Path, answer: Answer) -> None:
    assert job_files.answered(tmp_path, "a") is None
    job_files.give(tmp_path, "a", answer)
    assert job_files.answered(tmp_path, "a") == answer
    assert job_files.is_answered(tmp_path, "a")


# What a builder makes of them.


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DiskCache:
    monkeypatch.setenv("TRACEJIT_CACHE", "1")
    monkeypatch.setenv("TRACEJIT_CACHE_DIR", str(tmp_path / "cache"))
    return DiskCache.default()


@pytest.fixture
def own_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TVM_NUM_THREADS", "2")


@pytest.mark.usefixtures("own_threads")
def test_programs_are_kept_or_handed_over(
    cache: DiskCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = job(place_of(module()))
    answer = background.compiled(asked, compiler)
    assert answer == Answer("kept")
    executable = cache.find(asked.key)
    assert executable is not None
    np.testing.assert_array_equal(executable([X])[0], X + X)

    with monkeypatch.context() as patched:
        patched.setattr(compiler, "compile_for", refuse)
        assert background.compiled(asked, compiler) == answer

    answer = background.compiled(job(place_of(module()), cache=None), compiler)
    assert answer.kind == "built"
    np.testing.assert_array_equal(DiskCache(None).add("a", answer.program)([X])[0], X + X)


@pytest.mark.usefixtures("own_threads")
def test_what_another_process_must_not_compile_is_left(
    cache: DiskCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = place_of(module())
    for asked in (
        job(place, key="0" * 64),
        job(place, graph="no module"),
        job(place, fast_math=True),
        job(place, threads=3),
    ):
        assert background.compiled(asked, compiler) == LEFT
    monkeypatch.setattr(compiler, "compile_for", refuse)
    assert background.compiled(job(place), compiler) == LEFT
    monkeypatch.setattr(compiler, "compile_for", lambda *_, **options: InProcess.__new__(InProcess))
    assert background.compiled(job(place), compiler) == LEFT


def refuse(*_: Any, **__: Any) -> Any:
    raise CompilationError("it does not compile")


# Who starts builders, and how many.


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Builders]:
    """Builders whose processes do nothing at all."""
    folder = tmp_path / "jobs"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "mkdtemp", lambda prefix: str(folder))
    monkeypatch.setattr(compile_workers, "_CODE", "import signal; signal.pause()")
    made = Builders()
    monkeypatch.setitem(compile_workers._by_process, os.getpid(), made)
    yield made
    made._end()
    assert made.processes() == []


def some_job(key: str) -> Job:
    return Job(key, "graph", "cpu", False, 2, None, 1)


def end(made: Builders, number: int) -> None:
    (process,) = made.processes()
    os.kill(process, number)
    made._running[process].wait()


def take_for(made: Builders, key: str, folder: Path) -> None:
    (process,) = made.processes()
    (folder / f"{key}.job").rename(folder / f"{key}.{process}")


@pytest.mark.parametrize(
    ("number", "answer"),
    [
        (signal.SIGKILL, LEFT),
        (signal.SIGTERM, LEFT),
        (signal.SIGSEGV, Answer("crashed", number=signal.SIGSEGV)),
        (signal.SIGABRT, Answer("crashed", number=signal.SIGABRT)),
    ],
)
def test_what_becomes_of_the_job_of_a_builder_that_is_ended(
    started: Builders, tmp_path: Path, number: int, answer: Answer
) -> None:
    started.ask(some_job("a"))
    take_for(started, "a", tmp_path / "jobs")
    assert started.answer("a") is None
    end(started, number)
    assert started.answer("a") == answer
    assert started.answer("a") == answer
    assert started.processes() == []


def test_jobs_that_none_took_are_offered_again_but_not_for_ever(started: Builders) -> None:
    started.ask(some_job("a"))
    for _ in range(compile_workers.STARTS - 1):
        end(started, signal.SIGKILL)
        assert started.answer("a") is None
        assert len(started.processes()) == 1
    end(started, signal.SIGKILL)
    assert started.answer("a") == LEFT
    assert started.processes() == []


def test_jobs_beside_one_that_crashed_are_offered_again(started: Builders, tmp_path: Path) -> None:
    started._limit = 1
    for key in ("a", "b"):
        started.ask(some_job(key))
    take_for(started, "a", tmp_path / "jobs")
    end(started, signal.SIGSEGV)
    assert started.answer("b") is None
    assert len(started.processes()) == 1
    assert started.answer("a") == Answer("crashed", number=signal.SIGSEGV)


def test_answers_given_before_the_end_count(started: Builders, tmp_path: Path) -> None:
    started.ask(some_job("a"))
    take_for(started, "a", tmp_path / "jobs")
    job_files.give(tmp_path / "jobs", "a", Answer("kept"))
    end(started, signal.SIGKILL)
    assert started.answer("a") == Answer("kept")


def test_there_are_no_more_builders_than_jobs_or_than_allowed(
    started: Builders, tmp_path: Path
) -> None:
    started._limit = 2
    counts = []
    for key in ("a", "a", "b", "c"):
        started.ask(some_job(key))
        counts.append(len(started.processes()))
    assert counts == [1, 1, 2, 2]


def test_jobs_whose_files_were_removed_are_left(started: Builders, tmp_path: Path) -> None:
    started.ask(some_job("a"))
    shutil.rmtree(tmp_path / "jobs")
    assert started.answer("a") is None
    end(started, signal.SIGKILL)
    assert started.answer("a") == LEFT


def test_nothing_is_started_when_the_process_ends(started: Builders) -> None:
    started.ask(some_job("a"))
    started._end()
    assert started.processes() == []
    assert started.answer("a") is None
    with pytest.raises(OSError, match="the process ends"):
        started.ask(some_job("b"))


def test_without_a_process_jobs_are_left(
    started: Builders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(OSError, match="no Python"):
        started.ask(some_job("a"))
    assert started.answer("a") == LEFT


# What becomes of a program.


class Compile:
    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.count = 0

    def __call__(self) -> Executable:
        self.count += 1
        if self.errors:
            raise self.errors.pop()
        return None  # type: ignore[return-value]


def promised(compile: Callable[[], Any], graph: str | None = "graph") -> Any:
    return Pending("f", graph, CPU, "a", DiskCache(None), compile)


def test_a_crash_is_reported(started: Builders, tmp_path: Path) -> None:
    compile = Compile()
    made = promised(compile)
    assert made.poll() is None
    take_for(started, "a", tmp_path / "jobs")
    end(started, signal.SIGSEGV)
    assert not made.is_built()
    for _ in range(2):
        with pytest.raises(CompilationError, match=r"f: the compiler, .*, died of it \(SIGSEGV\)"):
            made.poll()
    assert compile.count == 0


def test_what_is_left_is_compiled_here(started: Builders, tmp_path: Path) -> None:
    made = promised(lambda: "code")
    assert made.poll() is None
    take_for(started, "a", tmp_path / "jobs")
    job_files.give(tmp_path / "jobs", "a", LEFT)
    assert not made.is_built()
    assert made.poll() == "code"
    assert made.is_built()


def test_what_is_refused_is_refused_again_in_its_own_words(started: Builders) -> None:
    compile = Compile(CompilationError("no registers left"), CompilationError("no registers left"))
    made = promised(compile, graph=None)
    assert started.processes() == []
    for count in (1, 2):
        with pytest.raises(CompilationError, match="no registers left"):
            made.poll()
        assert compile.count == count


def test_damaged_and_lost_programs_are_compiled_here(started: Builders, tmp_path: Path) -> None:
    for answer in (Answer("built", b"half of it"), Answer("kept")):
        made = promised(lambda: "code")
        job_files.give(tmp_path / "jobs", "a", answer)
        assert made.is_built()
        assert made.poll() == "code"


def test_a_child_asks_builders_of_its_own_whatever_its_parent_was_told(
    started: Builders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compile = Compile()
    made = promised(compile)
    job_files.give(tmp_path / "jobs", "a", LEFT)
    assert not made.is_built()
    folder = tmp_path / "child"
    folder.mkdir()
    childs = Builders()
    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "mkdtemp", lambda prefix: str(folder))
        patch.setitem(compile_workers._by_process, os.getpid(), childs)
        assert made.poll() is None
        assert len(childs.processes()) == 1
        assert compile.count == 0
        childs._end()


def test_one_thread_compiles_here_and_others_need_not_wait(started: Builders) -> None:
    began, may = threading.Event(), threading.Event()

    def compile() -> Any:
        began.set()
        assert may.wait(60)
        return "code"

    made = promised(compile, graph=None)
    thread = threading.Thread(target=made.poll)
    thread.start()
    assert began.wait(60)
    assert made.poll() is None
    may.set()
    thread.join()
    assert made.poll() == "code"


# All of it.

WHOLE = """
    import os, signal, sys
    import numpy as np
    import tracejit as tj
    from tracejit.runtime.compile_workers import builders

    def tier(f):
        return f.cache_report().compilations[0].answered_by

    def signal_builder(number):
        (process,) = builders().processes()
        os.kill(process, number)
        return process

    @tj.jit(tiered=True)
    def f(x):
        return np.tanh(x) * x.sum()

    x = np.arange(6.0)
    expected = np.tanh(x) * x.sum()
    np.testing.assert_allclose(f(x), expected, rtol=1e-12)
    builder = signal_builder(signal.SIGSTOP)
    np.testing.assert_allclose(f(x), expected, rtol=1e-12)
    assert tier(f) == "interpreter"
"""


def test_first_interpreted_then_compiled_then_found(tmp_path: Path) -> None:
    code = """
    signal_builder(signal.SIGCONT)
    f.wait_until_compiled(100)
    assert tier(f) == "machine code"
    np.testing.assert_allclose(f(x), expected, rtol=1e-12)

    again = tj.jit(f.__wrapped__, tiered=True)
    np.testing.assert_allclose(again(x), expected, rtol=1e-12)
    assert tier(again) == "machine code"

    seen = []

    @tj.jit(tiered=True)
    def calling(x):
        tj.debug.callback(lambda x: seen.append(x.tolist()), x)
        return x + 1

    calling(x)
    calling.wait_until_compiled(100)
    calling(x)
    assert tier(calling) == "machine code"
    assert seen == [x.tolist()] * 2
    print(builder, *builders().processes(), builders()._folder, "tvm" in sys.modules)
    """
    out = python(WHOLE + code, TRACEJIT_CACHE="1", TRACEJIT_CACHE_DIR=str(tmp_path))
    first, second, folder, has_tvm = out.split()
    assert first == second
    assert has_tvm == "False"
    assert not Path(folder).exists()
    with pytest.raises(ProcessLookupError):
        os.kill(int(first), 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_children_of_a_fork_compile_by_themselves() -> None:
    """Also while a thread of the parent is in a call, and while the builder is at it."""
    code = """
    import threading
    over = threading.Event()

    def call():
        while not over.is_set():
            f(x)

    thread = threading.Thread(target=call)
    thread.start()
    children = []
    for number in range(3):
        child = os.fork()
        if child == 0:
            np.testing.assert_allclose(f(x), expected, rtol=1e-12)
            assert tier(f) == "interpreter"
            if number == 2:
                assert builders().processes() != [builder]
                f.wait_until_compiled(100)
                np.testing.assert_allclose(f(x), expected, rtol=1e-12)
                print("compiled", flush=True)
                sys.exit()
            os._exit(0)
        children.append(child)
    for child in children:
        assert os.waitpid(child, 0)[1] == 0
    over.set()
    thread.join()
    assert builders().processes() == [builder]
    assert tier(f) == "interpreter"
    signal_builder(signal.SIGCONT)
    f.wait_until_compiled(100)
    print(tier(f))
    """
    assert python(WHOLE + code, TRACEJIT_CACHE="0").split("\n") == ["compiled", "machine code"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_workers_of_multiprocessing_leave_nothing_behind() -> None:
    code = """
    import multiprocessing

    def work(number):
        np.testing.assert_allclose(f(x + number), np.tanh(x + number) * (x + number).sum())
        return str(builders()._folder), builders().processes()

    with multiprocessing.get_context("fork").Pool(2) as pool:
        found = pool.map(work, range(4), chunksize=2)
        pool.close()
        pool.join()
    for folder, _ in found:
        assert folder != str(builders()._folder)
        print(folder)
    """
    for folder in python(WHOLE + code, TRACEJIT_CACHE="0").split():
        assert not Path(folder).exists()


def test_the_page_does_what_it_says() -> None:
    page = (checkout.ROOT / "docs" / "speed_and_memory.md").read_text(encoding="utf-8")
    section = page.partition("## First calls")[2]
    code = "import numpy as np\nimport tracejit as tj\n\n"
    code += section.partition("```python\n")[2].partition("```")[0]
    report = python(code, TRACEJIT_CACHE="0").splitlines()
    assert report[0] == "predict: compiled 1 time, 1 version kept"
    assert report[1].endswith(" s: x f32[300,400]; w f32[400,200]")


def test_the_end_of_a_process_does_not_wait_for_its_builder() -> None:
    code = """
    print(builder, builders()._folder, flush=True)
    """
    process, folder = python(WHOLE + code, TRACEJIT_CACHE="0").split()
    assert not Path(folder).exists()
    with pytest.raises(ProcessLookupError):
        os.kill(int(process), 0)


def test_builders_end_with_a_process_that_is_killed() -> None:
    code = """
    print(signal_builder(signal.SIGCONT), builders()._folder, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
    """
    killed = start(WHOLE + code, TRACEJIT_CACHE="0")
    out, _ = killed.communicate(timeout=120)
    assert killed.returncode == -signal.SIGKILL
    process, folder = out.split()
    until(lambda: not Path(folder).exists())
    until(lambda: not is_running(int(process)))


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{process}/stat").read_text(encoding="utf-8").split()[2:3]
