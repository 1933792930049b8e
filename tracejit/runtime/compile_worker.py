"""The process that compiles for another one: `tracejit.runtime.compile_server` starts it.

    serve(requests, replies)     # reads tasks from one pipe, answers through the other

Whatever ends it, LLVM's aborts, segmentation faults, a loop that never ends, ends it alone.
"""

from __future__ import annotations

import os
import struct
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

from tracejit.backends.artifact import InProcess
from tracejit.errors import TracejitError
from tracejit.loading import load
from tracejit.runtime.imports import importing_tvm
from tracejit.runtime.shipping import packed, unpacked
from tracejit.system import processes
from tracejit.system.garbage import collecting_garbage_later

_LENGTH = struct.Struct("<Q")
_STACK_BYTES = 256 << 20
"""The stack size of the thread that compiles: LLVM walks deep expressions by recursion."""


class Task(NamedTuple):
    """A function of the code generator's, by name, and what it is called with.

    ``environment`` is the process's that asks. With ``reports`` the function is told ``progress``,
    which is passed on.
    """

    module: str
    function: str
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    environment: dict[str, str]
    temporary: str | None
    reports: bool = False


class Began(NamedTuple):
    """The code generator is loaded, and the task begins."""


class Progressed(NamedTuple):
    """The number of parts that are done."""

    done: int
    total: int


class Returned(NamedTuple):
    """The function's result, and its warnings."""

    value: Any
    warnings: list[tuple[str, type[Warning]]]


class Elsewhere(NamedTuple):
    """The function made code for its own process alone."""


class Raised(NamedTuple):
    """What the function raised: its class, where both processes know it, and what it said."""

    kind: type[BaseException] | None
    message: str
    source: Any
    trace: str


def send(descriptor: int, message: Any) -> None:
    """Writes a message. Raises `OSError` where nobody reads."""
    write(descriptor, packed(message))


def write(descriptor: int, data: bytes) -> None:
    """Writes a message that is `packed`. Raises `OSError` where nobody reads."""
    view = memoryview(_LENGTH.pack(len(data)) + data)
    while view:
        view = view[os.write(descriptor, view) :]


def receive(descriptor: int) -> Any:
    """Reads a message. Raises `EOFError` at the end."""
    (length,) = _LENGTH.unpack(_exactly(descriptor, _LENGTH.size))
    return unpacked(_exactly(descriptor, length))


def _exactly(descriptor: int, size: int) -> bytes:
    parts = []
    while size:
        part = os.read(descriptor, min(size, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def run_forked(requests: int, replies: int, output: int) -> None:
    """Serves requests in a forked child, which must not run anything else."""
    try:
        processes.alone([requests, replies], output)
        run(requests, replies)
    finally:
        os._exit(1)


def run(requests: int, replies: int) -> None:
    """Compiles in a thread of its own, whose stack begins here, until the other process ends."""
    processes.name_process("tracejit-comp")
    before = threading.stack_size(_STACK_BYTES)
    thread = threading.Thread(target=serve, args=(requests, replies), daemon=True)
    thread.start()
    threading.stack_size(before)
    processes.wait_for_reader_to_end(replies)
    os._exit(0)


def main() -> None:
    """The program of a worker that is no copy: tasks come by stdin, answers go by stdout."""
    requests, replies = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    processes.name_process("tracejit-comp")
    threading.stack_size(_STACK_BYTES)
    thread = threading.Thread(target=serve, args=(requests, replies), daemon=True)
    thread.start()
    thread.join()
    os._exit(0)


def serve(requests: int, replies: int) -> None:
    """Does tasks, one after the other."""
    try:
        while True:
            task: Task = receive(requests)
            write(replies, _packed(_answer(task, replies)))
    except (EOFError, OSError):
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def _packed(answer: Any) -> bytes:
    try:
        return packed(answer)
    except Exception:  # a value of this process's own
        return packed(Elsewhere())


def _answer(task: Task, replies: int) -> Any:
    os.environ.clear()
    os.environ.update(task.environment)
    tempfile.tempdir = task.temporary
    options = dict(task.options)
    if task.reports:
        options["progress"] = lambda done, total: send(replies, Progressed(done, total))
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with importing_tvm():
                module = load(task.module)
            send(replies, Began())
            with collecting_garbage_later():
                value = getattr(module, task.function)(*task.arguments, **options)
    except BaseException as error:
        return _raised(error)
    if isinstance(value, InProcess):
        return Elsewhere()
    return Returned(value, [(str(w.message), w.category) for w in caught])


def _raised(error: BaseException) -> Raised:
    kind: type[BaseException] | None = type(error)
    trace = "".join(traceback.format_exception(error))
    if isinstance(error, TracejitError):
        return Raised(type(error), error.message, error.source, trace)
    if type(error).__module__ != "builtins":
        kind = None
    return Raised(kind, str(error), None, trace)


def command(path: Sequence[str]) -> list[str]:
    """What starts a worker that is no copy. Raises `OSError` where no Python is known."""
    if not sys.executable or hasattr(sys, "frozen"):
        raise OSError("no Python is known that could be started")
    # Isolated, then with our own path: what lies in the current folder has no say in imports.
    code = (
        "import sys; sys.path[:] = sys.argv[1:]; "
        "from tracejit.runtime.compile_worker import main; main()"
    )
    options = ["-I", "-B"] if sys.dont_write_bytecode else ["-I"]
    return [sys.executable, *options, "-c", code, *map(os.path.abspath, path)]
