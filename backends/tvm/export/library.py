"""Compiling and linking an exported library: kernels by TVM, the rest by a C compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tracejit import system
from tracejit.backends.scratch import roomy_folders
from tracejit.backends.tvm.cpu.objects.build import write_kernels
from tracejit.backends.tvm.cpu.objects.linker import chosen_compiler
from tracejit.backends.tvm.cpu.objects.native_host import write_object
from tracejit.backends.tvm.cpu.processor import Processor
from tracejit.backends.tvm.export.entries import Entry
from tracejit.backends.tvm.export.source import constants_of, source
from tracejit.errors import CompilationError
from tracejit.native_calls import Symbols

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


@dataclass(frozen=True)
class Linked:
    """What a library is linked with: object files and archives, which become part of it, and shared
    libraries, which it finds where they are. ``symbols`` are the names of functions in C, by the
    targets of custom calls."""

    objects: Sequence[str] = ()
    libraries: Sequence[str] = ()
    symbols: Mapping[str, Symbols] = field(default_factory=dict)

    @property
    def options(self) -> list[str]:
        """Options of the linker; handlers in C++ need its library."""
        if not (self.objects or self.libraries):
            return []
        folders = dict.fromkeys(os.path.dirname(path) for path in self.libraries)
        found = [f"-Wl,-rpath,{folder}" for folder in folders]
        as_needed = [] if system.IS_DARWIN else ["-Wl,--as-needed"]
        cpp = "-lc++" if system.IS_DARWIN else "-lstdc++"
        return [*self.objects, *self.libraries, *found, *as_needed, cpp]


def library(
    entries: Sequence[Entry], name: str, target: Processor, linked: Linked, is_static: bool
) -> bytes:
    """The shared or static library with all ``entries``, ``name``_message and others.

    Raises `CompilationError` if there is no C compiler, if it fails, or if there is no disk space.
    """
    compiler = find_compiler(target)
    # The folder's own name may contain characters that are special to a compiler, such as a comma.
    with temporary_folder() as folder:
        objects: list[str] = []
        for number, entry in enumerate(entries):
            own = folder / str(number)
            own.mkdir()
            written = write_kernels(entry.program, target, own)
            objects += [str(each.relative_to(folder)) for each in written]
        if any(entry.program.native_calls for entry in entries):
            objects.append(write_object(target, folder).name)
        (folder / "constants").write_bytes(constants_of(entries))
        features = [feature for feature in _FEATURES if feature in target.features]
        text = source(entries, name, target.threads, features, "constants", linked.symbols)
        (folder / "source.c").write_text(text, encoding="utf-8")
        own_functions = ("message", "set_threads", "abi", "set_allocator")
        exported = [*(e.name for e in entries), *(f"{name}_{each}" for each in own_functions)]
        compile_ = [*compiler, "-std=gnu11", "-O2", "-fPIC", "-fvisibility=hidden"]
        if not is_static:
            options = [*linked.options, *exporting(exported, folder)]
            run_tool([*compile_, "-shared", "-o", "made", "source.c", *objects, *options], folder)
            return (folder / "made").read_bytes()
        run_tool([*compile_, "-c", "-o", "source.o", "source.c"], folder)
        # One object, in which only the functions are global, so that several libraries go together.
        together = ["source.o", *objects, *linked.objects]
        run_tool([*compiler, "-r", "-nostdlib", "-o", "all.o", *together], folder)
        kept = [f"--keep-global-symbol={each}" for each in exported]
        run_tool([_tool(compiler, "objcopy"), *kept, "all.o", f"{name}.o"], folder)
        run_tool([_tool(compiler, "ar"), "rcs", "made", f"{name}.o"], folder)
        return (folder / "made").read_bytes()


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder to link in. Raises `CompilationError` where there is no room."""
    room = next(roomy_folders(), None)
    if room is None:
        raise CompilationError("export: no folder for temporary files has room; see TMPDIR")
    with tempfile.TemporaryDirectory(prefix="tracejit-", dir=room) as place:
        yield Path(place)


def _tool(compiler: Sequence[str], name: str) -> str:
    """The path of a tool that belongs to a compiler."""
    command = [*compiler, f"-print-prog-name={name}"]
    found = subprocess.run(command, capture_output=True, text=True, close_fds=False).stdout.strip()
    return found or name


def run_tool(command: Sequence[str], folder: Path) -> None:
    """Runs a tool in a folder. Raises `CompilationError` with what it says where it fails."""
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, errors="replace", close_fds=False
        )
    except OSError as error:
        raise CompilationError(f"export: {command[0]} cannot be run: {error}") from error
    output = command[command.index("-o") + 1] if "-o" in command else ""
    if done.returncode != 0 or not (folder / output).exists():
        reason = done.stderr.strip() or f"status {done.returncode}, and no library"
        raise CompilationError(f"export: {command[0]} failed: {reason}")


def exporting(exported: Sequence[str], folder: Path) -> list[str]:
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
