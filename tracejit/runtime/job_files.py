"""Programs that one process asks another to compile: requests, workers and answers.

    put(folder, job)                 # by the one that asks
    job = take(folder)               # by one that compiles
    give(folder, job.key, answer)
    answered(folder, job.key)        # by the one that asked: an Answer, or None

All of it are files in one folder, moved into place when they are whole. Taking a job renames its
file, so only one process gets it, and if that dies it can be seen which job it was at.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, NamedTuple

_ASKED = ".job"
_GIVEN = ".done"
_UNFINISHED = ".part"


@dataclass(frozen=True)
class Job:
    """A module to compile, as HLO text, and where the result is kept.

    ``key`` is its name in the disk cache: whoever compiles it has to find the same one. The code
    may use ``threads`` threads. ``cache`` is the cache's folder, if there is one, of at most
    ``limit`` bytes.
    """

    key: str
    graph: str
    target: str
    fast_math: bool
    threads: int
    cache: str | None
    limit: int


class Answer(NamedTuple):
    """What came of a job.

    The program is "kept" in the disk cache, or "built" and here, in ``program``, because the cache
    did not take it. "left" says that the process that asked has to compile it, for whatever reason,
    "crashed" that the compiler died of it, by the signal ``number``.
    """

    kind: Literal["kept", "built", "left", "crashed"]
    program: bytes = b""
    number: int = 0


LEFT = Answer("left")


def put(folder: Path, job: Job) -> None:
    """Asks. Raises `OSError` where the folder takes no file."""
    _write(folder, job.key, _ASKED, json.dumps(asdict(job)).encode())


def is_asked(folder: Path, key: str) -> bool:
    """Whether a job waits to be taken."""
    return (folder / (key + _ASKED)).exists()


def take(folder: Path) -> Job | None:
    """The job that has waited longest, which is now this process's; None if none waits."""
    for path in _oldest_first(folder):
        taken = _taken(folder, path.stem, os.getpid())
        try:
            path.rename(taken)
        except FileNotFoundError:  # another was quicker
            continue
        return Job(**json.loads(taken.read_bytes()))
    return None


def is_taken(folder: Path, key: str, process: int) -> bool:
    """Whether this process took the job."""
    return _taken(folder, key, process).exists()


def give(folder: Path, key: str, answer: Answer) -> None:
    """Answers, if only by saying so. Raises `OSError` where the folder takes no file."""
    _write(folder, key, _GIVEN, answer.kind.encode() + b"\n" + answer.program)


def answered(folder: Path, key: str) -> Answer | None:
    """What came of a job; None as long as that is not known."""
    try:
        data = (folder / (key + _GIVEN)).read_bytes()
    except FileNotFoundError:
        return None
    kind, _, program = data.partition(b"\n")
    return Answer(kind.decode(), program)  # type: ignore[arg-type]


def is_answered(folder: Path, key: str) -> bool:
    """Whether it is known what came of a job."""
    return (folder / (key + _GIVEN)).exists()


def _taken(folder: Path, key: str, process: int) -> Path:
    return folder / f"{key}.{process}"


def _oldest_first(folder: Path) -> Iterator[Path]:
    with os.scandir(folder) as found:
        waiting = [entry for entry in found if entry.name.endswith(_ASKED)]
    ages = []
    for entry in waiting:
        try:
            ages.append((entry.stat().st_mtime_ns, entry.name))
        except FileNotFoundError:  # another was quicker
            continue
    yield from (folder / name for _, name in sorted(ages))


def _write(folder: Path, key: str, suffix: str, data: bytes) -> None:
    unfinished = folder / (key + suffix + _UNFINISHED)
    unfinished.write_bytes(data)
    unfinished.replace(folder / (key + suffix))
