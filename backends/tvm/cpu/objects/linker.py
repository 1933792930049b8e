"""Links object files to a shared library.

can_link()         # whether a linker is available; ours supports ELF for x86-64
linked(objects)    # the library, or None if every linker failed
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from tracejit import system
from tracejit.backends.tvm.cpu.objects.elf import MOST_BYTES, shared_library
from tracejit.errors import CompilationError
from tracejit.sources import warn


def chosen_compiler() -> list[str]:
    """The words of ``CC``; none if the user has not set it.

    Raises `CompilationError` if they are not a command, as with an open quotation mark.
    """
    try:
        return shlex.split(os.environ.get("CC", ""))
    except ValueError as error:
        raise CompilationError(
            f"CC is {os.environ['CC']!r}, which is no command: {str(error).lower()}"
        ) from None


def find_linker() -> list[str] | None:
    """A command that links objects to a shared library, up to its last option; None without one."""
    return next((command for command in (_chosen(), *_found()) if command), None)


def can_link() -> bool:
    """Whether a linker is available, possibly our own."""
    return system.LINKS_HERE or find_linker() is not None


def _chosen() -> list[str]:
    """The command in ``CC``, if it is one."""
    try:
        words = chosen_compiler()
    except CompilationError as error:
        warn(f"{error.message}; it is not asked to link", RuntimeWarning)
        return []
    return [*words, *system.COMPILER_OPTIONS] if words and shutil.which(words[0]) else []


def _found() -> Iterator[list[str]]:
    """The system's linker, which is faster by itself; then C compilers."""
    if system.LINKER and shutil.which(system.LINKER[0]):
        yield system.LINKER
    for compiler in filter(shutil.which, ("cc", "gcc", "clang")):
        yield [compiler, *system.COMPILER_OPTIONS]


def linked(objects: Sequence[Path]) -> bytes | None:
    """A shared library of objects; None, with a warning, if every linker failed.

    It is linked in this process where that is possible and the user has not set ``CC``.
    """
    chosen = _chosen()
    if system.LINKS_HERE and not chosen:
        made = shared_library([file.read_bytes() for file in objects], MOST_BYTES)
        if made is not None:
            return made
    library = objects[0].with_suffix(".library")
    for command in [chosen, *_found()] if chosen else _found():
        try:
            done = subprocess.run(
                [*command, "-o", str(library), *map(str, objects)],
                capture_output=True,
                text=True,
                errors="replace",
                close_fds=False,
            )
            if done.returncode == 0:
                return library.read_bytes()
            reason = done.stderr.strip() or done.stdout.strip() or f"status {done.returncode}"
        except OSError as error:  # no such program, or nothing was written
            reason = str(error)
        warn(f"{command[0]} failed to link a program: {reason[:500]}", RuntimeWarning)
    return shared_library([file.read_bytes() for file in objects]) if system.LINKS_HERE else None
