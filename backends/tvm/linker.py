"""The linker: object files to a shared library."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tracejit.backends.tvm.elf import shared_library
from tracejit.errors import CompilationError


def find_linker() -> list[str] | None:
    """A command that makes a shared library of objects, up to its last option; None without one.

    ``CC``, where the user has set it; else the linker itself, which is three times quicker than
    through a compiler; else a C compiler.
    """
    chosen = shlex.split(os.environ.get("CC", ""))
    if chosen and shutil.which(chosen[0]):
        return [*chosen, *_COMPILER_OPTIONS]
    if sys.platform.startswith("linux") and shutil.which("ld"):
        return _LINKER
    compiler = next(filter(shutil.which, ("cc", "gcc", "clang")), None)
    return None if compiler is None else [compiler, *_COMPILER_OPTIONS]


_LINKER = ["ld", "-shared", "-s", "-Bsymbolic"]

# What kernels call of the C library lies in the process already, with the runtime; and a kernel
# must find its neighbours, not a stranger's function of the same name.
_COMPILER_OPTIONS = (
    ["-shared", "-nostdlib", "-undefined", "dynamic_lookup"]
    if sys.platform == "darwin"
    else ["-shared", "-nostdlib", "-s", "-Wl,-Bsymbolic"]
)


def linked(linker: Sequence[str], objects: Sequence[Path]) -> bytes:
    """A shared library of objects, made in this process where that is possible."""
    own = shared_library([file.read_bytes() for file in objects]) if linker == _LINKER else None
    if own is not None:
        return own
    library = objects[0].with_suffix(".so")
    command = [*linker, "-o", str(library), *map(str, objects)]
    done = subprocess.run(command, capture_output=True, text=True, close_fds=False)
    if done.returncode != 0:
        raise CompilationError(f"{command[0]} failed: {done.stderr.strip() or done.stdout.strip()}")
    return library.read_bytes()
