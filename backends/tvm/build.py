"""Compile a program to one shared library: chunks of kernels on threads, then a linker.

build(program, host_target())    # an artifact's bytes, to keep and to load in any process
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial, reduce
from itertools import compress
from operator import or_
from pathlib import Path
from typing import Any

from tracejit.backends.artifact import Artifact, InProcess, pack
from tracejit.backends.scratch import roomy_folders
from tracejit.backends.tvm.chunks import chunks, cost_to_compile
from tracejit.backends.tvm.codegen import (
    Contents,
    MakeFunction,
    c_function,
    compile_kernels,
    compile_text,
    contents,
    kernel_function,
    packed_function,
)
from tracejit.backends.tvm.cpu import CpuTarget
from tracejit.backends.tvm.description import explanation
from tracejit.backends.tvm.elf import shared_library
from tracejit.backends.tvm.entry import program_texts
from tracejit.backends.tvm.facts import is_soon_built
from tracejit.backends.tvm.glue import written_kernels
from tracejit.backends.tvm.in_process import (
    entry_of,
    warn_of_missing_linker,
    warn_of_missing_room,
)
from tracejit.backends.tvm.mathematics.procedures import group_of
from tracejit.backends.tvm.program import Kernel, Program
from tracejit.backends.tvm.routines import Part, parts
from tracejit.backends.tvm.shared_procedures import shared_parts, without_shared
from tracejit.backends.tvm.twins import without_twins
from tracejit.errors import CompilationError

Progress = Callable[[int, int], None]
"""Called with the number of modules compiled so far, and of all."""

# How much longer LLVM takes with its slowest passes.
_SLOW_PASSES = 1.5


def build(
    program: Program, target: CpuTarget, progress: Progress | None = None
) -> bytes | InProcess:
    """The artifact of a program; without a linker, or room for files, code for this process alone.

    Raises `CompilationError` if the program contradicts itself, if TVM refuses a kernel, or if the
    linker fails. Warns, once, of a missing linker and of missing room.
    """
    program.check()
    program = without_twins(program)
    held = {kernel.name: contents(kernel.body) for kernel in program.kernels}
    artifact = describe(program, held, target)
    linker = find_linker()
    room = next(roomy_folders(), None)
    if linker is None or room is None:
        (warn_of_missing_linker if linker is None else warn_of_missing_room)()
        jobs = _kernel_jobs(program.kernels, held, target, packed_function)
        modules = _on_threads(jobs, target.threads, progress)
        return InProcess(entry_of(program, modules, target), artifact)
    with tempfile.TemporaryDirectory(prefix="tracejit-", dir=room) as name:
        folder = Path(name)
        own = [kernel for kernel in program.kernels if kernel.direct is None]
        quick = [k.name for k in own if _is_written(k, held[k.name], target)]
        written = written_kernels(own, quick)
        others = [kernel for kernel in own if kernel.name not in written.kernels]
        others, shared = without_shared(others)
        shared |= {n: t for n, t in written.code.items() if group_of(t) is not None}
        jobs = _kernel_jobs(others, held, target, c_function)
        texts = program_texts(program, target, written, max(target.threads - len(jobs), 1))
        # The entry alone, and the check of arguments, are no work for a thread of their own.
        work = len(jobs) + bool(written.code) * len(texts)
        jobs += [
            partial(compile_text, text, folder / f"{index}.ll") for index, text in enumerate(texts)
        ]
        files = [folder / f"{index}.o" for index in range(len(jobs))]
        writers = [partial(_write, job, file) for job, file in zip(jobs, files, strict=True)]
        routines = [k.direct.routine for k in program.kernels if k.direct is not None]
        kept = [*parts(routines, target), *shared_parts(shared, target)]
        for number, part in enumerate(kept):
            files.append(folder / f"{len(files)}.o")
            data = part.known()
            if data is None:
                writers.append(partial(_write_part, part, files[-1]))
                work += number > 0
            else:
                files[-1].write_bytes(data)
        _on_threads(writers, target.threads if work > 1 else 1, progress)
        return pack(_linked(linker, files), artifact)


def describe(program: Program, held: Mapping[str, Contents], target: CpuTarget) -> Artifact:
    """What the runtime must know of a program besides its code; ``held`` is in its kernels."""
    called = {name: None for each in held.values() for name in each.callbacks}
    return Artifact(
        program.inputs,
        program.outputs,
        program.constants,
        program.workspace_bytes,
        [*called],
        explanation(program, held, target.threads).to_json(),
        program.aliases,
    )


def write_kernels(program: Program, target: CpuTarget, folder: Path) -> list[Path]:
    """Object files in ``folder`` with a C function for every kernel of a checked program.

    Nothing is left undone that could make them faster.
    """
    held = {kernel.name: contents(kernel.body) for kernel in program.kernels}
    jobs = _kernel_jobs(program.kernels, held, target, c_function, thorough=True)
    files = [folder / f"{index}.o" for index in range(len(jobs))]
    writers = [partial(_write, job, file) for job, file in zip(jobs, files, strict=True)]
    _on_threads(writers, target.threads, None)
    return files


def build_kernels(kernels: Sequence[Kernel], target: CpuTarget, library: Path) -> list[Kernel]:
    """A shared library of these kernels, each a C function; those that it has in the end.

    The others are refused by TVM. Raises `CompilationError` if there is no linker, or it fails.
    """
    linker = find_linker()
    if linker is None:
        raise CompilationError("kernels cannot be compiled on their own without a linker")

    def compiled(number: int, kernel: Kernel) -> bool:
        inside = contents(kernel.body)
        quick = _is_quick(kernel, inside)
        try:
            function = kernel_function(kernel, inside, c_function)
            made = compile_kernels([function], target, inside, quick)
        except CompilationError:
            return False
        made.write_to_file(str(objects[number]), "o")
        return True

    objects = [library.with_name(f"{number}.o") for number in range(len(kernels))]
    jobs = [partial(compiled, number, kernel) for number, kernel in enumerate(kernels)]
    done = _on_threads(jobs, target.threads, None)
    if any(done):
        library.write_bytes(_linked(linker, [*compress(objects, done)]))
    return [*compress(kernels, done)]


def _kernel_jobs(
    kernels: Sequence[Kernel],
    held: Mapping[str, Contents],
    target: CpuTarget,
    make: MakeFunction,
    thorough: bool = False,
) -> list[Callable[[], Any]]:
    """Functions that compile chunks of kernels.

    Kernels that call back need a pass that slows others down, and have a module of their own; so
    have, unless ``thorough``, those that are not worth LLVM's slowest passes.
    """
    groups: dict[tuple[bool, bool], list[tuple[str, float]]] = {}
    functions = {}
    for kernel in kernels:
        inside = held[kernel.name]
        functions[kernel.name] = kernel_function(kernel, inside, make)
        quick = _is_quick(kernel, inside, thorough)
        how = bool(inside.callbacks), quick
        cost = cost_to_compile(kernel.body) * (1 if quick else _SLOW_PASSES)
        groups.setdefault(how, []).append((kernel.name, cost))
    pieces = [(how[1], c) for how, each in groups.items() for c in chunks(each, target.threads)]
    pieces.sort(key=lambda piece: -piece[1].cost)
    return [
        partial(
            compile_kernels,
            [functions[name] for name in chunk.items],
            target,
            reduce(or_, [held[name] for name in chunk.items]),
            quick,
        )
        for quick, chunk in pieces
    ]


def _is_quick(kernel: Kernel, inside: Contents, thorough: bool = False) -> bool:
    """Whether a kernel is built without LLVM's slowest passes, ``thorough`` or not."""
    wanted = thorough or kernel.is_thorough
    return inside.guards_narrow_stores or (is_soon_built(kernel.counted) and not wanted)


