"""The main program of a process that compiles for another one; see
`tracejit.runtime.compile_workers`.

It compiles what it finds in the folder of jobs, one after the other, until there was nothing to do
for a while or the other process has ended.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from pathlib import Path
from types import ModuleType

from tracejit import hlo
from tracejit.api import code_generator, place_of
from tracejit.backends.artifact import InProcess
from tracejit.backends.target import Target
from tracejit.errors import TracejitError
from tracejit.runtime import DiskCache
from tracejit.runtime.job_files import LEFT, Answer, Job, give, take

IDLE_SECONDS = 10.0
_PAUSE_SECONDS = 0.01
_WATCH_SECONDS = 0.2


def main() -> None:
    """``FOLDER PROCESS``: compiles what process ``PROCESS``, the parent of this one, asks for."""
    folder, parent = Path(sys.argv[1]), int(sys.argv[2])
    threading.Thread(target=_end_with, args=(parent, folder), daemon=True).start()
    compiler = code_generator()
    idle_since = time.monotonic()
    while time.monotonic() - idle_since < IDLE_SECONDS:
        job = take(folder)
        if job is None:
            time.sleep(_PAUSE_SECONDS)
        else:
            give(folder, job.key, compiled(job, compiler))
            idle_since = time.monotonic()


def compiled(job: Job, compiler: ModuleType) -> Answer:
    """What the compiler makes of a job.

    "left" if it refuses the graph, if there is no linker, so that no other process could load what
    it makes, and if the key shows that this process would compile something else: kernels of the
    user's own are known only where they were registered, and files may have changed.
    """
    os.environ["TVM_NUM_THREADS"] = str(job.threads)
    cache = DiskCache(None if job.cache is None else Path(job.cache), job.limit)
    try:
        module = hlo.parse(job.graph)
        target = Target(job.target, job.fast_math)
        if place_of(module, target).key != job.key:
            return LEFT
        if job.key in cache:  # another process was quicker
            return Answer("kept")
        built = compiler.compile_for(module, target, cache)
    except TracejitError:
        return LEFT
    if isinstance(built, InProcess):
        return LEFT
    return Answer("kept") if cache.keep(job.key, built) else Answer("built", built)


def _end_with(parent: int, folder: Path) -> None:
    """Ends this process, whatever it is at, once its parent is gone; and the folder with it."""
    while os.getppid() == parent:
        time.sleep(_WATCH_SECONDS)
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)
