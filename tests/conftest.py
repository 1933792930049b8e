"""What every test session shares: options, a private compile cache, property-test profiles.

`pytest` runs everything a commit must pass. `--exhaustive=full` runs the sweeps over every case
instead of a sample, `--benchmark` runs the timings as well, and `--hypothesis-profile=fuzz`
searches long and at random. `--processor=x86-64-v2` runs a sample of what runs compiled code as if
on that processor.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Two thread pools in one process stall each other, and pytest-xdist's workers are parallel already.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Set before tracejit is imported, once per worker; processes that a test starts inherit them.
os.environ["TRACEJIT_VERIFY"] = "1"
CACHE_DIR = os.environ["TRACEJIT_CACHE_DIR"] = tempfile.mkdtemp(prefix="tracejit-tests-")

import pytest
from hypothesis import settings

from tests import processors
from tracejit import targets
from tracejit.backends.target import VARIABLE
from tracejit.errors import AttributeValueError
from tracejit.loading import load
from tracejit.runtime import compile_server
from tracejit.runtime.compile_worker import Task
from tracejit.runtime.shipping import packed, unpacked

# One case of an `exhaustive` sweep in this many runs by default, the same ones in every session.
SAMPLE_ONE_IN = 16

settings.register_profile("ci", derandomize=True, deadline=None, max_examples=50, print_blob=True)
settings.register_profile("fuzz", deadline=None, max_examples=5000, print_blob=True)
settings.load_profile("ci")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--exhaustive",
        choices=["sampled", "full"],
        default="sampled",
        help=f"run one case in {SAMPLE_ONE_IN} of the sweeps marked 'exhaustive' (default), or all",
    )
    parser.addoption(
        "--benchmark", action="store_true", help="run the timings marked 'benchmark' as well"
    )
    parser.addoption(
        "--processor",
        metavar="NAME",
        help=f"run one test in {processors.ONE_IN} of those that compile, for this processor; none "
        "where it is no lesser one than this machine's",
    )
    parser.addoption("--update-golden", action="store_true", help="write the golden graphs anew")


def pytest_configure(config: pytest.Config) -> None:
    processor = config.getoption("--processor")
    if processor is None:
        return
    try:
        processors.is_lesser(processor)
    except AttributeValueError as error:
        raise pytest.UsageError(f"--processor: {error}") from error
    os.environ[VARIABLE] = processor


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    processor = config.getoption("--processor")
    leaves_out = processor is not None and not processors.concerns(collection_path)
    return True if leaves_out else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(processors.described())


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    is_without = session.config.getoption("--processor") is not None and not session.testscollected
    if is_without and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if not selected(item, config)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if selected(item, config)]


def selected(item: pytest.Item, config: pytest.Config) -> bool:
    """Whether the session's options ask for this test; the choice depends on its name alone."""
    processor = config.getoption("--processor")
    if processor is not None and not processors.is_sampled(item.nodeid, processor):
        return False
    if item.get_closest_marker("benchmark") and not config.getoption("--benchmark"):
        return False
    if item.get_closest_marker("exhaustive") and config.getoption("--exhaustive") == "sampled":
        return zlib.crc32(item.nodeid.encode()) % SAMPLE_ONE_IN == 0
    return True


@pytest.fixture(scope="session")
def exhaustive(pytestconfig: pytest.Config) -> bool:
    """Whether sweeps run in full, for a test that loops over its cases itself and samples them."""
    return bool(pytestconfig.getoption("--exhaustive") == "full")


@pytest.fixture(autouse=True, scope="session")
def compile_here() -> Iterator[None]:
    """The compiler runs here, where tests exchange its parts, on the bytes that are sent elsewhere.

    Processes that tests start compile in another one.
    """
    served = compile_server.served

    def served_here(task: Task, *options: Any, **named: Any) -> Any:
        if compile_server.is_wanted():
            return served(task, *options, **named)
        sent: Task = unpacked(packed(task))
        return getattr(load(sent.module), sent.function)(*sent.arguments, **sent.options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compile_server, "is_wanted", lambda: False)
        patch.setattr(compile_server, "served", served_here)
        yield


def pytest_unconfigure() -> None:
    shutil.rmtree(CACHE_DIR, ignore_errors=True)


@pytest.fixture
def own_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the test registers for custom calls is forgotten afterwards."""
    monkeypatch.setattr(targets, "_targets", dict(targets._targets))