def _is_written(kernel: Kernel, inside: Contents, target: CpuTarget) -> bool:
    """Whether a kernel may be text that computes, which LLVM's passes do not look at.

    They do what fast mathematics allows. Only TVM has functions between f16 and f32, where the
    processor has no instruction.
    """
    return _is_quick(kernel, inside) and target.converts_halves and not target.fast_math


def _write_part(part: Part, file: Path) -> None:
    file.write_bytes(part.compiled(file.parent))


def _write(job: Callable[[], Any], file: Path) -> None:
    job().write_to_file(str(file), "o")


def _on_threads(
    jobs: Sequence[Callable[[], Any]], threads: int, progress: Progress | None
) -> list[Any]:
    """What each job returns; the first error ends them all. One thread is the caller's own."""
    if threads == 1:
        results = []
        for done, job in enumerate(jobs, 1):
            results.append(job())
            if progress is not None:
                progress(done, len(jobs))
        return results
    with ThreadPoolExecutor(threads, "tracejit-build") as pool:
        pending = [pool.submit(job) for job in jobs]
        try:
            for done, future in enumerate(as_completed(pending), 1):
                future.result()
                if progress is not None:
                    progress(done, len(jobs))
        finally:
            pool.shutdown(cancel_futures=True)
        return [future.result() for future in pending]


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


def _linked(linker: Sequence[str], objects: Sequence[Path]) -> bytes:
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
