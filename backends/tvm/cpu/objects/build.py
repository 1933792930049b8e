"""Compile a program to one shared library: chunks of kernels on threads, then a linker.

build(program, processor_of())    # an artifact's bytes, to keep and to load in any process
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial, reduce
from operator import or_
from pathlib import Path
from typing import Any

from tracejit.backends.abi import EVALUATE, OUTSIDE, SORT_VALUES
from tracejit.backends.artifact import Artifact, InProcess, pack
from tracejit.backends.object_store import ObjectStore
from tracejit.backends.scratch import roomy_folders
from tracejit.backends.tvm.cpu.llvm.modules import kernel_texts
from tracejit.backends.tvm.cpu.llvm.procedures import group_of
from tracejit.backends.tvm.cpu.llvm.shared_procedures import (
    LlvmUnit,
    shared_units,
    without_shared,
)
from tracejit.backends.tvm.cpu.llvm.tir_to_llvm import TranslatedKernels, translate_kernels
from tracejit.backends.tvm.cpu.objects.entry import checking, program_texts
from tracejit.backends.tvm.cpu.objects.identical_code_folding import fold_identical_kernels
from tracejit.backends.tvm.cpu.objects.in_process import (
    entry_of,
    warn_of_missing_linker,
    warn_of_missing_room,
)
from tracejit.backends.tvm.cpu.objects.interrupts import interruptible, polling
from tracejit.backends.tvm.cpu.objects.linker import can_link, linked
from tracejit.backends.tvm.cpu.objects.llvm_passes import needs_few_passes
from tracejit.backends.tvm.cpu.objects.partition import chunks, cost_to_compile
from tracejit.backends.tvm.cpu.objects.report import explanation
from tracejit.backends.tvm.cpu.objects.tir_pipeline import (
    Contents,
    MakeFunction,
    c_function,
    compile_kernels,
    compile_text,
    contents,
    kernel_function,
    packed_function,
)
from tracejit.backends.tvm.cpu.processor import Processor
from tracejit.backends.tvm.program.program import Kernel, Program
from tracejit.backends.tvm.target.target import Progress
from tracejit.backends.tvm.verification.program import verify_if_wanted
from tracejit.errors import CompilationError
from tracejit.ops.custom import CUSTOM_CALL

# The factor on compile time of LLVM's slowest passes.
_SLOW_PASSES = 1.5


def build(
    program: Program,
    target: Processor,
    progress: Progress | None = None,
    store: ObjectStore | None = None,
) -> bytes | InProcess:
    """The artifact of a program; without a linker, or disk space, code for this process alone.

    What programs share is taken from ``store``, or kept there. Code that this machine cannot run is
    not linked: the artifact contains the object files one after the other. Raises
    `CompilationError` if the program is inconsistent, or if TVM rejects a kernel. Warns, once, of a
    missing linker, of missing disk space, and of a linker that fails.
    """
    program.check()
    program = verify_if_wanted(program)
    program = fold_identical_kernels(program)
    room = next(roomy_folders(), None)
    if target.lacking or (can_link() and room is not None):
        program = interruptible(program, target)
    held = {kernel.name: contents(kernel.body) for kernel in program.kernels}
    artifact = describe(program, held, target)
    if target.lacking:
        with tempfile.TemporaryDirectory(prefix="tracejit-") as name:
            objects = _program_objects(program, held, target, Path(name), progress, store)
            return pack(b"".join(file.read_bytes() for file in objects), artifact)
    if can_link() and room is not None:
        with tempfile.TemporaryDirectory(prefix="tracejit-", dir=room) as name:
            objects = _program_objects(program, held, target, Path(name), progress, store)
            library = linked(objects)
        if library is not None:
            return pack(library, artifact)
    else:
        (warn_of_missing_room if room is None else warn_of_missing_linker)()
    jobs = _kernel_jobs(program.kernels, held, target, packed_function)
    modules = _on_threads(jobs, target.threads, progress)
    functions = {
        kernel.name: next(m for m in modules if m.implements_function(kernel.name))[kernel.name]
        for kernel in program.kernels
    }
    return InProcess(entry_of(program, functions, target), artifact)


def _program_objects(
    program: Program,
    held: Mapping[str, Contents],
    target: Processor,
    folder: Path,
    progress: Progress | None,
    store: ObjectStore | None = None,
) -> list[Path]:
    """Object files in ``folder`` of a checked program."""
    sources = _sources(program.kernels, held, target)
    if program.state is not None:
        sources.shared_units.append(LlvmUnit(polling(target), target))
    jobs = _kernel_jobs(sources.others, held, target, c_function)
    texts = program_texts(program, target, sources.written, max(target.threads - len(jobs), 1))
    return _objects(sources, jobs, texts, target, folder, progress, store)


def describe(program: Program, held: Mapping[str, Contents], target: Processor) -> Artifact:
    """The metadata that the runtime needs besides a program's code; ``held`` describes its
    kernels.
    """
    callbacks = {name: contents.callbacks for name, contents in held.items()}
    called = {name: None for each in callbacks.values() for name in each}
    return Artifact(
        program.inputs,
        program.outputs,
        program.constants,
        program.workspace_bytes,
        [*called],
        explanation(program, callbacks, target.threads).to_json(),
        program.aliases,
        target.cpu,
        target.lacking,
        native_calls=program.native_calls,
        is_long=program.state is not None,
        runs_apart=program.runs_apart
        and not any(map(_may_call_users, program.kernels, held.values())),
    )


def _may_call_users(kernel: Kernel, contents: Contents) -> bool:
    """Whether a kernel calls Python for another thing than linear algebra, sorts and reports of
    accesses outside of their buffers.

    Functions of the user's, and messages between ranks, want the thread that called the program.
    """
    if not {*contents.callbacks} <= {EVALUATE, OUTSIDE, SORT_VALUES}:
        return True
    told = kernel.stats.ops
    return EVALUATE in contents.callbacks and (not told or CUSTOM_CALL.opcode in told)


def write_kernels(program: Program, target: Processor, folder: Path) -> list[Path]:
    """Object files in ``folder`` with a C function for every kernel of a checked program.

    All optimisations are on.
    """
    held = {kernel.name: contents(kernel.body) for kernel in program.kernels}
    jobs = _kernel_jobs(program.kernels, held, target, c_function, thorough=True)
    files = [folder / f"{index}.o" for index in range(len(jobs))]
    writers = [partial(_write, job, file) for job, file in zip(jobs, files, strict=True)]
    _on_threads(writers, target.threads, None)
    return files


def build_kernels(kernels: Sequence[Kernel], target: Processor, library: Path) -> list[Kernel]:
    """A shared library of these kernels, each a C function; returns the kernels it contains.

    Their code is the same as from `build`. Kernels that TVM rejects are left out. Raises
    `CompilationError` if there is no linker, or it fails.
    """
    if not can_link():
        raise CompilationError("kernels cannot be compiled on their own without a linker")
    held = {kernel.name: contents(kernel.body) for kernel in kernels}
    refused: set[str] = set()

    def compile_kernel(kernel: Kernel) -> Any:
        try:
            (job,) = _kernel_jobs([kernel], held, target, c_function)
            return job()
        except CompilationError:
            refused.add(kernel.name)

    with tempfile.TemporaryDirectory(dir=library.parent) as name:
        sources = _sources(kernels, held, target)
        jobs = [partial(compile_kernel, kernel) for kernel in sources.others]
        texts = kernel_texts(kernels, sources.written, target, target.threads)
        objects = _objects(sources, jobs, texts, target, Path(name), None, None)
        made = linked(objects) if objects else b""
        if made is None:
            raise CompilationError("kernels cannot be compiled on their own: no linker links them")
        if made:
            library.write_bytes(made)
    return [kernel for kernel in kernels if kernel.name not in refused]


@dataclass(frozen=True)
class _Sources:
    """The sources of an object file per kernel.

    ``written`` kernels are LLVM text, TVM compiles the ``others``, and ``shared_units`` are
    compiled once on a machine.
    """

    written: TranslatedKernels
    others: list[Kernel]
    shared_units: list[LlvmUnit]


def _sources(
    kernels: Sequence[Kernel], held: Mapping[str, Contents], target: Processor
) -> _Sources:
    quick = [k.name for k in kernels if _is_written(k, held[k.name], target)]
    written = translate_kernels(kernels, quick)
    others = [kernel for kernel in kernels if kernel.name not in written.kernels]
    others, shared = without_shared(others)
    shared |= {n: t for n, t in written.code.items() if group_of(t) is not None}
    units = [LlvmUnit(checking(), target), *shared_units(shared, target)]
    return _Sources(written, others, units)


def _objects(
    sources: _Sources,
    jobs: Sequence[Callable[[], Any]],
    texts: Sequence[str],
    target: Processor,
    folder: Path,
    progress: Progress | None,
    store: ObjectStore | None = None,
) -> list[Path]:
    """Object files in ``folder``: of texts, of shared units, and of the modules that ``jobs``
    return.
    """
    # The entry alone, and the check of arguments, are too little work for a thread of their own.
    work = len(jobs) + bool(sources.written.code) * len(texts)
    every = [*jobs]
    every += [partial(compile_text, text, folder / f"{n}.ll") for n, text in enumerate(texts)]
    files = [folder / f"{index}.o" for index in range(len(every))]
    writers = [partial(_write, job, file) for job, file in zip(every, files, strict=True)]
    for number, unit in enumerate(sources.shared_units):
        files.append(folder / f"{len(files)}.o")
        data = unit.find(store)
        if data is None:
            writers.append(partial(_write_unit, unit, files[-1], store))
            work += number > 0
        else:
            files[-1].write_bytes(data)
    _on_threads(writers, target.threads if work > 1 else 1, progress)
    return [file for file in files if file.exists()]


def _kernel_jobs(
    kernels: Sequence[Kernel],
    held: Mapping[str, Contents],
    target: Processor,
    make: MakeFunction,
    thorough: bool = False,
) -> list[Callable[[], Any]]:
    """Functions that compile chunks of kernels.

    Kernels with callbacks need a pass that slows others down, and get a module of their own; so
    do, unless ``thorough``, those that are not worth LLVM's slowest passes.
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
    """Whether a kernel is built without LLVM's slowest passes, or must be, even if ``thorough``."""
    wanted = thorough or kernel.is_thorough
    must = inside.guards_narrow_stores or inside.indexes_by_stored
    return must or (needs_few_passes(kernel.stats) and not wanted)


def _is_written(kernel: Kernel, inside: Contents, target: Processor) -> bool:
    """Whether a kernel with computations may be translated to LLVM text, without LLVM's IR passes.

    Fast-math needs those passes. Only TVM provides functions between f16 and f32, where the
    processor has no instruction.
    """
    return _is_quick(kernel, inside) and target.converts_halves and not target.fast_math


def _write_unit(unit: LlvmUnit, file: Path, store: ObjectStore | None) -> None:
    file.write_bytes(unit.make(file.parent, store))


def _write(job: Callable[[], Any], file: Path) -> None:
    made = job()
    if made is not None:
        made.write_to_file(str(file), "o")


def _on_threads(
    jobs: Sequence[Callable[[], Any]], threads: int, progress: Progress | None
) -> list[Any]:
    """The results of the jobs; the first error cancels the rest. One of the threads is the
    caller's.
    """
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
