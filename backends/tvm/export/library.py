"""Compiling and linking an exported library: kernels by TVM, the rest by a C compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tracejit import system
from tracejit.backends.scratch import roomy_folders
from tracejit.backends.tvm.cpu.objects.build import write_kernels
from tracejit.backends.tvm.cpu.objects.linker import chosen_compiler
from tracejit.backends.tvm.cpu.processor import Processor
from tracejit.backends.tvm.export.entries import Entry
from tracejit.backends.tvm.export.source import constants_of, source
from tracejit.errors import CompilationError

# The features that GCC and Clang can detect at run time, by LLVM's names.
_FEATURES = (
    "sse3",
    "ssse3",
    "sse4.1",
    "sse4.2",
    "popcnt",
    "avx",
    "avx2",
    "fma",
    "bmi",
    "bmi2",
    "avx512f",
    "avx512bw",
    "avx512cd",
    "avx512dq",
    "avx512vl",
    "avx512ifma",
    "avx512vbmi",
    "avx512vbmi2",
    "avx512vnni",
    "avx512bitalg",
    "avx512vpopcntdq",
    "gfni",
)


def find_compiler(target: Processor) -> list[str]:
    """The C compiler: ``CC``, if the user has set it, else cc, gcc or clang.

    For another architecture than this machine's it is a cross compiler, such as
    aarch64-linux-gnu-gcc. Raises `CompilationError` if there is none.
    """
    chosen = chosen_compiler()
    if chosen:
        if found := shutil.which(chosen[0]):
            return [os.path.abspath(found), *chosen[1:]]
        raise CompilationError(f"export: CC is {chosen[0]!r}, which was not found")
    if target.architecture in target.lacking:
        cross = f"{target.architecture}-linux-gnu-gcc"
        if shutil.which(cross) is None or "apple" in target.triple:
            raise CompilationError(
                f"export: a C compiler for {target.triple} is needed; set CC to one"
            )
        return [cross]
    found = next(filter(shutil.which, ("cc", "gcc", "clang")), None)
    if found is None:
        raise CompilationError(
            "export: a C compiler is needed, and none of cc, gcc and clang was found; install one, "
            "or set CC to it"
        )
    return [found]


def library(entries: Sequence[Entry], name: str, target: Processor) -> bytes:
    """The shared library with all ``entries``, ``name``_message and ``name``_set_threads.

    Raises `CompilationError` if there is no C compiler, if it fails, or if there is no disk space.
    """
    compiler = find_compiler(target)
    room = next(roomy_folders(), None)
    if room is None:
        raise CompilationError("export: no folder for temporary files has room; see TMPDIR")
    with tempfile.TemporaryDirectory(prefix="tracejit-", dir=room) as place:
        folder = Path(place)
        objects: list[Path] = []
        for number, entry in enumerate(entries):
            own = folder / str(number)
            own.mkdir()
            written = write_kernels(entry.program, target, own)
            objects += [each.relative_to(folder) for each in written]
        (folder / "constants").write_bytes(constants_of(entries))
        features = [feature for feature in _FEATURES if feature in target.features]
        text = source(entries, name, target.threads, features, "constants")
        (folder / "source.c").write_text(text, encoding="utf-8")
        exported = [*(e.name for e in entries), f"{name}_message", f"{name}_set_threads"]
        command = [*compiler, "-std=gnu11", "-O2", "-fPIC", "-fvisibility=hidden", "-shared"]
        command += ["-o", "made", "source.c", *map(str, objects), *_options(exported, folder)]
        # The folder's own name may contain characters that are special to a compiler, such as a
        # comma.
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                capture_output=True,
                text=True,
                errors="replace",
                close_fds=False,
            )
        except OSError as error:
            raise CompilationError(f"export: {compiler[0]} cannot be run: {error}") from error
        if done.returncode != 0 or not (folder / "made").exists():
            reason = done.stderr.strip() or f"status {done.returncode}, and no library"
            raise CompilationError(f"export: {compiler[0]} failed: {reason}")
        return (folder / "made").read_bytes()


def _options(exported: Sequence[str], folder: Path) -> list[str]:
    """Options that export only the functions, and reject undefined symbols."""
    if system.IS_DARWIN:
        return [option for name in exported for option in ("-Wl,-exported_symbol", f"-Wl,_{name}")]
    script = folder / "exported"
    names = " ".join(f"{name};" for name in exported)
    script.write_text(f"{{ global: {names} local: *; }};\n", encoding="utf-8")
    return [
        f"-Wl,--version-script={script.name}",
        "-Wl,-s",
        "-Wl,--no-undefined",
        "-lm",
        "-lpthread",
    ]
